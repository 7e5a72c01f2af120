#pragma once

#include <cstdint>
#include <vector>

#include "fabric/collectives/collectives.h"

namespace freshet::fabric {

// How long sums of one size took by one algorithm, as rank 0 saw it.
struct Measurement {
  Algorithm algorithm = Algorithm::kAuto;
  std::uint64_t bytes = 0;  // of each member's values
  std::uint64_t sums = 0;   // that were timed
  double best_seconds = 0;  // for one sum
  double median_seconds = 0;
  double BytesPerSecond() const { return static_cast<double>(bytes) / median_seconds; }
};

struct MeasureOptions {
  std::vector<Algorithm> algorithms;  // empty: all that this group can use
  std::vector<std::uint64_t> sizes = {4 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20};  // bytes, whole floats
  double seconds_each = 0.1;  // for one algorithm and size, about; at least three sums are timed
};

// Times all-reduces, algorithm by algorithm, and checks their answers. All members call it with the same options; the
// rows are the same on all.
//
// Failure: the fabric's; kCorrupt when a sum is wrong.
Result<std::vector<Measurement>> Measure(Collectives& collectives, const base::Clock& clock,
                                         const MeasureOptions& options);
Result<Measurement> MeasureOne(Collectives& collectives, const base::Clock& clock, Algorithm algorithm,
                               std::uint64_t bytes, double seconds);

// Those that make sense here: native where there is one, hierarchical where members share hosts but not all the same.
std::vector<Algorithm> UsableAlgorithms(const Fabric& fabric);

}  // namespace freshet::fabric
