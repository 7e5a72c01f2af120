#include "fabric/mpi/mpi_fabric.h"

#include <algorithm>

#include "base/cores.h"
#include "fabric/mpi/call.h"

namespace freshet::fabric {
namespace {

using Duration = base::Clock::Duration;

constexpr Duration kYield = std::chrono::milliseconds(2);  // who waits lets others run for so long, then sleeps
constexpr Duration kShortNap = std::chrono::microseconds(50), kLongNap = std::chrono::milliseconds(1);
// Of the keeper: with transfers under way that nobody waits for, and without.
constexpr Duration kBusyNap = std::chrono::milliseconds(1), kIdleNap = std::chrono::milliseconds(20);
constexpr Duration kFarewell = std::chrono::seconds(1), kLinger = std::chrono::milliseconds(100);
constexpr std::size_t kSumFloats = std::size_t{1} << 28;  // 1 GB: MPI counts in ints

// What members tell each other before anything else.
struct Introduction {
  std::uint64_t generation = 0;
  char host[248] = {};
};

void Breathe() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::string HostName(const MpiOptions& options) {
  if (!options.host.empty()) return options.host;
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  if (MPI_Get_processor_name(name, &length) != MPI_SUCCESS) return "unknown";
  return std::string(name, static_cast<std::size_t>(length));
}

Result<std::vector<Introduction>> Introduce(MPI_Comm communicator, int size, const MpiOptions& options,
                                            base::Clock& clock) {
  // MPI writes here until all have come; if they never do, it goes on for ever, and so does the memory.
  auto all = std::make_unique<std::vector<Introduction>>(static_cast<std::size_t>(size) + 1);
  Introduction& mine = all->back();
  mine.generation = options.generation;
  HostName(options).copy(mine.host, sizeof mine.host - 1);
  MPI_Request request = MPI_REQUEST_NULL;
  TRY(mpi::Called(
      MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all->data(), sizeof mine, MPI_BYTE, communicator, &request),
      "MPI_Iallgather"));
  const Duration end = clock.Now() + options.connect_timeout;
  while (!TRY(mpi::Ended(request))) {
    if (clock.Now() >= end) {
      (void)all.release();
      return Error{Code::kTimeout, Str("not all of ", size, " processes came together within ",
                                       Fixed(base::Seconds(options.connect_timeout), 1), " s")};
    }
    clock.Sleep(kShortNap);
  }
  all->pop_back();
  return std::move(*all);
}

}  // namespace

Result<std::unique_ptr<MpiFabric>> MpiFabric::Connect(MPI_Comm communicator, const MpiOptions& options,
                                                      base::Clock& clock) {
  int level = MPI_THREAD_SINGLE, size = 0;
  TRY(mpi::Called(MPI_Query_thread(&level), "MPI_Query_thread"));
  if (level < MPI_THREAD_MULTIPLE)
    return Error{Code::kInvalid,
                 "this MPI does not let several threads call it (MPI_THREAD_MULTIPLE): use another, or --fabric tcp"};
  TRY(mpi::Called(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
  TRY(mpi::Called(MPI_Comm_size(communicator, &size), "MPI_Comm_size"));
  const auto members = TRY(Introduce(communicator, size, options, clock));
  std::vector<std::string> hosts;
  for (const Introduction& member : members) {
    if (member.generation != options.generation)
      return Error{Code::kInvalid, Str("rank ", hosts.size(), " (", member.host, ") is of generation ",
                                       member.generation, ", this process of ", options.generation)};
    hosts.emplace_back(member.host);
  }
  return std::unique_ptr<MpiFabric>(new MpiFabric(communicator, options, std::move(hosts), clock));
}

MpiFabric::MpiFabric(MPI_Comm communicator, const MpiOptions& options, std::vector<std::string> hosts,
                     base::Clock& clock)
    : options_(options),
      clock_(clock),
      engine_(communicator, options, std::move(hosts), clock),
      progress_(std::in_place) {
  int near = 0;
  for (int other = 0; other < size(); ++other) near += host(other) == host(rank()) ? 1 : 0;
  if (near <= base::HostCores()) spin_ = options.spin;
  if (size() > 1) keeper_ = std::thread([this] { Keep(); });
}

MpiFabric::~MpiFabric() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    engine_.SayGoodbye();
    engine_.Stop({Code::kStopped, Str("rank ", rank(), " has closed its fabric")});
    stirred_.notify_all();
    changed_.notify_all();
  }
  progress_.reset();
  if (keeper_.joinable()) keeper_.join();
  LeaveInOrder();
}

// Members mostly leave together. Who leaves first stays for a moment, to hear the goodbyes of the others: MPI wants all
// that is sent to be received.
void MpiFabric::LeaveInOrder() {
  const Duration begun = clock_.Now();
  const bool lost = engine_.failure()->code == Code::kPeerLost;
  const auto stay = [&] {
    const Duration passed = clock_.Now() - begun;
    return (!engine_.Quiet() && passed < kFarewell) || (!lost && !engine_.Alone() && passed < kLinger);
  };
  while (stay())
    if (!engine_.Turn()) clock_.Sleep(kShortNap);
}

