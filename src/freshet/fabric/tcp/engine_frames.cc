// What a peer's frames do.

#include <algorithm>
#include <new>

#include "fabric/tcp/engine.h"

namespace freshet::fabric::tcp {

Operation* Engine::SendOf(const Peer& to, std::uint64_t id) {
  const auto found = operations_.find(id);
  if (found == operations_.end()) return nullptr;
  Operation& send = found->second;
  return send.kind == Operation::Kind::kSend && send.peer == to.rank() ? &send : nullptr;
}

Operation* Engine::ReceiveOf(Peer& from, std::uint64_t id) {
  const auto found = operations_.find(id);
  if (found == operations_.end()) return nullptr;
  Operation& receive = found->second;
  const bool waits = receive.kind != Operation::Kind::kSend && receive.peer == from.rank() && receive.matched;
  return waits && !receive.done ? &receive : nullptr;
}

void Engine::OnMoved(Operation& operation) { operation.Finish(); }

Result<void> Engine::OnFrame(Peer& from, const Header& header, std::span<const std::byte> payload) {
  switch (header.type) {
    case FrameType::kEager:
      return OnMessage(from, {from.rank(), header.tag, header.id, payload.size(), true, {}}, payload);
    case FrameType::kRequest:
      if (header.argument > options_.max_message_bytes)
        return Error{Code::kCorrupt, Str("it offers a message of ", header.argument, " bytes, at most ",
                                         options_.max_message_bytes, " are taken")};
      return OnMessage(from, {from.rank(), header.tag, header.id, header.argument, false, {}}, {});
    case FrameType::kClear:
      if (Operation* const send = SendOf(from, header.id); send != nullptr && !send->matched && send->moved == 0) {
        send->matched = true;
        send->peer_id = header.argument;
        if (send->out.empty()) {
          send->Finish();
        } else {
          from.SendBulk(*send);
          Flush(from);
        }
      }
      return {};
    case FrameType::kRefuse:
      OnRefuse(from, header);
      return {};
    case FrameType::kCancel:
      OnCancel(from, header);
      return {};
    case FrameType::kCredit:
      from.eager_out -= std::min<std::size_t>(from.eager_out, header.argument);
      return {};
    case FrameType::kAbort:
      OnAbort(from, header, payload);
      return {};
    case FrameType::kGoodbye:
      OnGoodbye(from);
      return {};
    case FrameType::kHeartbeat:
    case FrameType::kWake:
    case FrameType::kData:
      return {};
  }
  return {};
}

Result<void> Engine::OnMessage(Peer& from, Matching::Message message, std::span<const std::byte> content) {
  if (Operation* const receive = matching_.TakeReceive(from.rank(), message.tag)) {
    Accept(*receive, message, content);
    Flush(from);
    return {};
  }
  if (message.whole) {
    from.eager_in += message.bytes + kEagerCost;
    message.content.assign(content.begin(), content.end());
  } else {
    ++from.requests_in;
  }
  if (from.eager_in > kWindowBytes + kEagerBytes * 2 || from.requests_in > kOffers)
    return Error{Code::kCorrupt, "it sends more than anybody here receives"};
  matching_.Keep(std::move(message));
  return {};
}

// A receive has found its message: takes it if it is here, asks for it otherwise.
void Engine::Accept(Operation& receive, const Matching::Message& message, std::span<const std::byte> content) {
  Peer& sender = peer(message.from);
  receive.peer = message.from;
  receive.matched = true;
  receive.bytes = message.bytes;
  receive.peer_id = message.send_id;
  if (message.whole) Credit(sender, message.bytes + kEagerCost);
  if (!Fits(receive, message)) {
    const std::size_t room = receive.kind == Operation::Kind::kBorrow ? 0 : receive.landing.room();
    sender.Send({.type = FrameType::kRefuse, .id = message.send_id, .argument = room});
    return;
  }
  if (message.whole) {
    receive.landing.Put(content);
    receive.Finish();
  } else {
    sender.Send({.type = FrameType::kClear, .id = message.send_id, .argument = receive.id});
    if (message.bytes == 0) receive.Finish();
  }
}

// Whether there is room for the message; makes it for a borrow. The receive has failed otherwise.
bool Engine::Fits(Operation& receive, const Matching::Message& message) {
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
                                        "), rank ", options_.rank, " has room for ", receive.landing.room())});
    return false;
  }
  return true;
}

void Engine::Credit(Peer& to, std::size_t bytes) {
  to.credit_due += bytes;
  if (to.credit_due < kWindowBytes / 4) return;
  to.Send({.type = FrameType::kCredit, .argument = to.credit_due});
  to.credit_due = 0;
}

void Engine::OnRefuse(Peer& from, const Header& header) {
  Operation* const send = SendOf(from, header.id);
  if (send == nullptr || (send->matched && !send->done)) return;
  send->Finish({Code::kInvalid, Str(Name(from.rank()), " has room for ", header.argument, " bytes, rank ",
                                    options_.rank, " sent it ", send->bytes, " (tag ", send->tag, ")")});
}

void Engine::OnCancel(Peer& from, const Header& header) {
  from.requests_in -= matching_.RemoveOffer(from.rank(), header.id);
  for (auto& [id, receive] : operations_) {
    if (receive.kind == Operation::Kind::kSend || receive.done || receive.peer != from.rank()) continue;
    if (receive.matched && receive.peer_id == header.id)
      receive.Finish({Code::kTimeout, Str(Name(from.rank()), " gave up sending", Wanted(receive))});
  }
}

}  // namespace freshet::fabric::tcp
