#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "train/together.h"
#include "verb.h"

namespace freshet::cli {

// What freshet bench can measure beside exchanges alone.

struct CalibrateFlags {
  std::string file;
  std::vector<std::string> models = {"lenet5"}, rows = {"8", "32", "128"};
  int at_once = 0;
};
// Writes what exchanges of workers and their computing cost here, for about `seconds` each. Without a fabric they are so
// many threads; with one, all members call it.
Result<void> Calibrate(Door& door, const CalibrateFlags& flags, double seconds, int threads, fabric::Fabric* fabric);

struct StepFlags {
  std::string model = "lenet5";  // perhaps with its input, after a colon
  std::uint64_t batch = 64;
  int steps = 10, threads = 0;
  train::Together together;
};
// Seconds of an update that all members of a fabric make together; or, as threads, so many workers.
Result<double> MeasureStep(Door& door, const StepFlags& flags, fabric::Fabric& fabric);
Result<double> MeasureStepOfThreads(Door& door, const StepFlags& flags, int workers);

}  // namespace freshet::cli
