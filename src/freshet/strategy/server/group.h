#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fabric/subset.h"
#include "strategy/gradient_sum.h"
#include "strategy/strategy.h"

namespace freshet::strategy::server {

// The workers that make each update of one worker of a parameter server together: the first leads them, which is to say
// that it works with the servers, and gives the others what it has read; then all sum their gradients.
//
// Ownership: borrows the fabric and the learner's things. Threads: one. Blocking: Hear, for as long as the leader may have to
// wait for servers (Letterbox::kPatience), all else as collectives. Failure: the fabric's.
class Group {
 public:
  // What the leader tells the others: that there is a gradient to be made, and, after each piece of rows, where they are.
  struct Word {
    enum class What : std::uint64_t { kGradient, kAfter } what = What::kAfter;
    std::uint64_t step = 0;      // of the model, which a gradient is for
    std::uint64_t order = 0;     // that is followed now; 0: none
    std::uint64_t ended = 0;     // the epoch has
    std::uint64_t ticketed = 0;  // pieces are given out by tickets, and this is the group's next one
    std::uint64_t ticket = 0;
  };

  // `ranks`: of its members in the whole fabric, ascending.
  static Result<std::unique_ptr<Group>> Make(const StrategyOptions& options, const Strategy::World& world,
                                             const std::vector<int>& ranks);
  ~Group();

  bool leads() const { return fabric_.rank() == 0; }
  int size() const { return fabric_.size(); }
  // This member's rows, of those of the group.
  data::Batch Share(const data::Batch& rows) const;

  Result<void> Tell(const Word& word);  // by the leader
  Result<Word> Hear();                  // by the others

  // All call these. What the leader has of the parameters that these rows need.
  Result<void> ShareRows(const data::Batch& rows, bool dense);
  Result<void> Sum(optimize::Gradient& gradient, std::uint64_t step);
  // Everything the leader has, and what its optimizer remembers.
  Result<void> ShareAll();

  // Somebody wants to stop: that is told the leader, who looks now and then.
  Result<void> WantStop();
  Result<bool> StopWanted();
  // The leader listens from a step on until all have met: who has nothing more to do may leave then.
  Result<void> Listen();
  void EndListening();

 private:
  Group(const Strategy::World& world, const std::vector<int>& ranks);
  Result<void> Broadcast(std::span<float> floats);

  const Strategy::World& world_;
  fabric::Subset fabric_;
  fabric::Collectives collectives_;
  const fabric::Tag word_tag_, wish_tag_;
  std::optional<GradientSum> sum_;
  optimize::RowSets touched_;
  std::vector<float> floats_;
  std::vector<int> quiet_;                  // who has not wished anything yet
  std::map<int, fabric::Transfer> wishes_;  // that may come, by rank
  std::optional<fabric::Transfer> wish_;    // this one's, on its way
  bool stop_wanted_ = false;
};

}  // namespace freshet::strategy::server