Result<Transfer> MpiFabric::StartSend(int to, Tag tag, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  return Transfer{TRY(engine_.StartSend(to, tag, bytes))};
}

Result<Transfer> MpiFabric::Start(Operation::Kind kind, int from, Tag tag, Landing landing) {
  const std::lock_guard lock(mutex_);
  return Transfer{TRY(engine_.StartReceive(kind, from, tag, landing))};
}
Result<Transfer> MpiFabric::StartReceive(int from, Tag tag, std::span<std::byte> into) {
  return Start(Operation::Kind::kReceive, from, tag, Landing(into));
}
Result<Transfer> MpiFabric::StartReceiveAdd(int from, Tag tag, std::span<float> into) {
  return Start(Operation::Kind::kReceiveAdd, from, tag, Landing(into));
}
Result<Transfer> MpiFabric::StartBorrow(int from, Tag tag) {
  return Start(Operation::Kind::kBorrow, from, tag, Landing());
}

void MpiFabric::Release(Transfer borrowed) {
  const std::lock_guard lock(mutex_);
  engine_.Release(borrowed.id);
}

bool MpiFabric::Done(Transfer transfer) {
  const std::lock_guard lock(mutex_);
  if (!engine_.Done(transfer.id)) engine_.Turn();
  return engine_.Done(transfer.id);
}

Result<Arrived> MpiFabric::Wait(Transfer transfer, Duration timeout) {
  if (timeout.count() == 0) timeout = options_.wait_timeout;
  Lock lock(mutex_);
  const auto done = [&] { return engine_.Done(transfer.id); };
  if (done() || WaitFor(lock, done, clock_.Now() + timeout)) return engine_.Take(transfer.id);
  return engine_.Timeout(transfer.id, timeout);
}

Result<void> MpiFabric::NativeAllReduce(std::span<float> values) {
  Lock lock(mutex_);
  while (!values.empty()) {
    const std::span<float> part = values.first(std::min(values.size(), kSumFloats));
    values = values.subspan(part.size());
    TRY(engine_.StartSum(part));
    const auto done = [&] { return engine_.SumDone() || engine_.failure().has_value(); };
    if (!WaitFor(lock, done, clock_.Now() + options_.wait_timeout)) return engine_.GiveUpSum(options_.wait_timeout);
    if (!engine_.SumDone())
      return Error{engine_.failure()->code, Str(engine_.failure()->text, "; rank ", rank(), " was in an all-reduce of ",
                                                HumanBytes(static_cast<double>(part.size_bytes())))};
  }
  return {};
}

// One of those who wait drives, the others wait for what it does. False when the time is over.
bool MpiFabric::WaitFor(Lock& lock, const Condition& ready, Duration end) {
  ++waiting_;
  while (!ready() && clock_.Now() < end) {
    if (driven_) {
      changed_.wait_for(lock, end - clock_.Now());
    } else {
      driven_ = true;
      Drive(lock, ready, end);
      driven_ = false;
    }
  }
  --waiting_;
  if (waiting_ > 0) changed_.notify_all();
  return ready();
}

// MPI wakes nobody up: who waits for it has to look. The longer nothing comes, the more it leaves the core to others.
void MpiFabric::Drive(Lock& lock, const Condition& ready, Duration end) {
  Duration last_moved = clock_.Now(), nap = kShortNap;
  while (!ready()) {
    const bool moved = engine_.Turn();
    const Duration now = clock_.Now();
    if (moved) {
      if (waiting_ > 1) changed_.notify_all();
      last_moved = now;
      nap = kShortNap;
      continue;
    }
    if (now >= end) return;
    lock.unlock();  // others may want to start something
    if (now - last_moved < spin_) {
      Breathe();
    } else if (now - last_moved < kYield) {
      std::this_thread::yield();
    } else {
      clock_.Sleep(std::min(nap, end - now));
      nap = std::min(2 * nap, kLongNap);
    }
    lock.lock();
  }
}

void MpiFabric::Keep() {
  Lock lock(mutex_);
  while (!stopping_) {
    const bool failed = engine_.failure().has_value();
    const Duration next = engine_.Tick();
    bool moved = false;
    while (waiting_ == 0 && !stopping_ && engine_.Turn()) moved = true;
    if (moved || failed != engine_.failure().has_value()) changed_.notify_all();
    stirred_.wait_for(lock, std::min(next, waiting_ == 0 && engine_.Busy() ? kBusyNap : kIdleNap));
  }
}

void MpiFabric::Post(std::function<void()> job) { progress_->Post(std::move(job)); }

void MpiFabric::Abort(const Error& why) {
  const std::lock_guard lock(mutex_);
  engine_.Abort(why.text);
  changed_.notify_all();
}

std::uint64_t MpiFabric::bytes_sent() const {
  const std::lock_guard lock(mutex_);
  return engine_.bytes_sent();
}

}  // namespace freshet::fabric
