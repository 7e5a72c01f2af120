// How a group ends, or loses members: deaths, silences, giving up and leaving in order.

#include <algorithm>

#include "fabric/protocol/protocol.h"

namespace freshet::fabric {

std::string Protocol::Name(int rank) const { return Str("rank ", rank, " (", host(rank), ")"); }

std::string Protocol::LeftText(int rank) const { return Str(Name(rank), " is gone: it has left the group"); }

std::string Protocol::Names(std::span<const int> ranks) const {
  std::string names;
  for (const int rank : ranks) names += Str(names.empty() ? "" : ", ", Name(rank));
  return names;
}

std::string Protocol::Wanted(const Operation& operation) const {
  const std::string tag = Str(" (tag ", operation.tag, ")");
  const std::string several = operation.among.empty() ? "any rank" : Str("any of ", Names(operation.among));
  const std::string other = operation.peer == kAnyRank ? several : Name(operation.peer);
  if (operation.kind == Operation::Kind::kLoss)
    return Str("; rank ", settings_.rank, " was waiting for the loss of ", other);
  if (operation.kind == Operation::Kind::kSend)
    return Str("; rank ", settings_.rank, " was sending ", HumanBytes(static_cast<double>(operation.bytes)), " to ",
               other, tag);
  const std::size_t bytes = operation.matched ? operation.bytes : operation.landing.room();
  const std::string what = bytes > 0 ? HumanBytes(static_cast<double>(bytes)) : "a message";
  return Str("; rank ", settings_.rank, " was waiting for ", what, " from ", other, tag);
}

base::Clock::Duration Protocol::Tick() {
  const auto now = clock_.Now();
  const auto patience = settings_.heartbeat * settings_.heartbeat_misses;
  // Who was stopped itself has not listened, and cannot say that others were silent.
  const bool overslept = now - last_tick_ > patience / 2;
  last_tick_ = now;
  auto next = settings_.heartbeat;
  for (int rank = 0; rank < size(); ++rank) {
    Member& other = member(rank);
    if (!Open(rank) || other.left || failure_.has_value()) continue;
    if (std::exchange(other.heard, false) || overslept) other.last_heard = now;
    if (now - other.last_heard > patience) {
      Lose(rank, Str("silent for ", Fixed(base::Seconds(now - other.last_heard), 1), " s"));
      continue;
    }
    if (now - other.last_spoken >= settings_.heartbeat) {
      other.last_spoken = now;
      // What still waits to be written says as much.
      if (Idle(rank)) Tell(rank, {.type = NoteType::kHeartbeat});
      Push(rank);
    }
    next = std::min(next, other.last_spoken + settings_.heartbeat - now);
  }
  return std::max(next, base::Clock::Duration(std::chrono::milliseconds(1)));
}

void Protocol::Lose(int lost, const std::string& why) {
  const bool news = !left(lost) && !failure_.has_value();
  if (news && reports()) return ReportLoss(lost, Str(Name(lost), " is gone: ", why));
  Shut(lost);
  if (news) Fail(lost, Str(Name(lost), " is gone: ", why));
}

// The first to notice tells all others, and they tell each other, so that all name the same member: whoever hears of a
// loss may leave for it, and its goodbye must not be heard before its reason.
void Protocol::Fail(int culprit, std::string text) {
  if (failure_.has_value()) return;
  if (reports()) return ReportLoss(culprit, std::move(text));
  if (!left(culprit)) missed_ = culprit;
  TellAll(culprit, left(culprit), text);
  Stop({Code::kPeerLost, std::move(text)});
}

void Protocol::TellAll(int culprit, bool gave_up, const std::string& text) {
  for (int rank = 0; rank < size(); ++rank) {
    if (!Open(rank) || left(rank)) continue;
    Send(rank, {.type = NoteType::kAbort, .id = gave_up ? 1U : 0U, .argument = static_cast<std::uint64_t>(culprit)},
         std::as_bytes(std::span(text)), nullptr);
    Push(rank);
  }
}

void Protocol::Stop(Error why) {
  if (failure_.has_value()) return;
  failure_ = std::move(why);
  for (auto& [id, operation] : operations_) {
    if (operation.done) continue;
    if (operation.peer != kAnyRank) (void)Forget(operation);
    matching_.Remove(operation);
    operation.Finish(*failure_);
  }
  OnStop();
}

void Protocol::Abort(const std::string& why) {
  if (failure_.has_value()) return;
  const std::string text = Str(Name(rank()), " gave up: ", why);
  TellAll(rank(), true, reports() ? Str("it gave up: ", why) : text);
  Stop({Code::kPeerLost, text});
}

Result<void> Protocol::OnAbort(int from, const Note& note, std::span<const std::byte> payload) {
  if (failure_.has_value()) return {};
  std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
  if (reports()) return Error{Code::kPeerLost, std::move(text)};  // so its sender is lost, for the reason it gives
  const int culprit = static_cast<int>(note.argument);
  const bool gave_up = note.id == 1;
  TellAll(culprit, gave_up, text);
  if (!gave_up && culprit != rank() && culprit >= 0 && culprit < size()) missed_ = culprit;
  if (culprit == rank()) text = Str(Name(from), " has given up on this member: ", text);
  Stop({Code::kPeerLost, std::move(text)});
  return {};
}

// All it ever sent is here: nothing of it can come any more, and nothing reaches it. That is a loss to who still needs
// it.
void Protocol::OnGoodbye(int from) {
  member(from).left = true;
  member(from).requests_in = 0;
  matching_.RemoveOffers(from);
  if (reports()) return ReportLoss(from, LeftText(from));
  const bool needed = std::any_of(operations_.begin(), operations_.end(), [&](const auto& entry) {
    const Operation& operation = entry.second;
    return !operation.done && operation.kind != Operation::Kind::kLoss && !Reachable(operation);
  });
  if (needed) Fail(from, LeftText(from));
}

void Protocol::SayGoodbye() {
  for (int rank = 0; rank < size(); ++rank) {
    if (!Open(rank) || left(rank)) continue;
    Tell(rank, {.type = NoteType::kGoodbye, .argument = sums()});
    Push(rank);
  }
}

}  // namespace freshet::fabric
