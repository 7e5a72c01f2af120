// What the notes of other members do.

#include <algorithm>
#include <new>

#include "fabric/protocol/protocol.h"

namespace freshet::fabric {

Operation* Protocol::SendOf(int to, std::uint64_t id) {
  const auto found = operations_.find(id);
  if (found == operations_.end()) return nullptr;
  Operation& send = found->second;
  return send.kind == Operation::Kind::kSend && send.peer == to ? &send : nullptr;
}

Operation* Protocol::ReceiveOf(int from, std::uint64_t id) {
  const auto found = operations_.find(id);
  if (found == operations_.end()) return nullptr;
  Operation& receive = found->second;
  const bool waits = receive.kind != Operation::Kind::kSend && receive.peer == from && receive.matched;
  return waits && !receive.done ? &receive : nullptr;
}

Result<void> Protocol::OnNote(int from, const Note& note, std::span<const std::byte> payload) {
  if (lost(from)) return {};  // what comes after its loss was told is nothing
  switch (note.type) {
    case NoteType::kEager:
      return OnMessage(from, {from, note.tag, note.id, payload.size(), true, {}}, payload);
    case NoteType::kRequest:
      if (note.argument > settings_.max_message_bytes)
        return Error{Code::kCorrupt, Str("it offers a message of ", note.argument, " bytes, at most ",
                                         settings_.max_message_bytes, " are taken")};
      return OnMessage(from, {from, note.tag, note.id, note.argument, false, {}}, {});
    case NoteType::kClear:
      OnClear(from, note);
      return {};
    case NoteType::kRefuse:
      OnRefuse(from, note);
      return {};
    case NoteType::kCancel:
      OnCancel(from, note);
      return {};
    case NoteType::kCredit:
      member(from).eager_out -= std::min<std::size_t>(member(from).eager_out, note.argument);
      return {};
    case NoteType::kAbort:
      return OnAbort(from, note, payload);
    case NoteType::kGoodbye:
      OnGoodbye(from);
      return {};
    case NoteType::kHeartbeat:
    case NoteType::kWake:
    case NoteType::kData:
      return {};
  }
  return {};
}

Result<void> Protocol::OnMessage(int from, Matching::Message message, std::span<const std::byte> content) {
  if (Operation* const receive = matching_.TakeReceive(from, message.tag)) {
    Accept(*receive, message, content);
    Push(from);
    return {};
  }
  Member& sender = member(from);
  if (message.whole) {
    sender.eager_in += message.bytes + kEagerCost;
    message.content.assign(content.begin(), content.end());
  } else {
    ++sender.requests_in;
  }
  if (sender.eager_in > kWindowBytes + settings_.eager_bytes * 2 || sender.requests_in > kOffers)
    return Error{Code::kCorrupt, "it sends more than anybody here receives"};
  matching_.Keep(std::move(message));
  return {};
}

// A receive has found its message: takes it if it is here, asks for it otherwise.
void Protocol::Accept(Operation& receive, const Matching::Message& message, std::span<const std::byte> content) {
  const int sender = message.from;
  receive.peer = sender;
  receive.matched = true;
  receive.bytes = message.bytes;
  receive.peer_id = message.send_id;
  if (message.whole) Credit(sender, message.bytes + kEagerCost);
  if (!Fits(receive, message)) {
    const std::size_t room = receive.kind == Operation::Kind::kBorrow ? 0 : receive.landing.room();
    Tell(sender, {.type = NoteType::kRefuse, .id = message.send_id, .argument = room});
    return;
  }
  if (message.whole) {
    receive.landing.Put(content);
    receive.Finish();
    return;
  }
  if (message.bytes > 0) ExpectBulk(receive);
  Tell(sender, {.type = NoteType::kClear, .id = message.send_id, .argument = receive.id});
  if (message.bytes == 0) receive.Finish();
}

// Whether there is room for the message; makes it for a borrow. The receive has failed otherwise.
bool Protocol::Fits(Operation& receive, const Matching::Message& message) {
  if (receive.kind == Operation::Kind::kBorrow) {
    const auto fits = [&](const Buffer& b) { return b.size >= message.bytes && b.size / 4 <= message.bytes; };
    const auto spare = std::find_if(spare_.begin(), spare_.end(), fits);
    if (spare != spare_.end()) {
      receive.lent = std::move(*spare);
      spare_.erase(spare);
    } else {
      receive.lent = {std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[message.bytes]), message.bytes};
    }
    if (receive.lent.bytes == nullptr) {
      receive.Finish({Code::kInvalid, Str("no memory for ", message.bytes, " bytes from ", Name(message.from))});
      return false;
    }
    receive.landing = Landing(std::span(receive.lent.bytes.get(), message.bytes));
    return true;
  }
  if (message.bytes > receive.landing.room() || (receive.landing.adds() && message.bytes % sizeof(float) != 0)) {
    receive.Finish({Code::kInvalid, Str(Name(message.from), " sent ", message.bytes, " bytes (tag ", message.tag,
                                        "), rank ", settings_.rank, " has room for ", receive.landing.room())});
    return false;
  }
  return true;
}

void Protocol::Credit(int to, std::size_t bytes) {
  std::size_t& due = member(to).credit_due;
  due += bytes;
  if (due < kWindowBytes / 4) return;
  Tell(to, {.type = NoteType::kCredit, .argument = due});
  due = 0;
}

void Protocol::OnClear(int from, const Note& note) {
  Operation* const send = SendOf(from, note.id);
  if (send == nullptr || send->done || send->matched || send->moved > 0) return;
  send->matched = true;
  send->peer_id = note.argument;
  if (send->out.empty()) return send->Finish();
  SendBulk(*send);
  Push(from);
}

void Protocol::OnRefuse(int from, const Note& note) {
  Operation* const send = SendOf(from, note.id);
  if (send == nullptr || (send->matched && !send->done)) return;
  send->Finish({Code::kInvalid, Str(Name(from), " has room for ", note.argument, " bytes, rank ", settings_.rank,
                                    " sent it ", send->bytes, " (tag ", send->tag, ")")});
}

void Protocol::OnCancel(int from, const Note& note) {
  member(from).requests_in -= matching_.RemoveOffer(from, note.id);
  for (auto& [id, receive] : operations_) {
    if (receive.kind == Operation::Kind::kSend || receive.done || receive.peer != from) continue;
    if (!receive.matched || receive.peer_id != note.id) continue;
    (void)Forget(receive);  // it never began
    receive.Finish({Code::kTimeout, Str(Name(from), " gave up sending", Wanted(receive))});
  }
}

}  // namespace freshet::fabric
