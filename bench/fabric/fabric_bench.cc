// Our own sums, for fabric_bench.py, which sets them beside others'.
//
//   fabric_bench threads|memfd|sockets|unchecked|memory RANKS SECONDS BYTES…
//   fabric_bench machine
#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "../machine.h"
#include "base/clock.h"
#include "contest.h"
#include "fabric/collectives/collectives.h"
#include "fabric/tcp/tcp_fabric.h"
#include "fabric/threads/threads_fabric.h"

namespace freshet::bench {
namespace {

class OurMember final : public Member {
 public:
  explicit OurMember(fabric::Fabric& fabric) : collectives_(fabric) {}
  int rank() const override { return collectives_.fabric().rank(); }
  int size() const override { return collectives_.fabric().size(); }
  void Sum(std::span<float> values) override { Must(collectives_.AllReduce(values)); }
  void Meet() override { Must(collectives_.Barrier()); }
  void TakeFromFirst(std::span<std::byte> bytes) override { Must(collectives_.Broadcast(bytes, 0)); }

 private:
  static void Must(const Result<void>& result) {
    if (!result.ok()) Die(result.error().text);
  }
  fabric::Collectives collectives_;
};

void RunThreads(const Task& task) {
  const base::SystemClock clock;
  fabric::ThreadsGroup group(task.ranks, clock);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < task.ranks; ++rank)
    threads.emplace_back([&, rank] {
      Pin(rank);
      OurMember member(group.member(rank));
      Compete(member, "threads", task);
    });
}

// One process for each rank. Rank 0 tells the others its port through a pipe.
int RunTcp(const std::string& name, const Task& task) {
  int port_pipe[2];
  if (::pipe(port_pipe) != 0) Die("cannot make a pipe");
  const int rank = ForkRanks(task.ranks);
  Pin(rank);
  fabric::TcpOptions options;
  options.rank = rank;
  options.size = task.ranks;
  options.job = "bench";
  options.token.fill(std::byte{0x5a});
  options.shared_memory = name == "memfd";
  options.checksum = name != "unchecked";
  int port = 0;
  if (rank > 0 && ::read(port_pipe[0], &port, sizeof port) != sizeof port) Die("rank 0 has no port");
  options.rendezvous = Str("127.0.0.1:", port);
  options.listening = [&](int number) -> Result<void> {
    for (int other = 1; other < task.ranks; ++other) {
      if (::write(port_pipe[1], &number, sizeof number) != sizeof number) Die("cannot tell the port");
    }
    return {};
  };
  base::SystemClock clock;
  {
    const auto fabric = fabric::TcpFabric::Connect(options, clock);
    if (!fabric.ok()) Die(fabric.error().text);
    OurMember member(*fabric.value());
    Compete(member, name, task);
  }
  return JoinRanks(rank);
}

// How long a line of the cache takes from one core to another. The two cores of a virtual machine are now near each
// other and now far apart, and everything below a megabyte depends on it.
void MeasureLine(int rank, std::atomic<std::uint64_t>& line, std::barrier<>& meeting) {
  constexpr std::uint64_t kTimes = 20'000;
  meeting.arrive_and_wait();
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < kTimes; ++i) {
    const std::uint64_t mine = 2 * i + static_cast<std::uint64_t>(rank);
    while (line.load(std::memory_order_acquire) != mine) {
    }
    line.store(mine + 1, std::memory_order_release);
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  if (rank == 0) std::printf(R"("line":%.10f,)", spent.count() / (2.0 * kTimes));
}

// What memory gives two threads on two cores, each with its own half of arrays of `bytes`: bytes read and written a
// second. The update is what a sum of two does: two arrays are read and both written.
class Memory {
 public:
  explicit Memory(const Task& task) : task_(task) {}

  void Run() {
    for (const std::size_t bytes : task_.sizes) {
      std::printf(R"({"name":"memory","bytes":%zu,)", bytes);
      line_ = 0;
      {
        std::jthread first([&] { Work(0, bytes); }), second([&] { Work(1, bytes); });
      }
      std::puts("}");
    }
  }

 private:
  void Work(int rank, std::size_t bytes) {
    Pin(rank);
    MeasureLine(rank, line_, meeting_);
    const std::size_t count = bytes / sizeof(float) / 2;
    const Floats arrays[] = {MakeFloats(count, 0), MakeFloats(count, 0), MakeFloats(count, 0)};
    float *const a = arrays[0].get(), *const b = arrays[1].get(), *const c = arrays[2].get();
    const double copy = Rate(rank, 2 * bytes, [&] { std::memcpy(a, b, count * sizeof(float)); });
    const double triad = Rate(rank, 3 * bytes, [&] {
#pragma omp simd
      for (std::size_t i = 0; i < count; ++i) a[i] = b[i] + 3 * c[i];
    });
    const double update = Rate(rank, 4 * bytes, [&] {
#pragma omp simd
      for (std::size_t i = 0; i < count; ++i) a[i] = b[i] = a[i] + b[i];
    });
    if (rank == 0) std::printf(R"("copy":%.0f,"triad":%.0f,"update":%.0f)", copy, triad, update);
  }

  template <class Pass>
  double Rate(int rank, std::size_t moved, const Pass& pass) {
    const auto kept = [&] {
      pass();
      asm volatile("" : : : "memory");  // or only the last pass would be made
    };
    const Times times = TimeIt(
        task_.seconds, kept, [&] { meeting_.arrive_and_wait(); },
        [&](std::span<std::byte> plan) {
          if (rank == 0) std::copy(plan.begin(), plan.end(), plan_.begin());
          meeting_.arrive_and_wait();
          std::copy_n(plan_.begin(), plan.size(), plan.begin());
          meeting_.arrive_and_wait();
        });
    return static_cast<double>(moved) / times.median;
  }

  const Task& task_;
  alignas(64) std::atomic<std::uint64_t> line_{0};
  alignas(64) std::barrier<> meeting_{2};
  std::array<std::byte, 64> plan_{};
};

void PrintMachine() {
  const Machine machine = ThisMachine();
  const nlohmann::ordered_json facts = {{"cpu", machine.cpu},           {"cores", machine.cores},
                                        {"compiler", machine.compiler}, {"flags", machine.flags},
                                        {"commit", machine.commit},     {"warning", machine.warning}};
  std::puts(facts.dump().c_str());
}

int Main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "machine") {
    PrintMachine();
    return 0;
  }
  const Task task = ParseTask(argc, argv, 2);
  if (what == "memory") {
    Memory(task).Run();
  } else if (what == "threads") {
    RunThreads(task);
  } else if (what == "memfd" || what == "sockets" || what == "unchecked") {
    return RunTcp(what, task);
  } else {
    Die("fabric_bench: no contestant " + what + "; see the head of fabric_bench.cc");
  }
  return 0;
}

}  // namespace
}  // namespace freshet::bench

int main(int argc, char** argv) { return freshet::bench::Main(argc, argv); }
