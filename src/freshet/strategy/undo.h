#pragma once

#include <cstdint>
#include <vector>

#include "data/batch.h"
#include "strategy/strategy.h"

namespace freshet::strategy {

// Copies of what a step may change: rows of parameters with what is beside them, the optimizer's state and its count of
// steps. So that a step that fails can be taken back.
//
// Threads: one. Ownership: borrows the learner.
class Undo {
 public:
  explicit Undo(const Learner& learner) : learner_(learner) {}

  void Begin();                               // nothing is kept
  void KeepRowsOf(const data::Batch& batch);  // what updates from these rows change
  void KeepAll();
  void Restore();

 private:
  // A row of a table, and where its floats lie in values_.
  struct Kept {
    std::size_t block = 0;
    std::uint64_t row = 0;
  };
  void Keep(std::size_t block, std::uint64_t row);

  const Learner learner_;
  std::uint64_t step_ = 0;
  std::vector<Kept> rows_;
  std::vector<float> values_;  // of each row kept: itself, what is beside it, the optimizer's state of it
  optimize::RowSets touched_;
};

}  // namespace freshet::strategy
