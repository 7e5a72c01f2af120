#pragma once

#include <string>
#include <vector>

#include "base/env.h"
#include "report.h"

namespace freshet::bench {

// What every section is given.
struct Context {
  const base::Env& env;  // its executor has as many threads as training shall use
  Report& report;
  bool tiny;                   // small enough for the tests: answers are checked, times say nothing
  int repeats;                 // of a measurement, after one that warms up
  std::string data_directory;  // where real data sets may be
  std::string scratch;         // a directory for files that are removed afterwards
};

// Calls `work`, which returns how many seconds it took (a Result<double>), once to warm up and then `repeats` times.
template <class Work>
Result<std::vector<double>> Seconds(const Context& context, Work work) {
  std::vector<double> seconds;
  TRY(work());
  for (int i = 0; i < context.repeats; ++i) seconds.push_back(TRY(work()));
  return seconds;
}

// How much was done a second, when `amount` was done in each of these times.
inline Spread RateOf(double amount, std::vector<double> seconds) {
  for (double& value : seconds) value = amount / value;
  return SpreadOf(std::move(seconds));
}

// A section of the benchmark: a file of its own and a line in the registry of spine_bench.cc. An error means that it
// could not be run; wrong answers and missed targets go into the report.
Result<void> BenchParse(Context& context);
Result<void> BenchUpdate(Context& context);
Result<void> BenchSparseUpdates(Context& context);
Result<void> BenchFactorization(Context& context);
Result<void> BenchSea(Context& context);

}  // namespace freshet::bench
