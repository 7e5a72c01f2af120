#include "fabric/mpi/mpi_fabric.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/cores.h"
#include "base/option.h"
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
  int level = MPI_THREAD_SINGLE, size = 0, rank = 0;
  TRY(mpi::Called(MPI_Query_thread(&level), "MPI_Query_thread"));
  if (level < MPI_THREAD_MULTIPLE)
    return Error{Code::kInvalid,
                 Str("this MPI does not let several threads call it (MPI_THREAD_MULTIPLE): use another, or ",
                     Option("fabric"), " tcp")};
  TRY(mpi::Called(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
  TRY(mpi::Called(MPI_Comm_size(communicator, &size), "MPI_Comm_size"));
  TRY(mpi::Called(MPI_Comm_rank(communicator, &rank), "MPI_Comm_rank"));
  const auto members = TRY(Introduce(communicator, size, options, clock));
  std::vector<std::string> hosts;
  for (const Introduction& member : members) {
    if (member.generation != options.generation)
      return Error{Code::kInvalid, Str("rank ", hosts.size(), " (", member.host, ") is of generation ",
                                       member.generation, ", this process of ", options.generation)};
    hosts.emplace_back(member.host);
  }
  const auto near = std::count(hosts.begin(), hosts.end(), hosts[static_cast<std::size_t>(rank)]);
  const Settings settings{.generation = options.generation,
                          .wait_timeout = options.wait_timeout,
                          .spin = near <= base::HostCores() ? options.spin : Duration{}};
  auto engine = std::make_unique<mpi::Engine>(communicator, options, std::move(hosts), clock);
  return std::unique_ptr<MpiFabric>(new MpiFabric(std::move(engine), settings, clock));
}

MpiFabric::MpiFabric(std::unique_ptr<mpi::Engine> engine, Settings settings, base::Clock& clock)
    : ProtocolFabric(std::move(engine), settings, clock), engine_(static_cast<mpi::Engine&>(this->engine())) {
  Begin();
}

MpiFabric::~MpiFabric() {
  End();
  LeaveInOrder();
}

// Members mostly leave together. Who leaves first stays for a moment, to hear the goodbyes of the others: MPI wants all
// that is sent to be received.
void MpiFabric::LeaveInOrder() {
  const Duration begun = clock().Now();
  const bool lost = engine_.failure()->code == Code::kPeerLost;
  const auto stay = [&] {
    const Duration passed = clock().Now() - begun;
    return (!engine_.Quiet() && passed < kFarewell) || (!lost && !engine_.Alone() && passed < kLinger);
  };
  while (stay())
    if (!engine_.Turn()) clock().Sleep(kShortNap);
}

Result<void> MpiFabric::NativeAllReduce(std::span<float> values) {
  const base::Lock lock(mutex());
  while (!values.empty()) {
    const std::span<float> part = values.first(std::min(values.size(), kSumFloats));
    values = values.subspan(part.size());
    TRY(engine_.StartSum(part));
    const auto done = [&] { return engine_.SumDone() || engine_.failure().has_value(); };
    if (!WaitFor(done, clock().Now() + settings().wait_timeout)) return engine_.GiveUpSum(settings().wait_timeout);
    if (!engine_.SumDone())
      return Error{engine_.failure()->code, Str(engine_.failure()->text, "; rank ", rank(), " was in an all-reduce of ",
                                                HumanBytes(static_cast<double>(part.size_bytes())))};
  }
  return {};
}

// The longer nothing comes, the more it leaves the core to others.
void MpiFabric::Rest(Duration idle, Duration longest) {
  const Duration nap = nap_ = idle < kYield ? Duration{} : std::clamp(2 * nap_, kShortNap, kLongNap);
  mutex().unlock();  // others may want to start something
  if (nap.count() == 0) {
    std::this_thread::yield();
  } else {
    clock().Sleep(std::min(nap, longest));
  }
  mutex().lock();
}

void MpiFabric::Watch(Duration longest) {
  const std::size_t ends = engine_.ends();
  bool moved = false;
  while (!awaited() && !stopping() && engine_.Turn()) moved = true;
  if (moved || engine_.ends() != ends) TellWaiting();
  Snooze(std::min(longest, !awaited() && engine_.Busy() ? kBusyNap : kIdleNap));
}

}  // namespace freshet::fabric
