#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace freshet::bench {

// A convolution and how long it takes, forward and both ways back.
struct Walked {
  std::int64_t channels, outputs, kernel, stride, groups;
  double seconds = 0;
  double work = 0;  // multiply-adds, see walk.cc
  std::string Name() const;
};

// Convolutions that read 1 to 40 channels (tiny: a few), with kernels, strides and groups of all kinds, on one thread;
// of each the shortest of some runs.
Result<std::vector<Walked>> WalkConvolutions(bool tiny, base::Clock& clock);

}  // namespace freshet::bench
