// The team of OpenMP's threads that computes layers, oneDNN's and ours: how many they are, and how they wait.

#ifdef _OPENMP
#include <omp.h>
#endif
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "model/network/kernel.h"

namespace freshet::model::network {
namespace {

// A team of GCC's OpenMP looks for work for some milliseconds after each piece of it, before it sleeps. Pieces are
// often shorter than that, and where others use the machine too, those who look keep away the very thread they wait
// for: networks become up to a hundred times slower. A short look costs nothing on a quiet machine and little on a busy
// one.
constexpr char kLooks[] = "300";  // some ten microseconds

// The library reads this when it is loaded, before anything of ours runs, and never again. So the program starts once
// more, in the same process; whoever has decided how to wait is left alone. That glibc hands a constructor the
// arguments of main is its own custom.
__attribute__((constructor)) void WaitShortly(int, char** arguments, char**) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  if (getauxval(AT_SECURE) != 0) return;  // may be readable by nobody
  char path[4096];                        // not /proc/self/exe itself, which would become the program's name
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0 || setenv("GOMP_SPINCOUNT", kLooks, 0) != 0) return;
  path[length] = 0;
  execv(path, arguments);  // if it fails, teams wait as they always did
}

}  // namespace

#ifdef _OPENMP
ThreadScope::ThreadScope(int threads) : before_(omp_get_max_threads()) {
  if (threads != before_) omp_set_num_threads(threads);
}
ThreadScope::~ThreadScope() {
  if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
}
#else
ThreadScope::ThreadScope(int) {}
ThreadScope::~ThreadScope() = default;
#endif

void InParallel(std::size_t count, std::size_t cost_each, RangeWork work) {
#ifdef _OPENMP
  constexpr std::size_t kWorthIt = 1 << 17;  // floats: waking threads costs some microseconds
  const auto threads = static_cast<std::size_t>(omp_get_max_threads());
  if (threads > 1 && count > 1 && count * cost_each >= kWorthIt) {
#pragma omp parallel
    {
      const auto team = static_cast<std::size_t>(omp_get_num_threads());
      const auto me = static_cast<std::size_t>(omp_get_thread_num());
      const std::size_t first = count * me / team, last = count * (me + 1) / team;
      if (first < last) work(first, last);
    }
    return;
  }
#endif
  (void)cost_each;
  if (count > 0) work(0, count);
}

void AddInto(float* to, const float* from, std::size_t count) {
  constexpr std::size_t kPiece = 4096;
  InParallel((count + kPiece - 1) / kPiece, kPiece, [&](std::size_t first, std::size_t last) {
    const std::size_t end = std::min(last * kPiece, count);
#pragma omp simd
    for (std::size_t i = first * kPiece; i < end; ++i) to[i] += from[i];
  });
}

}  // namespace freshet::model::network
