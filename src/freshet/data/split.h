#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/env.h"
#include "data/formats/format.h"

namespace freshet::data {

// Parts text files into a training and a test file, line by line as they are.
struct SplitOptions {
  std::vector<std::string> paths;
  std::string train_path, test_path;
  double test_share = 0.1;
  bool by_time = false;  // the latest rows are for testing; otherwise a random choice
  bool shuffle = false;  // the order of lines, with bounded memory: through files beside train_path
  std::uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;  // set: kStopped
};
struct SplitCounts {
  std::uint64_t train = 0, test = 0;
};
Result<SplitCounts> SplitFiles(const base::Env& env, const SplitOptions& options, const InputOptions& input);

}  // namespace freshet::data
