#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace freshet::strategy::ring {

// What a strategy whose members each hold a part of the model says and takes of that between two steps, so that a ring can
// outlive its members (elastic_ring.h). The learner's parameters are the whole.
//
// Threads: that of the strategy. Failure: kCorrupt for bytes that are of no such part.
class Parted {
 public:
  // What this member holds, weights and what the optimizer remembers, with where that belongs.
  virtual std::string Part() = 0;
  // Puts what any member held, of this ring or another, to the whole, with how many updates had been made. The next step
  // begins with what is there.
  virtual Result<void> Put(std::string_view part) = 0;

  // From which row of a piece on scores are wanted, as many as a step is told to; none: this member's share.
  virtual void ScoreFrom(std::optional<std::size_t> row) = 0;
  // As Synchronous has it.
  virtual void AskAdmission(bool admit) = 0;

 protected:
  ~Parted() = default;
};

}  // namespace freshet::strategy::ring
