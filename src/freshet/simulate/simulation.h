#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fabric/collectives/collectives.h"
#include "fabric/sim/cluster.h"
#include "model/model.h"
#include "simulate/costs.h"
#include "strategy/strategy.h"

namespace freshet::simulate {

// A training of a few steps on some nodes of a platform.
struct Scenario {
  fabric::sim::Platform platform;
  int nodes = 1, workers_per_node = 1;
  strategy::StrategyOptions strategy;  // threads: set from the platform's cores; its servers have nodes of their own
  fabric::Collectives::Options collectives;
  int steps = 3;             // of the strategy (for averaging: rounds), after one that is not counted
  double row_bytes = 0;      // read for each row, ahead of what computes; 0: rows are there
  bool shared_disk = false;  // from the file system that all share, else from the node's own disk
  int slow_node = -1;        // one whose cores take slow_times as long
  double slow_times = 1;
  std::map<std::string, double, std::less<>> work = {};  // seconds for a byte, by what Fabric::Spend calls it
  std::uint64_t seed = 1;
  int traced = 0;  // of so many ranks, from the first on, it is kept what they did when
};

// What became of it.
struct Outcome {
  double step_seconds = 0;                      // of an update, mean
  double rows_per_second = 0;                   // all workers together
  strategy::StepTimes times;                    // of an update, mean over workers
  double slowest_compute = 0;                   // of an update, by the worker that took longest
  double bytes_per_update = 0;                  // sent by a worker, mean
  std::vector<fabric::sim::Flows::Link> links;  // by how much of the time they were busy, the busiest first
  double busiest = 0;                           // share of the time that the busiest link was
  double driver = 0;      // share of the time that the rank with most to do spent on messages, where others have little
  double server = 0;      // share of the time that the core of the busiest server did what it serves
  double cores_busy = 0;  // share of the time that cores were, mean over nodes
  double simulated_seconds = 0;
  std::uint64_t letters = 0;
  double reach = 1;   // share of its best speed that a core reaches with as few rows as a worker has
  std::string trace;  // events of Chrome's trace format, for those that were traced

  std::string Bottleneck() const;  // what most of the time goes into, in words
};

// Models of sparse rows compute for real, since what they send depends on it; others have no numbers.
// kInvalid when it cannot be: more workers than rows of an update, more nodes than there are, a model too large.
Result<Outcome> Simulate(const Scenario& scenario, const model::Model& model, const Costs& costs,
                         fabric::sim::Flows& flows);

}  // namespace freshet::simulate
