#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "data/rows.h"

namespace freshet::strategy::ring {

// Steps that may have to be made again: their rows, and what else they depended on.
//
// Threads: one. Ownership: copies rows; their memory is used again.
class KeptSteps {
 public:
  struct Step {
    std::uint64_t number = 0;  // the how-manieth update
    data::Rows rows;           // as all members were handed them
    double progress = 0;
    std::size_t first = 0, mine = 0;  // rows of which this member was to write the scores
  };
  // The one after all that are kept.
  void Add(std::uint64_t number, const data::Batch& piece, double progress, std::size_t first, std::size_t mine);
  void DropLast();
  void DropUpTo(std::uint64_t number);

  const std::deque<Step>& steps() const { return steps_; }  // ascending
  // Of the steps after that one.
  std::size_t BytesAfter(std::uint64_t number) const;

 private:
  std::deque<Step> steps_;
  std::vector<data::Rows> spare_;
};

}  // namespace freshet::strategy::ring
