#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/trace.h"
#include "fabric/collectives/transfers.h"
#include "fabric/one_clock.h"

namespace freshet::train {

// The trace of a training run: a recorder for each worker of this process and, at the end, what the other processes
// recorded, in one file on rank 0's clock.
//
// Workers of one process share its clock. Processes compare theirs with rank 0's before and after training; what lies
// between is placed as if clocks drifted evenly, so that spans of different processes are right to the error that is
// told with each of them.
//
// Threads: recorders any; the rest one. Ownership: borrows files and clock.
class TrainTrace {
 public:
  // `rank` is this process's, of several; `workers` those within it. Rank 0 replaces the file by an empty trace now, so
  // that a path that cannot be written is refused before anything is trained.
  static Result<std::unique_ptr<TrainTrace>> Open(base::Files& files, base::Clock& clock, std::string path, int rank,
                                                  int workers);

  base::Trace& recorder(int worker) { return *recorders_[static_cast<std::size_t>(worker)]; }

  // Of processes, all together: before training, and after it. Gather brings everything to rank 0.
  Result<void> CompareClocks(fabric::Collectives& collectives);
  Result<void> Gather(fabric::Collectives& collectives);
  // The same after training alone, for those who are there in the end, with the ranks they then have.
  Result<void> GatherThose(fabric::Collectives& collectives);

  // Writes what there is; rank 0 alone. After a failure that is what this process recorded.
  Result<void> Write() const;
  bool writes() const { return rank_ == 0; }
  const std::string& path() const { return path_; }
  std::uint64_t spans() const;    // in all, of those that are there
  std::uint64_t dropped() const;  // and that there was no room for

 private:
  TrainTrace(base::Files& files, base::Clock& clock, std::string path, int rank, int workers);
  Result<void> Send(fabric::Transfers& transfers) const;
  Result<void> Receive(fabric::Transfers& transfers);
  std::string Events(std::size_t worker) const;

  base::Files& files_;
  base::Clock& clock_;
  const std::string path_;
  int rank_;
  base::Clock::Duration origin_;  // what the picture calls 0, by rank 0's clock
  std::string host_ = "localhost";
  std::vector<std::unique_ptr<base::Trace>> recorders_;
  fabric::ClockReading first_, last_;
  std::vector<std::string> others_;  // events of other processes
  std::uint64_t others_spans_ = 0, others_dropped_ = 0;
};

}  // namespace freshet::train
