#pragma once

#include "base/settings.h"
#include "fabric/collectives.h"
#include "fabric/launch_environment.h"
#include "strategy/strategy.h"
#include "verb.h"

namespace freshet::cli {

// The flags about working together.
struct WorkerFlags {
  int workers = 0, heartbeat = 250, join_timeout = 30;
  int count = 1;  // of all workers, in this process or others; set by FindPlace
  bool shared_memory = true, tls = false;
  std::string fabric = "tcp", rendezvous, announce, job, token_file;
  int rank = -1, world = 0;
  bool batch_per_worker = false, calibrate = false;
  std::string split = "auto", topology = "auto", scale_rate = "none", algorithm_table;
  strategy::StrategyOptions strategy;

  void Register(base::Settings& settings);
  // Of these, those about one process among several.
  void RegisterPlace(base::Settings& settings);
  // This process's place among several, by flags or the launcher's variables. With --fabric mpi the process may become
  // another program, so nothing may have been begun.
  Result<fabric::Place> FindPlace(const Door& door);
  // Meets the other processes, having announced where, if that is asked for.
  Result<std::unique_ptr<fabric::Fabric>> Connect(const fabric::Place& place, const Door& door) const;
  // Rows of one update over all workers, by --batch and --batch-per-worker.
  std::uint64_t GlobalBatch(std::uint64_t batch) const;
  // Is each worker's input its own share, rather than what all read or have parts of?
  bool own() const { return split == "own"; }
  // Do all workers read all rows, each taking its share of every update?
  bool Whole() const { return split != "bytes" && !own(); }
  Result<fabric::Collectives::Options> Collectives() const;
};

}  // namespace freshet::cli
