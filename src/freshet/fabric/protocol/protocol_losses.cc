// Losses in a group that goes on after them.

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "fabric/protocol/protocol.h"

namespace freshet::fabric {

// Ends what has to do with the lost member and nothing else. It is told, should it still live: the two have then lost
// each other.
void Protocol::ReportLoss(int lost, std::string text) {
  Member& other = member(lost);
  if (failure_.has_value() || std::exchange(other.lost, true)) return;
  if (!other.left && Open(lost)) {
    const std::string reason = Str("it has given up on this member: ", text);
    Send(lost, {.type = NoteType::kAbort, .argument = static_cast<std::uint64_t>(lost)},
         std::as_bytes(std::span(reason)), nullptr);
    Push(lost);
    Shut(lost);
  }
  losses_.push_back({.rank = lost, .left = other.left, .why = {Code::kPeerLost, std::move(text)}});
  other.requests_in = 0;
  matching_.RemoveOffers(lost);
  for (auto& [id, operation] : operations_) {
    if (operation.done) continue;
    if (operation.kind == Operation::Kind::kLoss) {
      EndLoss(operation);
    } else if (!Reachable(operation)) {
      if (operation.peer == lost) (void)Forget(operation);
      matching_.Remove(operation);
      operation.Finish(Unreachable(operation));
    }
  }
  OnLost(lost);
}

Result<std::uint64_t> Protocol::StartLoss(const From& of, std::size_t known) {
  TRY(CheckFrom(of, "wait for the loss of"));
  Operation& wait = Add(Operation::Kind::kLoss, of, 0);
  wait.known = known;
  EndLoss(wait);
  return wait.id;
}

void Protocol::EndLoss(Operation& wait) const {
  std::size_t seen = 0;
  for (const Loss& loss : losses_) {
    if (!wait.Takes(loss.rank) || seen++ < wait.known) continue;
    wait.peer = loss.rank;
    return wait.Finish();
  }
}

bool Protocol::Reachable(const Operation& operation) const {
  if (operation.peer != kAnyRank) return !left(operation.peer) && !lost(operation.peer);
  for (int rank = 0; rank < size(); ++rank)
    if (operation.Takes(rank) && Open(rank) && !left(rank) && !lost(rank)) return true;
  return false;
}

Error Protocol::Unreachable(const Operation& operation) const {
  if (operation.peer != kAnyRank)
    return lost(operation.peer) ? LossOf(operation.peer) : Error{Code::kPeerLost, LeftText(operation.peer)};
  const std::string all = operation.among.empty() ? "all other members" : Names(operation.among);
  if (!reports()) return {Code::kPeerLost, Str(all, " have left the group")};
  return {Code::kPeerLost, Str(all, " are lost", losses_.empty() ? "" : Str("; last, ", losses_.back().why.text))};
}

const Error& Protocol::LossOf(int lost) const {
  const auto found = std::find_if(losses_.begin(), losses_.end(), [&](const Loss& loss) { return loss.rank == lost; });
  CHECK(found != losses_.end());
  return found->why;
}

}  // namespace freshet::fabric
