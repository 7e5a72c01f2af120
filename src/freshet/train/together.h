#pragma once

#include <cstdint>
#include <string>

#include "base/settings.h"
#include "fabric/collectives/collectives.h"
#include "strategy/scheduled/options.h"
#include "strategy/strategy.h"

namespace freshet::train {

// How workers train one model together.
struct Together {
  int workers = 0;                     // in this process, each with its share of the threads (0: one, alone)
  bool batch_per_worker = false;       // a batch is of each worker, not of all together
  std::string scale_rate = "none";     // linear: the rate times the number of workers, reached by a warm-up
  std::string elastic;                 // MIN:MAX processes, that may come and go while they train; empty: they may not
  double elastic_wait = 0;             // seconds for which too few wait for others to come, before they stop
  double evict = 0;                    // elastic: who is so many times slower than the others is left out; 0: nobody
  double evict_after = 10;             // seconds in a row
  std::uint64_t copy_every = 16;       // elastic: steps between copies of what a codec has not sent yet; 0: none
  std::string split = "auto";          // how rows are shared out: rows, bytes, own
  std::string topology = "auto";       // how sums travel
  bool calibrate = false;              // topology auto: by measurements, not a fixed table
  std::string algorithm_table;         // topology auto: what goes how from which size on
  strategy::StrategyOptions strategy;  // its batch, whole and threads are set by the job; kind auto: see choice.h

  strategy::scheduled::DescentOptions descent;  // of strategy scheduled

  // Binds the options to their names. The caller begins the group.
  void Register(base::Settings& settings);
  // Those among them that say what is exchanged, and how: not where rows come from, nor how many are servers.
  void RegisterExchange(base::Settings& settings, std::vector<std::string> strategies = strategy::Strategy::Kinds());
  void RegisterServers(base::Settings& settings);

  // Is each worker's input its own share, rather than what all read or have parts of?
  bool own() const { return split == "own"; }
  // Do all workers read all rows, each taking its share of every update?
  bool Whole() const { return split != "bytes" && !own(); }
  // How many workers there may be, where they may come and go.
  struct Bounds {
    int least = 1, most = 1;
  };
  Result<Bounds> ElasticBounds() const;  // kInvalid for what is no MIN:MAX
  // Of those who begin: or so many as may come, where they may.
  int MostWorkers(int begin) const;
  // kInvalid for a topology and a table that contradict each other.
  Result<fabric::Collectives::Options> Collectives() const;
};

}  // namespace freshet::train
