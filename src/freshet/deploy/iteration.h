#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/description.h"
#include "deploy/log/record_log.h"
#include "deploy/publisher.h"
#include "deploy/runtime.h"
#include "deploy/versions.h"

namespace freshet::deploy {

// A training iteration on its way, or a retraining: a copy of the state, what it is to be trained on, and what came of
// that.
//
// Threads: the writer's until it is handed to the background, the background's until `done` is set, and the writer's
//          again. Only `stop` may be set, and `done` read, at any time. Ownership: borrows the model.
struct Iteration {
  const model::Model* model = nullptr;
  std::uint64_t start = 0;  // sequence of its start record
  bool retrain = false, keep = false;
  bool named = false;  // its end names the version that was made: the work cannot be repeated
  int passes = 1;
  double scale = 1;
  std::uint64_t seed = 1;
  std::vector<std::uint64_t> numbers;
  std::vector<std::uint64_t> unvisited;  // of data sets: learned first, as rows that are new
  std::uint64_t sets_end = 0;            // sets that begin before this number are visited by it
  VersionInfo info;
  data::Description description;  // as of the start
  std::unique_ptr<State> state;
  std::uint64_t applied = 0;  // every observation before this sequence is in the state
  std::vector<std::unique_ptr<Edition>> editions;

  std::atomic<bool> stop{false};
  std::atomic<bool> done{false};  // the fields below, and those above, are the writer's again
  std::optional<Error> error;
  WorkReport report;
  double seconds = 0;

  // Rows of data sets first, as new ones, then those of the buffer and the history. Fails as the run-time does.
  Result<WorkReport> Train(Runtime& runtime, const History& history);
  // Lets the copy learn the observations of the log from where it is up to `to`, and adds the rows of weights that this
  // touched. kStopped when a class has come meanwhile, which the copy does not have.
  Result<void> CatchUp(const RecordLog& log, std::uint64_t to, optimize::RowSets* touched);
};

}  // namespace freshet::deploy
