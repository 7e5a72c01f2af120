#pragma once

#include <cstdint>
#include <string>

#include "base/files.h"

namespace freshet::train {

// Where a worker's own file lies beside one of rank 0.
std::string PathOfRank(const std::string& path, int rank);

// The names of a run's checkpoint and of what lies beside it: a part of each worker (CHECKPOINT.rankK.saveN) for the
// save that the checkpoint is of, and what runs leave there: parts that no checkpoint names any more, and drafts
// (….PID.draft) of a run that was killed while it wrote.
//
// Threads: any. Ownership: borrows files, which outlive it.
class CheckpointFiles {
 public:
  // As this worker sees them. `workers` are those who leave parts: 0 for who trains alone.
  CheckpointFiles(base::Files& files, std::string path, int rank, int workers);

  const std::string& path() const { return path_; }
  bool Exist() const { return files_.Exists(path_); }
  std::string Part(std::uint64_t save) const;  // this worker's

  // Each worker takes away its own: at the start drafts, at any time parts of other saves than the checkpoint's. Rank 0,
  // or who trains alone, takes away what larger groups left as well; their parts of this save only when the checkpoint
  // is no longer theirs. Whatever cannot be removed stays.
  enum class When { kStart, kSaved };
  void RemoveLeftovers(std::uint64_t save, When when) const;

 private:
  base::Files& files_;
  const std::string path_;
  const int rank_, workers_;
};

}  // namespace freshet::train
