#include "fabric/protocol/protocol_fabric.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace freshet::fabric {
namespace {

void Breathe() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ProtocolFabric::ProtocolFabric(std::unique_ptr<Protocol> engine, Settings settings, base::Clock& clock)
    : settings_(settings),
      clock_(clock),
      time_passes_(dynamic_cast<const base::SystemClock*>(&clock) != nullptr),
      changed_(clock.NewCondition()),
      stirred_(clock.NewCondition()),
      engine_(std::move(engine)),
      jobs_(std::in_place, clock) {}

ProtocolFabric::~ProtocolFabric() { CHECK(!jobs_.has_value()); }

void ProtocolFabric::Begin() {
  if (size() > 1) keeper_ = base::Thread(clock_, [this] { Keep(); });
}

void ProtocolFabric::End() {
  {
    const base::Lock lock(mutex_);
    stopping_ = true;
    engine_->SayGoodbye();
    engine_->Stop({Code::kStopped, Str("rank ", rank(), " has closed its fabric")});
    engine_->Interrupt();
    stirred_->NotifyAll();
    changed_->NotifyAll();
  }
  jobs_.reset();
  if (keeper_.joinable()) keeper_.Join();
}

Result<Transfer> ProtocolFabric::StartSend(int to, Tag tag, std::span<const std::byte> bytes) {
  return StartHollowSend(to, tag, bytes, 0);
}

Result<Transfer> ProtocolFabric::StartHollowSend(int to, Tag tag, std::span<const std::byte> bytes,
                                                 std::size_t hollow) {
  const base::Lock lock(mutex_);
  return Transfer{TRY(engine_->StartSend(to, tag, bytes, hollow))};
}

Result<Transfer> ProtocolFabric::Start(Operation::Kind kind, const From& from, Tag tag, Landing landing) {
  const base::Lock lock(mutex_);
  return Transfer{TRY(engine_->StartReceive(kind, from, tag, landing))};
}
Result<Transfer> ProtocolFabric::StartReceive(From from, Tag tag, std::span<std::byte> into) {
  return Start(Operation::Kind::kReceive, from, tag, Landing(into));
}
Result<Transfer> ProtocolFabric::StartReceiveAdd(From from, Tag tag, std::span<float> into) {
  return Start(Operation::Kind::kReceiveAdd, from, tag, Landing(into));
}
Result<Transfer> ProtocolFabric::StartBorrow(From from, Tag tag) {
  return Start(Operation::Kind::kBorrow, from, tag, Landing());
}

void ProtocolFabric::Release(Transfer borrowed) {
  const base::Lock lock(mutex_);
  engine_->Release(borrowed.id);
}

bool ProtocolFabric::Done(Transfer transfer) {
  const base::Lock lock(mutex_);
  if (!engine_->Done(transfer.id) && Look() && waiting_ > 0) changed_->NotifyAll();  // it may have been theirs
  return engine_->Done(transfer.id);
}

Result<Arrived> ProtocolFabric::Wait(Transfer transfer, Duration timeout) {
  if (timeout.count() == 0) timeout = settings_.wait_timeout;
  const base::Lock lock(mutex_);
  const auto done = [&] { return engine_->Done(transfer.id); };
  if (done() || WaitFor(done, clock_.Now() + timeout)) return engine_->Take(transfer.id);
  const std::size_t ends = engine_->ends();
  Error late = engine_->Timeout(transfer.id, timeout);
  if (engine_->ends() != ends) changed_->NotifyAll();
  return late;
}

Result<std::size_t> ProtocolFabric::WaitAny(std::span<const Transfer> transfers, Duration timeout) {
  if (transfers.empty()) return Error{Code::kInvalid, Str("rank ", rank(), " waits for none of no transfers")};
  if (timeout.count() == 0) timeout = settings_.wait_timeout;
  const base::Lock lock(mutex_);
  std::size_t which = 0;
  const auto done = [&] {
    which = 0;
    while (which < transfers.size() && !engine_->Done(transfers[which].id)) ++which;
    return which < transfers.size();
  };
  if (done() || WaitFor(done, clock_.Now() + timeout)) return which;
  return engine_->TimeoutAny(transfers, timeout);
}

std::vector<Loss> ProtocolFabric::Lost(std::size_t known) const {
  const base::Lock lock(mutex_);
  const std::vector<Loss>& losses = engine_->losses();
  return {losses.begin() + static_cast<std::ptrdiff_t>(std::min(known, losses.size())), losses.end()};
}

std::optional<int> ProtocolFabric::Missed() const {
  const base::Lock lock(mutex_);
  return engine_->missed();
}

Result<Transfer> ProtocolFabric::StartLoss(From of, std::size_t known) {
  const base::Lock lock(mutex_);
  return Transfer{TRY(engine_->StartLoss(of, known))};
}

bool ProtocolFabric::WaitFor(const Condition& ready, Duration end) {
  ++waiting_;
  while (!ready() && clock_.Now() < end) {
    if (driven_) {
      changed_->WaitUntil(mutex_, end);
    } else {
      driven_ = true;
      Drive(ready, end);
      driven_ = false;
    }
  }
  --waiting_;
  last_waited_ = clock_.Now();
  if (waiting_ > 0) changed_->NotifyAll();
  if (waiting_ == 0) NobodyWaits();
  return ready();
}

void ProtocolFabric::Drive(const Condition& ready, Duration end) {
  Duration now = clock_.Now(), last_moved = now;
  while (!ready() && now < end) {
    if (engine_->Turn()) {
      if (waiting_ > 1) changed_->NotifyAll();
      last_moved = clock_.Now();
      continue;
    }
    now = clock_.Now();
    if (time_passes_ && now - last_moved < settings_.spin) {
      mutex_.unlock();  // others may want to start something
      Breathe();
      mutex_.lock();
    } else {
      Rest(now - last_moved, end - now);
    }
  }
}

void ProtocolFabric::Keep() {
  const base::Lock lock(mutex_);
  Duration due = clock_.Now();
  while (!stopping_) {
    if (clock_.Now() >= due) {  // it may be woken before
      const std::size_t ends = engine_->ends();
      due = clock_.Now() + engine_->Tick();
      if (engine_->ends() != ends) changed_->NotifyAll();
    }
    Watch(std::max(due - clock_.Now(), Duration(0)));
  }
}

void ProtocolFabric::Post(std::function<void()> job) { jobs_->Post(std::move(job)); }

void ProtocolFabric::Abort(const Error& why) {
  const base::Lock lock(mutex_);
  engine_->Abort(why.text);
  changed_->NotifyAll();
}

std::uint64_t ProtocolFabric::bytes_sent() const {
  const base::Lock lock(mutex_);
  return engine_->bytes_sent();
}

std::uint64_t ProtocolFabric::bytes_shared() const {
  const base::Lock lock(mutex_);
  return engine_->bytes_shared();
}

}  // namespace freshet::fabric
