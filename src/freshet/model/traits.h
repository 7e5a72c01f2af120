#pragma once

#include <cstdint>

namespace freshet::model {

// What a model is to those who train, judge and serve it: each trait says what follows for whoever asks, so that nobody
// asks what kind of model it is. A kind sets those that are true of it; the others stay as they are here.
struct Traits {
  // Who reads and trains.
  bool uses_team = false;       // computes whole batches by the caller's Workspace::threads: rows are best read ahead
  bool shares_updates = false;  // Update may be called by several threads at once, with Sharing::kShared
  bool by_lbfgs = false;        // L-BFGS can train it
  bool own_rule = false;        // alone, row by row, it learns by another rule than from gradients of batches
  bool sums_over_workers = false;  // its gradient depends on what other workers compute meanwhile (Workspace::sum)
  std::uint64_t met_by_entry = 1;  // numbers that an entry of a row meets: how much work a row is

  // What its rows are like.
  bool learns_slowly = false;  // gains by seeing rows many times over
  bool in_sessions = false;    // neighbouring rows are one person's, which looks like drift and is none

  // What comes out.
  bool answers_clusters = false;  // a score is the number of a cluster, the loss a distance; labels are not looked at
  bool weighs_features = false;   // block 0 has one weight for each feature, by which it can be explained
};

}  // namespace freshet::model
