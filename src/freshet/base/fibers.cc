#include "base/fibers.h"

#include <cstdio>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/fiber.h"
#include "base/random.h"

namespace freshet::base {
namespace {

thread_local Fibers* running_here = nullptr;
thread_local const void* own_of_thread = nullptr;

}  // namespace

struct Fibers::Scheduler {
  using Moment = std::pair<Duration, std::uint64_t>;  // and which of those at that time
  struct Inhabitant {
    Inhabitant(int its_house, std::function<void()> body) : house(its_house), fiber(std::move(body)) {}
    const int house;
    std::vector<Inhabitant*>* on = nullptr;  // those who wait for a condition, of whom it is one
    bool notified = false;
    const void* own = nullptr;
    Moment alarm{Duration::max(), 0};
    Fiber fiber;
  };
  struct Due {
    Inhabitant* sleeper = nullptr;
    std::function<void()> event;
  };

  explicit Scheduler(std::uint64_t seed) : random(seed, "fibers") {}

  void Start(int house, std::function<void()> body) {
    auto& all = everybody.emplace_back(std::make_unique<Inhabitant>(house, std::move(body)));
    ready.push_back(all.get());
  }
  Moment Add(Duration when, Due due) {
    const Moment moment{when, ++moments};
    agenda.emplace(moment, std::move(due));
    return moment;
  }
  // The inhabitant that runs waits: for a condition, or (none) for its time. False when that is over.
  bool Await(std::vector<Inhabitant*>* on, Duration end, Mutex* held) UNCHECKED_LOCKS {
    CHECK(current != nullptr);  // only fibers wait
    Inhabitant& self = *current;
    self.notified = false;
    if (end <= now) {
      ready.push_back(&self);  // others go first
    } else {
      self.on = on;
      if (end < Duration::max()) self.alarm = Add(end, {.sleeper = &self, .event = {}});
      if (on != nullptr) on->push_back(&self);
    }
    if (held != nullptr) held->unlock();
    self.fiber.Leave();
    if (held != nullptr) held->lock();
    return self.notified;
  }
  void Wake(Inhabitant& sleeper, bool notified) {
    sleeper.notified = notified;
    if (sleeper.on != nullptr) std::erase(*std::exchange(sleeper.on, nullptr), &sleeper);
    if (sleeper.alarm.first < Duration::max()) agenda.erase(std::exchange(sleeper.alarm, Moment{Duration::max(), 0}));
    ready.push_back(&sleeper);
  }
  void Notify(const std::vector<Inhabitant*>& on, bool all) {
    while (!on.empty()) {
      Wake(*on.front(), true);
      if (!all) return;
    }
  }
  void RunOne() {
    const auto chosen = ready.begin() + static_cast<std::ptrdiff_t>(random.Below(ready.size()));
    Inhabitant* const next = *chosen;
    ready.erase(chosen);
    if (frozen.contains(next->house)) return kept.push_back(next);
    current = next;
    next->fiber.Enter();
    current = nullptr;
    if (contending.empty() || contending.back() != next) moved = true;
    if (!next->fiber.ended()) return;
    std::erase_if(everybody, [&](const auto& other) { return other.get() == next; });
  }
  // What is due next happens, and time moves to it.
  void MoveHands(Pace* beside) {
    if (beside != nullptr) {
      const Duration next = agenda.empty() ? Duration::max() : agenda.begin()->first.first;
      now = std::max(now, beside->Advance(next));
      if (now < next) return;
    }
    if (agenda.empty()) {
      std::fprintf(stderr, "%zu fibers wait for what nobody will ever do\n", everybody.size());
      CHECK(!agenda.empty());
    }
    auto first = agenda.extract(agenda.begin());
    now = std::max(now, first.key().first);
    if (first.mapped().sleeper != nullptr) return Wake(*first.mapped().sleeper, false);
    first.mapped().event();
  }

  Random random;
  Duration now{0};
  std::uint64_t moments = 0;
  std::map<Moment, Due> agenda;
  std::vector<std::unique_ptr<Inhabitant>> everybody;
  std::vector<Inhabitant*> ready;
  std::vector<Inhabitant*> contending;  // for a mutex, in vain so far
  std::vector<Inhabitant*> kept;        // could go on, but their house is frozen
  std::set<int> frozen;
  Inhabitant* current = nullptr;
  bool moved = false;  // something has happened since those who contend last tried
};

class Fibers::Turnstile final : public Condition {
 public:
  explicit Turnstile(Scheduler& scheduler) : scheduler_(scheduler) {}
  void Wait(Mutex& held) override { (void)scheduler_.Await(&waiting_, Duration::max(), &held); }
  bool WaitUntil(Mutex& held, Duration end) override { return scheduler_.Await(&waiting_, end, &held); }
  void NotifyOne() override { scheduler_.Notify(waiting_, false); }
  void NotifyAll() override { scheduler_.Notify(waiting_, true); }

 private:
  Scheduler& scheduler_;
  std::vector<Scheduler::Inhabitant*> waiting_;
};

Fibers::Fibers(std::uint64_t seed) : scheduler_(std::make_unique<Scheduler>(seed)) {}
Fibers::~Fibers() = default;

Clock::Duration Fibers::Now() const { return scheduler_->now; }
void Fibers::Sleep(Duration duration) { (void)scheduler_->Await(nullptr, Now() + duration, nullptr); }
std::unique_ptr<Condition> Fibers::NewCondition() const { return std::make_unique<Turnstile>(*scheduler_); }
bool Fibers::WaitReadable(int, Duration end) const { return scheduler_->Await(nullptr, end, nullptr); }

std::function<void()> Fibers::Start(std::function<void()> body) const {
  scheduler_->Start(house(), std::move(body));
  return [] {};  // who joins has waited for its last word
}
void Fibers::StartIn(int house, std::function<void()> body) { scheduler_->Start(house, std::move(body)); }
void Fibers::At(Duration when, std::function<void()> event) {
  scheduler_->Add(when, {.sleeper = nullptr, .event = std::move(event)});
}
int Fibers::house() const { return scheduler_->current == nullptr ? 0 : scheduler_->current->house; }

void Fibers::Run(Pace* beside) {
  CHECK(running_here == nullptr);
  running_here = this;
  Scheduler& s = *scheduler_;
  while (!s.everybody.empty()) {
    if (!s.ready.empty()) {
      s.RunOne();
    } else if (s.moved && !s.contending.empty()) {
      s.moved = false;
      s.ready.swap(s.contending);
    } else {
      s.MoveHands(beside);
      s.moved = true;
    }
  }
  running_here = nullptr;
}

void Fibers::Freeze(int house) { scheduler_->frozen.insert(house); }
void Fibers::Thaw(int house) {
  Scheduler& s = *scheduler_;
  s.frozen.erase(house);
  s.ready.insert(s.ready.end(), s.kept.begin(), s.kept.end());
  s.kept.clear();
}

const void*& Fibers::Own() {
  const bool fiber = running_here != nullptr && running_here->scheduler_->current != nullptr;
  return fiber ? running_here->scheduler_->current->own : own_of_thread;
}

bool Fibers::LetOthersRun(bool again) {
  if (running_here == nullptr || running_here->scheduler_->current == nullptr) return false;
  Scheduler& s = *running_here->scheduler_;
  Scheduler::Inhabitant& self = *s.current;
  s.contending.push_back(&self);
  if (!again) s.moved = true;
  self.fiber.Leave();
  return true;
}

}  // namespace freshet::base
