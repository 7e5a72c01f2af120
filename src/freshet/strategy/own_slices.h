#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/network/slicing.h"
#include "strategy/strategy.h"

namespace freshet::strategy {

// What one worker has of a network whose wide layers are cut into slices: parameters and an optimizer of its own, with
// its slices and all of every other block. The learner's, which are the whole, are as they were when all last met.
//
// Threads: one. Ownership: borrows the learner. Failure: kInvalid when it is no network, nothing is cut, or there is no
// memory.
class OwnSlices {
 public:
  // Of `members` workers this one, for updates of so many rows of all (StrategyOptions::slice_all says whether to cut
  // what need not be).
  static Result<std::unique_ptr<OwnSlices>> Make(const StrategyOptions& options, const Learner& learner, int member,
                                                 int members, std::uint64_t rows);

  optimize::Parameters& parameters() { return *parameters_; }
  optimize::Optimizer& optimizer() { return *optimizer_; }
  const optimize::Portion& portion() const { return portions_[static_cast<std::size_t>(slicing_.rank)]; }
  // Blocks of which each worker has a slice: their gradients are nobody else's.
  const std::vector<bool>& sliced() const { return sliced_; }
  // As of an update in which the workers have so many rows each.
  model::network::Slicing Of(std::vector<std::size_t> rows) const;

  // Takes everything from the whole, when that is newer: at first, and after all have met.
  void Take();
  // An update was made: the whole is behind.
  void Changed();
  // Gives everything to the whole, the slices of all workers among it. All call it together.
  Result<void> Give(fabric::Collectives& collectives);

 private:
  OwnSlices(const Learner& learner, model::network::Slicing slicing)
      : learner_(learner), slicing_(std::move(slicing)) {}
  // The part of a block that a worker has: from a row of the whole to one of the part, or back.
  template <class Visit>
  void VisitPart(std::size_t b, int member, std::size_t slots, const Visit& visit) const;

  const Learner learner_;
  const model::network::Slicing slicing_;
  std::vector<optimize::Portion> portions_;  // by member
  std::optional<optimize::Parameters> parameters_;
  std::unique_ptr<optimize::Optimizer> optimizer_;
  std::vector<bool> sliced_;
  bool behind_ = true, ahead_ = false;  // of the whole
};

}  // namespace freshet::strategy
