#include "fabric/protocol/protocol.h"

#include <algorithm>

#include "base/check.h"

namespace freshet::fabric {

Protocol::Protocol(Settings settings, const base::Clock& clock)
    : settings_(std::move(settings)), clock_(clock), members_(settings_.hosts.size()), last_tick_(clock.Now()) {
  for (Member& member : members_) member.last_heard = member.last_spoken = last_tick_;
}

Result<void> Protocol::CheckRank(int rank, std::string_view doing) const {
  if (failure_.has_value())
    return Error{failure_->code,
                 Str(failure_->text, "; rank ", settings_.rank, " was about to ", doing, " rank ", rank)};
  if (rank < 0 || rank >= size() || rank == settings_.rank)
    return Error{Code::kInvalid, Str("rank ", settings_.rank, " of ", size(), " cannot ", doing, " rank ", rank)};
  return {};
}

Result<void> Protocol::CheckFrom(const From& from, std::string_view doing) const {
  if (from.rank() != kAnyRank) return CheckRank(from.rank(), doing);
  if (failure_.has_value()) return *failure_;
  if (!from.among().has_value()) return {};
  if (from.among()->empty())
    return Error{Code::kInvalid, Str("rank ", settings_.rank, " cannot ", doing, " nobody: name at least one rank")};
  for (const int rank : *from.among()) TRY(CheckRank(rank, doing));
  return {};
}

Operation& Protocol::Add(Operation::Kind kind, const From& from, Tag tag) {
  const std::uint64_t id = next_id_++;
  Operation& operation = operations_[id];
  operation.id = id;
  operation.kind = kind;
  operation.peer = from.rank();
  if (from.among().has_value()) operation.among.assign(from.among()->begin(), from.among()->end());
  operation.tag = tag;
  return operation;
}

Result<std::uint64_t> Protocol::StartSend(int to, Tag tag, std::span<const std::byte> bytes, std::size_t hollow) {
  TRY(CheckRank(to, "send to"));
  Member& other = member(to);
  if (other.lost)
    return Error{Code::kPeerLost, Str(LossOf(to).text, "; rank ", settings_.rank, " was about to send to it")};
  if (other.left) {
    Fail(to, LeftText(to));
    return *failure_;
  }
  if (bytes.size() > settings_.max_message_bytes)
    return Error{Code::kInvalid, Str("a message of ", bytes.size(), " bytes is longer than ",
                                     settings_.max_message_bytes, ", the most that may be sent at once")};
  Operation& send = Add(Operation::Kind::kSend, to, tag);
  send.out = bytes;
  send.hollow = hollow;
  send.bytes = bytes.size();
  const std::size_t cost = bytes.size() + kEagerCost;
  if (bytes.size() + hollow <= settings_.eager_bytes && other.eager_out + cost <= kWindowBytes) {
    other.eager_out += cost;
    send.moved = bytes.size();
    Send(to, {.type = NoteType::kEager, .tag = tag, .id = send.id}, bytes, &send);
  } else {
    Tell(to, {.type = NoteType::kRequest, .tag = tag, .id = send.id, .argument = bytes.size()});
  }
  const std::uint64_t id = send.id;
  Push(to);
  return id;
}

Result<std::uint64_t> Protocol::StartReceive(Operation::Kind kind, const From& from, Tag tag, Landing landing) {
  TRY(CheckFrom(from, "receive from"));
  Operation& receive = Add(kind, from, tag);
  receive.landing = landing;
  if (auto message = matching_.TakeMessage(receive)) {
    Member& sender = member(message->from);
    if (message->whole) {
      sender.eager_in -= message->bytes + kEagerCost;
    } else {
      --sender.requests_in;
    }
    Accept(receive, *message, message->content);
    Push(message->from);
  } else if (!Reachable(receive)) {
    Error why = Unreachable(receive);
    operations_.erase(receive.id);
    if (reports()) return why;
    Fail(from.rank(), std::move(why.text));
    return *failure_;
  } else {
    matching_.Post(receive);
  }
  return receive.id;
}

bool Protocol::Done(std::uint64_t id) const {
  const auto found = operations_.find(id);
  return found == operations_.end() || found->second.done;
}

bool Protocol::Waits() const {
  return std::any_of(operations_.begin(), operations_.end(), [](const auto& entry) { return !entry.second.done; });
}

Result<Arrived> Protocol::Take(std::uint64_t id) {
  const auto found = operations_.find(id);
  if (found == operations_.end())
    return failure_.has_value() ? *failure_ : Error{Code::kInvalid, "this transfer is not under way"};
  Operation& operation = found->second;
  CHECK(operation.done);
  if (operation.error.has_value()) {
    Error error = std::move(*operation.error);
    if (error.code == Code::kPeerLost) error.text += Wanted(operation);
    operations_.erase(found);
    return error;
  }
  Arrived arrived{.from = operation.peer, .bytes = operation.bytes, .view = {}};
  if (operation.kind == Operation::Kind::kBorrow) {
    arrived.view = std::span<const std::byte>(operation.lent.bytes.get(), operation.bytes);
  } else {
    operations_.erase(found);
  }
  return arrived;
}

void Protocol::Release(std::uint64_t id) {
  const auto found = operations_.find(id);
  if (found == operations_.end()) return;
  CHECK(found->second.kind == Operation::Kind::kBorrow && found->second.done);
  spare_.push_back(std::move(found->second.lent));
  if (spare_.size() > 2 * members_.size()) spare_.pop_front();
  operations_.erase(found);
}

Error Protocol::Timeout(std::uint64_t id, base::Clock::Duration waited) {
  const auto found = operations_.find(id);
  CHECK(found != operations_.end());
  Operation& operation = found->second;
  const bool sends = operation.kind == Operation::Kind::kSend;
  Error error{Code::kTimeout, Str("nothing for ", Fixed(base::Seconds(waited), 1), " s", Wanted(operation))};
  if (!sends) matching_.Remove(operation);
  if (operation.peer != kAnyRank && !Forget(operation)) {
    // Its bytes are half way, and cannot be called back.
    Fail(operation.peer,
         Str(Name(operation.peer), sends ? " does not take what it asked for" : " does not send what it offered"));
  } else if (sends && operation.moved == 0) {
    Tell(operation.peer, {.type = NoteType::kCancel, .id = id});
    Push(operation.peer);
  }
  operations_.erase(id);
  return error;
}

Error Protocol::TimeoutAny(std::span<const Transfer> transfers, base::Clock::Duration waited) const {
  const auto first = operations_.find(transfers.front().id);
  CHECK(first != operations_.end());  // it would be done
  const std::string others = transfers.size() > 1 ? Str(", or for ", transfers.size() - 1, " other transfers") : "";
  return {Code::kTimeout, Str("nothing for ", Fixed(base::Seconds(waited), 1), " s", Wanted(first->second), others)};
}

}  // namespace freshet::fabric
