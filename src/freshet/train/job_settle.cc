#include <algorithm>

#include "train/job_parts.h"

namespace freshet::train {
namespace {

// How often workers meet, where nothing is said about it. An exchange costs as much as thousands of rows of a small
// model: those that learn row by row go on doing so, each worker alone, and all take the mean now and then.
void SettleMeeting(Job& job, int count) {
  constexpr std::uint64_t kOfNetworks = 32, kOfClusters = 256, kOfOthers = 16;  // the last two are of each worker
  const Learning& learning = job.learning;
  strategy::StrategyOptions& strategy = job.together.strategy;
  const bool network = learning.IsNetwork(), clusters = learning.model == "kmeans";
  if (strategy.kind == "server" && strategy.synchrony.empty()) strategy.synchrony = "bsp";
  const bool by_rows = !network && !clusters && job.batch == 0;
  const bool walks = strategy.kind == "ring" && learning.model == "factorization";  // each rating is an update
  const bool at_once = learning.optimizer == "lbfgs" || learning.optimizer == "coordinates";
  if (count == 1 || walks || at_once) {  // one of all rows
    if (job.batch == 0) job.batch = network ? kOfNetworks : 1;
    return;
  }
  const auto said = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return job.Said(name); });
  };
  const bool every_said = job.Said("every");
  // These are about gradients, which are exchanged with every update.
  if (by_rows && job.together.elastic.empty() &&
      !said({"strategy", "codec", "layer-factors", "accumulate", "batch-per-worker", "group"}))
    strategy.kind = "average";
  const bool alone_between = by_rows && (strategy.kind == "average" || strategy.kind == "gossip");
  if (alone_between && !every_said) strategy.every = learning.model == "factorization" ? 16384 : 256;
  const auto workers = static_cast<std::uint64_t>(job.together.batch_per_worker ? 1 : count);
  if (job.batch == 0)
    job.batch = network         ? std::max(kOfNetworks, workers)
                : alone_between ? workers
                                : workers * (clusters ? kOfClusters : kOfOthers);
}

}  // namespace

void SettleDefaults(Job& job, const data::Description& description, int workers) {
  Learning& learning = job.learning;
  const bool warmup_said = job.Said("warmup"), shuffle_said = job.Said("shuffle");
  if (job.together.strategy.kind == "scheduled" && learning.optimizer == "auto") learning.optimizer = "coordinates";
  learning.SettleDefaults(description);
  const bool network = learning.IsNetwork();
  if (job.epochs == 0)
    job.epochs = learning.optimizer == "lbfgs" || learning.optimizer == "coordinates"
                     ? 50
                     : (learning.model == "factorization" ? 20
                        : network                         ? 10
                                                          : 1);
  SettleMeeting(job, job.together.MostWorkers(workers));
  if (network && !shuffle_said) job.shuffle = true;
  if (job.together.scale_rate == "linear" && workers > 1) {
    learning.rate *= workers;
    if (!warmup_said) learning.warmup = 500;
  }
  // One pass may be a stream, which has no end to slow down for; several passes settle at theirs.
  if (learning.schedule == "auto") learning.schedule = job.epochs > 1 ? "linear" : "constant";
}

}  // namespace freshet::train
