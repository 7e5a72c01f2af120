#pragma once

#include <optional>
#include <string>

#include "data/open.h"
#include "model/sums.h"
#include "progress.h"
#include "topology_view.h"
#include "train/learning.h"
#include "train/train_trace.h"
#include "train/trainer.h"
#include "verb.h"
#include "worker_flags.h"
#include "workers_view.h"

namespace freshet::cli {

struct TrainFlags {
  data::Input input;
  train::Learning learning;
  WorkerFlags workers;
  int epochs = 0, threads = 0, patience = 0;
  std::uint64_t batch = 0, prefetch = 4;
  double holdout = 0, checkpoint_seconds = 60;
  std::int64_t holdout_after = 0;
  bool deterministic = true, shuffle = false, fresh = false, keep_optimizer = false, json = false, quiet = false;
  std::string out, from, cache, checkpoint, curve, config, test, trace, scratch = "/tmp";

  void Register(base::Settings& settings);
};

// What one worker has when it is done.
struct Outcome {
  std::unique_ptr<model::Model> model;
  std::optional<optimize::Parameters> parameters;
  data::Description description;
  train::Report report;
  model::Rated rated;               // of a factorization
  std::optional<model::Sums> sums;  // where they are to be kept
  std::optional<train::Evaluation> test;
  std::vector<WorkerLine> workers;
  train::Topology topology;
  std::uint64_t bad_rows = 0;
  double seconds = 0;
};

// What all workers of a process begin with.
struct Start {
  const TrainFlags& flags;
  data::Description description = {};
  model::ModelConfig config = {};
  const optimize::Parameters* weights = nullptr;  // of an earlier model
  const model::Rated* rated = nullptr;            // likewise
  const model::Sums* sums = nullptr;              // likewise
  std::string fingerprint = {}, inputs = {};      // what must be the same when a run is resumed
  bool whole = true;
  std::uint64_t batch = 1;
  train::TrainTrace* trace = nullptr;
};

// Trains alone, on a source that was opened for start.description and makes it grow.
Result<Outcome> WorkAlone(Door& door, Start& start, optimize::Memory& memory, base::Executor& pool,
                          std::unique_ptr<data::RowSource> source, ProgressView& view);
// Trains as N workers in this process, each a thread with its share of the threads.
Result<Outcome> WorkTogether(Door& door, const Start& start, optimize::Memory& memory, int threads, ProgressView& view);
// Trains as one process of several, by a source like that of WorkAlone, or, without one, by one that it opens.
Result<Outcome> WorkAsMember(Door& door, Start& start, optimize::Memory& memory, base::Executor& pool,
                             fabric::Fabric& fabric, std::unique_ptr<data::RowSource> source, ProgressView& view);

}  // namespace freshet::cli
