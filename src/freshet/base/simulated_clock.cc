#include "base/simulated_clock.h"

#include <poll.h>

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace freshet::base {
namespace {

constexpr int kPatienceMs = 1;  // for what was written to a descriptor to be there

thread_local const SimulatedClock* living_by = nullptr;

}  // namespace

class SimulatedClock::Turnstile final : public Condition {
 public:
  explicit Turnstile(const SimulatedClock& clock) : clock_(clock) {}
  void Wait(Mutex& held) override { (void)WaitUntil(held, Duration::max()); }
  // The checker does not see that Await lets go of it.
  bool WaitUntil(Mutex& held, Duration end) override UNCHECKED_LOCKS {
    Waiter waiter{.on = this, .end = end};
    const bool notified = clock_.Await(waiter, [&]() UNCHECKED_LOCKS { held.unlock(); });
    held.lock();
    return notified;
  }
  void NotifyOne() override { clock_.Notify(this, false); }
  void NotifyAll() override { clock_.Notify(this, true); }

 private:
  const SimulatedClock& clock_;
};

SimulatedClock::Participant::Participant(const SimulatedClock& clock) : clock_(clock) {
  CHECK(living_by == nullptr);
  living_by = &clock_;
  clock_.Enter();
}
SimulatedClock::Participant::~Participant() {
  living_by = nullptr;
  clock_.Leave();
}

std::function<void()> SimulatedClock::Start(std::function<void()> body) const {
  Enter();  // before it runs: time stands until it does
  return Clock::Start([this, body = std::move(body)] {
    living_by = this;
    body();
    living_by = nullptr;
    Leave();
  });
}

void SimulatedClock::Enter() const {
  const Lock lock(mutex_);
  ++running_;
}
void SimulatedClock::Leave() const {
  const Lock lock(mutex_);
  --running_;
  MoveHands();
}

Clock::Duration SimulatedClock::Now() const {
  const Lock lock(mutex_);
  return now_;
}

void SimulatedClock::Sleep(Duration duration) {
  Waiter waiter{.end = Now() + duration};
  (void)Await(waiter, [] {});
}

std::unique_ptr<Condition> SimulatedClock::NewCondition() const { return std::make_unique<Turnstile>(*this); }

bool SimulatedClock::WaitReadable(int descriptor, Duration end) const {
  Waiter waiter{.descriptor = descriptor, .end = end};
  return Await(waiter, [] {});
}

void SimulatedClock::Advance(Duration duration) {
  const Lock lock(mutex_);
  now_ += duration;
  WakeDue();
}

bool SimulatedClock::Await(Waiter& waiter, const std::function<void()>& after) const {
  waiter.counts = living_by == this;
  const Lock lock(mutex_);
  if (now_ >= waiter.end && waiter.descriptor < 0) {
    after();
    return false;
  }
  waiters_.push_back(&waiter);
  if (waiter.counts) --running_;
  after();
  if (waiter.descriptor >= 0) (void)WakeReadable(0);
  WakeDue();
  MoveHands();
  // Others may write to a descriptor while they run on.
  while (!waiter.woken && waiter.descriptor >= 0) {
    waiter.wake.wait_for(mutex_, std::chrono::milliseconds(kPatienceMs));
    if (!waiter.woken) (void)WakeReadable(0);
  }
  waiter.wake.wait(mutex_, [&] { return waiter.woken; });
  return waiter.notified;
}

void SimulatedClock::Wake(Waiter& waiter) const {
  waiter.woken = true;
  waiters_.remove(&waiter);
  if (waiter.counts) ++running_;  // it runs from now on, though it may take the system a while
  waiter.wake.notify_one();
}

void SimulatedClock::Notify(const void* on, bool all) const {
  const Lock lock(mutex_);
  const std::list<Waiter*> waiters = waiters_;
  for (Waiter* const waiter : waiters) {
    if (waiter->on != on) continue;
    waiter->notified = true;
    Wake(*waiter);
    if (!all) return;
  }
}

bool SimulatedClock::WakeReadable(int patience) const {
  std::vector<pollfd> descriptors;
  std::vector<Waiter*> of;
  for (Waiter* const waiter : waiters_) {
    if (waiter->descriptor < 0) continue;
    descriptors.push_back({.fd = waiter->descriptor, .events = POLLIN, .revents = 0});
    of.push_back(waiter);
  }
  if (descriptors.empty() || ::poll(descriptors.data(), descriptors.size(), patience) <= 0) return false;
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (descriptors[i].revents == 0) continue;
    of[i]->notified = true;
    Wake(*of[i]);
  }
  return true;
}

void SimulatedClock::WakeDue() const {
  const std::list<Waiter*> waiters = waiters_;
  for (Waiter* const waiter : waiters)
    if (waiter->end <= now_) Wake(*waiter);
}

void SimulatedClock::MoveHands() const {
  const auto live = [](const Waiter* waiter) { return waiter->counts; };
  while (running_ == 0 && std::any_of(waiters_.begin(), waiters_.end(), live)) {
    if (WakeReadable(kPatienceMs)) continue;
    Duration next = Duration::max();
    for (const Waiter* const waiter : waiters_) next = std::min(next, waiter->end);
    if (next == Duration::max()) return;  // for somebody who does not live by this clock
    now_ = std::max(now_, next);
    WakeDue();
  }
}

}  // namespace freshet::base
