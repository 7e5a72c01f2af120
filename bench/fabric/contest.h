#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

// How fast sums over several workers are: what every contestant of fabric_bench.py is measured by, ours and others'
// alike. Needs nothing but the standard library and Linux, so that it compiles with any compiler of any peer.
namespace freshet::bench {

// One worker among those that sum together. Calls end the program when they fail.
class Member {
 public:
  virtual ~Member() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void Sum(std::span<float> values) = 0;  // over all members, in place
  virtual void Meet() = 0;
  virtual void TakeFromFirst(std::span<std::byte> bytes) = 0;  // what rank 0 has
};

struct Task {
  int ranks = 2;
  double seconds = 0.1;            // for each size, about
  std::vector<std::size_t> sizes;  // bytes of each member's values
};

[[noreturn]] inline void Die(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

// RANKS SECONDS BYTES…, from `first` on.
inline Task ParseTask(int argc, char** argv, int first) {
  if (argc < first + 3) Die("expected RANKS SECONDS BYTES…");
  Task task{.ranks = std::atoi(argv[first]), .seconds = std::atof(argv[first + 1]), .sizes = {}};
  for (int i = first + 2; i < argc; ++i) task.sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  return task;
}

// Rank r on the r-th core this process may use, and around.
inline void Pin(int rank) {
  cpu_set_t may, mine;
  if (sched_getaffinity(0, sizeof may, &may) != 0) Die("cannot ask for the cores");
  int nth = rank % CPU_COUNT(&may), core = 0;
  for (; !CPU_ISSET(core, &may) || nth-- > 0; ++core) {
  }
  CPU_ZERO(&mine);
  CPU_SET(core, &mine);
  if (sched_setaffinity(0, sizeof mine, &mine) != 0) Die("cannot choose a core");
}

// Makes `ranks` processes of this one and gives each its rank. Rank 0 is this process, without which the others end.
inline int ForkRanks(int ranks) {
  const pid_t first = ::getpid();
  for (int rank = 1; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child < 0) Die("cannot fork");
    if (child > 0) continue;
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != first) Die("rank 0 is gone");
    return rank;
  }
  return 0;
}

// The exit code of all: rank 0 waits for the others.
inline int JoinRanks(int rank) {
  int code = 0, status = 0;
  while (rank == 0 && ::wait(&status) > 0) code |= status == 0 ? 0 : 1;
  return code;
}

// Floats whose pages and cache lines begin where they do, for everybody.
struct Freed {
  void operator()(float* floats) const { ::operator delete[](floats, std::align_val_t{4096}); }
};
using Floats = std::unique_ptr<float[], Freed>;
inline Floats MakeFloats(std::size_t count, float value) {
  Floats floats(new (std::align_val_t{4096}) float[count]);
  std::fill_n(floats.get(), count, value);
  return floats;
}

// Whole numbers whose sum is known and exact.
inline void CheckSum(Member& member, std::span<float> values) {
  const auto part = [](std::size_t i) { return static_cast<float>(i % 1009); };
  const auto mine = static_cast<float>(member.rank() + 1);
  const auto all = static_cast<float>(member.size() * (member.size() + 1) / 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = part(i) * mine;
  member.Sum(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != part(i) * all)
      Die("wrong sum at " + std::to_string(i) + " of rank " + std::to_string(member.rank()));
  }
}

struct Times {
  double median = 0, best = 0;  // seconds of one
  std::uint64_t count = 0;
};

// Times something many times: `meet` before every sample, and rank 0's plan for everybody through `agree`. What is
// short is timed many at once, so that neither the clock nor the meeting counts.
template <class Work, class Meet, class Agree>
Times TimeIt(double seconds, const Work& work, const Meet& meet, const Agree& agree) {
  constexpr double kSampleSeconds = 1e-3;
  using Clock = std::chrono::steady_clock;
  struct Plan {
    std::uint64_t samples = 0, each = 1;
  };
  const auto sample = [&](std::uint64_t each) {
    meet();
    const Clock::time_point begin = Clock::now();
    for (std::uint64_t i = 0; i < each; ++i) work();
    return std::chrono::duration<double>(Clock::now() - begin).count() / static_cast<double>(each);
  };
  sample(1);
  const double once = std::max(sample(1), 1e-8);
  Plan plan;
  plan.each = static_cast<std::uint64_t>(std::max(1.0, kSampleSeconds / once));
  plan.samples = static_cast<std::uint64_t>(std::clamp(seconds / (once * static_cast<double>(plan.each)), 3.0, 500.0));
  agree(std::as_writable_bytes(std::span(&plan, 1)));
  std::vector<double> times;
  for (std::uint64_t i = 0; i < plan.samples; ++i) times.push_back(sample(plan.each));
  std::sort(times.begin(), times.end());
  return {.median = times[times.size() / 2], .best = times.front(), .count = plan.samples * plan.each};
}

// Checks and times sums of every size; rank 0 prints a line of JSON for each.
inline void Compete(Member& member, const std::string& name, const Task& task) {
  for (const std::size_t bytes : task.sizes) {
    const std::size_t count = bytes / sizeof(float);
    const Floats floats = MakeFloats(count, 0);
    const std::span<float> values(floats.get(), count);
    CheckSum(member, values);
    std::fill(values.begin(), values.end(), 0.0F);  // which stay what they are, however often they are summed
    const Times times = TimeIt(
        task.seconds, [&] { member.Sum(values); }, [&] { member.Meet(); },
        [&](std::span<std::byte> plan) { member.TakeFromFirst(plan); });
    member.Meet();  // nobody leaves before all have their sums
    if (member.rank() != 0) continue;
    std::printf(R"({"name":"%s","ranks":%d,"bytes":%zu,"seconds":%.9f,"best":%.9f,"sums":%llu})"
                "\n",
                name.c_str(), member.size(), bytes, times.median, times.best,
                static_cast<unsigned long long>(times.count));
    std::fflush(stdout);
  }
}

}  // namespace freshet::bench
