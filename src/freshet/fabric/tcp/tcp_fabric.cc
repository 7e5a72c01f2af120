#include "fabric/tcp/tcp_fabric.h"

#include <sys/epoll.h>

#include <algorithm>

#include "base/cores.h"
#include "fabric/tcp/bootstrap.h"

namespace freshet::fabric {
namespace {

using Duration = base::Clock::Duration;

// For this long after somebody waited the keeper stays out of the way: waking it for every message would cost as much
// as the message.
constexpr Duration kGrace = std::chrono::milliseconds(5);
constexpr Duration kFarewell = std::chrono::seconds(1);

void Breathe() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Result<std::unique_ptr<TcpFabric>> TcpFabric::Connect(const TcpOptions& options, base::Clock& clock) {
  TRY(options.Validate());
  tcp::Bootstrap bootstrap(options, clock);
  std::vector<tcp::Link> links = TRY(bootstrap.Run());
  return std::unique_ptr<TcpFabric>(new TcpFabric(options, std::move(links), bootstrap.strangers(), clock));
}

TcpFabric::TcpFabric(const TcpOptions& options, std::vector<tcp::Link> links, std::uint64_t strangers,
                     base::Clock& clock)
    : options_(options), clock_(clock), strangers_(strangers), engine_(options, std::move(links), clock) {
  if (engine_.near() <= base::HostCores()) spin_ = options.spin;
  if (options.size > 1) keeper_ = std::thread([this] { Keep(); });
}

TcpFabric::~TcpFabric() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    engine_.SayGoodbye();
    engine_.Stop({Code::kStopped, Str("rank ", options_.rank, " has closed its fabric")});
    engine_.Interrupt();
    stirred_.notify_all();
    posted_.notify_all();
    changed_.notify_all();
  }
  if (worker_.joinable()) worker_.join();
  if (keeper_.joinable()) keeper_.join();
  LeaveInOrder();
}

// What was sent last would be lost with a connection that is closed while it still has something to read.
void TcpFabric::LeaveInOrder() {
  const Duration end = clock_.Now() + kFarewell;
  epoll_event event;
  while (!engine_.Quiet() && clock_.Now() < end) {
    engine_.Turn();
    if (!engine_.Quiet()) ::epoll_wait(engine_.descriptor(), &event, 1, 1);
  }
}

Result<Transfer> TcpFabric::StartSend(int to, Tag tag, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  return Transfer{TRY(engine_.StartSend(to, tag, bytes))};
}

Result<Transfer> TcpFabric::Start(Operation::Kind kind, int from, Tag tag, Landing landing) {
  const std::lock_guard lock(mutex_);
  return Transfer{TRY(engine_.StartReceive(kind, from, tag, landing))};
}
Result<Transfer> TcpFabric::StartReceive(int from, Tag tag, std::span<std::byte> into) {
  return Start(Operation::Kind::kReceive, from, tag, Landing(into));
}
Result<Transfer> TcpFabric::StartReceiveAdd(int from, Tag tag, std::span<float> into) {
  return Start(Operation::Kind::kReceiveAdd, from, tag, Landing(into));
}
Result<Transfer> TcpFabric::StartBorrow(int from, Tag tag) {
  return Start(Operation::Kind::kBorrow, from, tag, Landing());
}

void TcpFabric::Release(Transfer borrowed) {
  const std::lock_guard lock(mutex_);
  engine_.Release(borrowed.id);
}

bool TcpFabric::Done(Transfer transfer) {
  const std::lock_guard lock(mutex_);
  if (!engine_.Done(transfer.id) && asleep_ == 0) engine_.Turn();  // who sleeps on the engine is woken to do it
  return engine_.Done(transfer.id);
}

Result<Arrived> TcpFabric::Wait(Transfer transfer, Duration timeout) {
  if (timeout.count() == 0) timeout = options_.wait_timeout;
  Lock lock(mutex_);
  if (engine_.Done(transfer.id)) return engine_.Take(transfer.id);
  const Duration end = clock_.Now() + timeout;
  ++waiting_;
  while (!engine_.Done(transfer.id) && clock_.Now() < end) {
    if (driven_) {
      changed_.wait_for(lock, end - clock_.Now());
    } else {
      driven_ = true;
      Drive(lock, transfer.id, end);
      driven_ = false;
    }
  }
  --waiting_;
  last_waited_ = clock_.Now();
  if (waiting_ > 0) changed_.notify_all();
  if (!engine_.Done(transfer.id)) return engine_.Timeout(transfer.id, timeout);
  return engine_.Take(transfer.id);
}

void TcpFabric::Drive(Lock& lock, std::uint64_t id, Duration end) {
  Duration now = clock_.Now();
  Duration spin_end = now + spin_;
  while (!engine_.Done(id) && now < end) {
    if (engine_.Turn()) {
      if (waiting_ > 1) changed_.notify_all();
      spin_end = clock_.Now() + spin_;
      continue;
    }
    now = clock_.Now();
    if (now < spin_end) {
      lock.unlock();  // others may want to start something
      Breathe();
      lock.lock();
    } else {
      Nap(lock, end - now);
    }
  }
}

// Sleeps until there is something to move, and moves it. The other side of shared memory is told to wake us as long as
// anybody sleeps.
void TcpFabric::Nap(Lock& lock, Duration longest) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(longest).count();
  epoll_event event;
  ++asleep_;
  if (engine_.PrepareSleep()) {
    lock.unlock();
    ::epoll_wait(engine_.descriptor(), &event, 1, static_cast<int>(std::clamp<long>(ms, 0, 60'000)));
    lock.lock();
  }
  --asleep_;
  bool moved = engine_.Turn();
  if (asleep_ == 0) {
    engine_.Awake();
  } else {
    while (!engine_.PrepareSleep()) moved = engine_.Turn() || moved;
  }
  if (waiting_ > 0 && (moved || engine_.failure().has_value())) changed_.notify_all();
}

void TcpFabric::Keep() {
  Lock lock(mutex_);
  while (!stopping_) {
    const bool failed = engine_.failure().has_value();
    const Duration next = engine_.Tick();
    if (!failed && engine_.failure().has_value()) changed_.notify_all();
    if (waiting_ > 0 || clock_.Now() - last_waited_ < kGrace) {
      stirred_.wait_for(lock, std::min(next, kGrace));
    } else {
      Nap(lock, next);
      // Who began to wait meanwhile sleeps on the engine too, or is about to, and what it waits for may just have come.
      if (asleep_ > 0) engine_.Interrupt();
    }
  }
}

void TcpFabric::Post(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  jobs_.push_back(std::move(job));
  if (!worker_.joinable()) worker_ = std::thread([this] { RunJobs(); });
  posted_.notify_one();
}

void TcpFabric::RunJobs() {
  Lock lock(mutex_);
  while (true) {
    posted_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

void TcpFabric::Abort(const Error& why) {
  const std::lock_guard lock(mutex_);
  engine_.Abort(why.text);
  changed_.notify_all();
}

std::uint64_t TcpFabric::bytes_sent() const {
  const std::lock_guard lock(mutex_);
  return engine_.bytes_sent();
}

std::uint64_t TcpFabric::bytes_shared() const {
  const std::lock_guard lock(mutex_);
  return engine_.bytes_shared();
}

TcpFabric::Statistics TcpFabric::statistics() const {
  const std::lock_guard lock(mutex_);
  return {engine_.bytes_sent(), engine_.bytes_shared(), engine_.near(), engine_.sharing(), strangers_};
}

}  // namespace freshet::fabric
