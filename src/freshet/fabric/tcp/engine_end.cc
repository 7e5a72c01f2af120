// How a group ends: deaths, silences, giving up and leaving in order.

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

#include "fabric/tcp/engine.h"

namespace freshet::fabric::tcp {

std::string Engine::Name(int rank) const { return Str("rank ", rank, " (", host(rank), ")"); }

std::string Engine::Wanted(const Operation& operation) const {
  const std::string tag = Str(" (tag ", operation.tag, ")");
  const std::string other = operation.peer == kAnyRank ? "any rank" : Name(operation.peer);
  if (operation.kind == Operation::Kind::kSend)
    return Str("; rank ", options_.rank, " was sending ", HumanBytes(static_cast<double>(operation.bytes)), " to ",
               other, tag);
  const std::size_t bytes = operation.matched ? operation.bytes : operation.landing.room();
  const std::string what = bytes > 0 ? HumanBytes(static_cast<double>(bytes)) : "a message";
  return Str("; rank ", options_.rank, " was waiting for ", what, " from ", other, tag);
}

base::Clock::Duration Engine::Tick() {
  const auto now = clock_.Now();
  const auto patience = options_.heartbeat * options_.heartbeat_misses;
  // Who was stopped itself has not listened, and cannot say that others were silent.
  const bool overslept = now - last_tick_ > patience / 2;
  last_tick_ = now;
  auto next = options_.heartbeat;
  for (const auto& other : peers_) {
    if (!other->open() || other->left || failure_.has_value()) continue;
    if (std::exchange(other->heard, false) || overslept) other->last_heard = now;
    if (now - other->last_heard > patience) {
      Lose(*other, Str("silent for ", Fixed(base::Seconds(now - other->last_heard), 1), " s"));
      continue;
    }
    if (now - other->last_spoken >= options_.heartbeat) {
      other->last_spoken = now;
      // What still waits to be written says as much.
      if (other->Idle()) other->Send({.type = FrameType::kHeartbeat});
      Flush(*other);
    }
    next = std::min(next, other->last_spoken + options_.heartbeat - now);
  }
  return std::max(next, base::Clock::Duration(std::chrono::milliseconds(1)));
}

void Engine::Lose(Peer& lost, const std::string& why) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, lost.socket(), nullptr);
  lost.Close();
  if (!lost.left && !failure_.has_value()) Fail(lost.rank(), Str(Name(lost.rank()), " is gone: ", why));
}

// The first to notice tells all others, and they tell each other, so that all name the same member: whoever hears of a
// loss may leave for it, and its goodbye must not be heard before its reason.
void Engine::Fail(int culprit, std::string text) {
  if (failure_.has_value()) return;
  Tell(culprit, text);
  Stop({Code::kPeerLost, std::move(text)});
}

void Engine::Tell(int culprit, const std::string& text) {
  for (const auto& other : peers_) {
    if (!other->open() || other->left) continue;
    other->SendText({.type = FrameType::kAbort, .argument = static_cast<std::uint64_t>(culprit)}, text);
    Flush(*other);
  }
}

void Engine::Stop(Error why) {
  if (failure_.has_value()) return;
  failure_ = std::move(why);
  for (auto& [id, operation] : operations_) {
    if (operation.done) continue;
    if (operation.peer != kAnyRank) peer(operation.peer).Forget(operation);
    matching_.Remove(operation);
    operation.Finish(*failure_);
  }
  Interrupt();
}

void Engine::Abort(const std::string& why) { Fail(options_.rank, Str(Name(options_.rank), " gave up: ", why)); }

void Engine::OnAbort(Peer& from, const Header& header, std::span<const std::byte> payload) {
  if (failure_.has_value()) return;
  std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
  Tell(static_cast<int>(header.argument), text);
  if (header.argument == static_cast<std::uint64_t>(options_.rank))
    text = Str(Name(from.rank()), " has given up on this member: ", text);
  Stop({Code::kPeerLost, std::move(text)});
}

// All it ever sent is here: nothing of it can come any more, and nothing reaches it. That is a loss to who still needs
// it.
void Engine::OnGoodbye(Peer& from) {
  from.left = true;
  from.requests_in = 0;
  matching_.RemoveOffers(from.rank());
  const bool needed = std::any_of(operations_.begin(), operations_.end(), [&](const auto& entry) {
    const Operation& operation = entry.second;
    return !operation.done && (operation.peer == from.rank() || (operation.peer == kAnyRank && !AnyoneLeft()));
  });
  if (needed) Fail(from.rank(), LeftText(from.rank()));
}

std::string Engine::LeftText(int rank) const { return Str(Name(rank), " is gone: it has left the group"); }

bool Engine::AnyoneLeft() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const auto& other) { return other->open() && !other->left; });
}

void Engine::SayGoodbye() {
  for (const auto& other : peers_) {
    if (!other->open() || other->left) continue;
    other->Send({.type = FrameType::kGoodbye});
    Flush(*other);
  }
}

bool Engine::Quiet() {
  bool quiet = true;
  for (const auto& other : peers_) {
    if (!other->open() || other->left) continue;
    if (!other->Blocked()) ::shutdown(other->socket(),
                                      SHUT_WR);  // an end is acknowledged at once, other bytes are not
    int unsent = 0;
    ::ioctl(other->socket(), SIOCOUTQ, &unsent);
    quiet = quiet && !other->Blocked() && unsent == 0;
  }
  return quiet;
}

}  // namespace freshet::fabric::tcp
