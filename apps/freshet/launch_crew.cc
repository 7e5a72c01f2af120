#include "launch_crew.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace freshet::cli {
namespace {

constexpr int kTickMs = 20;
constexpr auto kAfterKill = std::chrono::seconds(2);

}  // namespace

std::string Ended::Text() const {
  const std::string who = Str("rank ", rank, " on ", host);
  if (frozen > 0)
    return Str(who, frozen == 1 ? "" : Str(" and ", frozen - 1, " more"),
               ": frozen, that is, stopped by a signal (SIGSTOP, SIGTSTP), and now ended");
  if (signal != 0) return Str(who, ": ended by signal ", signal, " (", strsignal(signal), ")");
  if (far && code == 255)
    return Str(who, ": ssh failed (exit code 255); it has to work without a password: ssh ", host, " true");
  return Str(who, ": exit code ", code);
}

Crew::Outcome Crew::Run(const std::function<int()>& next_signal) {
  while (AnyRunning() && stage_ != Stage::kGivenUp) {
    Carry();
    Reap();
    if (const int signal = next_signal(); signal != 0) PassOn(signal);
    WatchFrozen();
    Escalate();
  }
  for (const auto& worker : workers_)
    for (LineRelay& relay : worker->relays()) {
      relay.Pump();
      relay.Finish();
    }
  return Judge();
}

bool Crew::AnyRunning() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->running(); });
}

// Waits a tick for output, and carries it.
void Crew::Carry() {
  std::vector<pollfd> polled;
  std::vector<LineRelay*> relays;
  for (const auto& worker : workers_)
    for (LineRelay& relay : worker->relays())
      if (relay.open()) {
        polled.push_back({relay.descriptor(), POLLIN, 0});
        relays.push_back(&relay);
      }
  if (poll(polled.data(), polled.size(), kTickMs) <= 0) return;
  for (std::size_t i = 0; i < polled.size(); ++i)
    if (polled[i].revents != 0) relays[i]->Pump();
}

void Crew::Reap() {
  for (std::size_t i = 0; i < workers_.size(); ++i) {  // there may be more on the way
    Worker& worker = *workers_[i];
    if (!worker.running()) continue;
    (void)worker.Testimony();  // it waits until it is heard
    worker.Reap();
    if (worker.running()) continue;
    if (worker.code() == 0) {
      one_succeeded_ = true;
      continue;
    }
    const Ended ended{worker.rank(), worker.host(), worker.code(), worker.signal(), worker.asked(), worker.far()};
    if (stage_ == Stage::kRunning && options_.goes_on && options_.goes_on(worker)) {
      done_without_.push_back(ended);
      continue;
    }
    failures_.push_back(ended);
    if (stage_ != Stage::kRunning) continue;
    again_ = options_.begins_again && options_.begins_again(ended);
    if (again_) SignalAll(SIGKILL);
    Enter(again_ ? Stage::kKilled : Stage::kFailed, again_ ? kAfterKill : options_.grace);
  }
}

void Crew::PassOn(int signal) {
  if (stopped_by_ == 0) stopped_by_ = signal;
  // The first asks; workers take the second for "now"; after that there is nobody to listen.
  if (++signals_ > 2) signal = SIGKILL;
  SignalAll(signal);
  if (signal == SIGKILL)
    Enter(Stage::kKilled, kAfterKill);
  else
    Enter(Stage::kAsked, signals_ == 1 ? options_.stop_grace : options_.grace);
}

void Crew::Escalate() {
  if (stage_ == Stage::kRunning || clock_.Now() < deadline_) return;
  switch (stage_) {
    case Stage::kFailed:
      SignalAll(SIGTERM);
      return Enter(Stage::kAsked, options_.grace);
    case Stage::kAsked:
      SignalAll(SIGKILL);
      return Enter(Stage::kKilled, kAfterKill);
    default:  // an ssh whose other end does not answer, or a process the system holds back
      for (const auto& worker : workers_) worker->Kill();
      return Enter(Stage::kGivenUp, {});
  }
}

void Crew::WatchFrozen() {
  if (stage_ == Stage::kKilled || !frozen_.Look()) return;
  const base::Clock::Duration limit = options_.frozen;
  if (stage_ == Stage::kRunning && options_.goes_on) {
    if (limit > limit.zero()) frozen_.KillAfter(limit);
    return;
  }
  if (stage_ == Stage::kRunning && (limit == limit.zero() || frozen_.all_for() < limit)) return;
  if (stage_ == Stage::kRunning) {
    SignalAll(SIGTERM);
    Enter(Stage::kAsked, options_.grace);
  }
  frozen_.WakeToEnd();
}

void Crew::SignalAll(int signal) {
  for (const auto& worker : workers_) worker->Signal(signal);
}

void Crew::Enter(Stage stage, base::Clock::Duration patience) {
  stage_ = stage;
  deadline_ = clock_.Now() + patience;
}

Crew::Outcome Crew::Judge() const {
  Outcome outcome;
  outcome.stopped_by = stopped_by_;
  outcome.again = again_ && stopped_by_ == 0;
  // Who was told to end is no cause, nor is one that noticed the loss of another, unless there is nobody else.
  const Ended* cause = nullptr;
  // Nobody has come to the end: then those without whom others went on, until too few were left, are the cause.
  std::vector<Ended> failures = failures_;
  if (!one_succeeded_) failures.insert(failures.begin(), done_without_.begin(), done_without_.end());
  const bool too_few = !one_succeeded_ && done_without_.size() > 1 && done_without_.back().code == kPeerLost;
  for (const Ended& failure : failures)
    if (cause == nullptr && !failure.asked && failure.code != kPeerLost) cause = &failure;
  if (cause == nullptr && stopped_by_ == 0 && !failures.empty()) cause = &failures[0];
  if (cause != nullptr) outcome.cause = *cause;
  const auto& woken = frozen_.woken();
  if (!woken.empty() && stopped_by_ == 0 && (cause == nullptr || cause->asked || cause->code == kPeerLost))
    outcome.cause = Ended{.rank = woken[0]->rank(),
                          .host = woken[0]->host(),
                          .code = kPeerLost,
                          .far = woken[0]->far(),
                          .frozen = static_cast<int>(woken.size())};
  if (outcome.cause)
    outcome.code = too_few ? kPeerLost : outcome.cause->code;
  else if (stopped_by_ != 0 && (!failures.empty() || AnyRunning()))
    outcome.code = 128 + stopped_by_;
  return outcome;
}

}  // namespace freshet::cli
