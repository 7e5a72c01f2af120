#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/rows.h"
#include "strategy/ring/spread.h"
#include "strategy/strategy.h"

namespace freshet::strategy::ring {

// What one member of a ring has of a model that is spread: its rows and columns of the parameters, what the optimizer
// remembers of them, and of rows to learn from what meets them. Between two steps it can be given back to the whole, or
// be taken from there.
//
// Threads: one. Ownership: borrows the learner, whose parameters are the whole. Failure: kInvalid when there is no
// memory.
class OwnPart {
 public:
  static Result<OwnPart> Make(const Learner& learner, int member, int members);

  optimize::Parameters& parameters() { return held_.parameters; }
  optimize::Optimizer& optimizer() { return *held_.optimizer; }
  optimize::Gradient& gradient() { return held_.gradient; }
  Spread& spread() { return spread_; }  // Recut comes after it was changed

  // Takes from the whole what is its own and has not been taken yet: everything, or what it has grown by.
  Result<void> Take();
  // All of the whole is newer than what is here: the next Take takes everything.
  void Forget() { taken_.assign(taken_.size(), 0); }
  // What is here of a block, or what the optimizer remembers of that, one row after another: a piece of it, of so many as
  // it has, which are few, so that nobody needs much memory for those of others. And those of any member, into the whole.
  std::uint64_t Pieces(std::size_t b, bool state);
  std::span<const float> Values(std::size_t b, bool state, std::uint64_t piece);
  // Everything that is here to the whole, from where columns can be given away and Recut takes those that are held now.
  void GiveBack();
  Result<void> Recut();
  // Columns of the whole (Spread::Columns) with what the optimizer remembers, as floats, and back. False when they are more
  // or fewer than there must be.
  std::vector<float> Gather(std::span<const std::uint32_t> columns);
  bool Scatter(std::span<const std::uint32_t> columns, std::span<const float> values);

  bool AllHave(std::size_t b) const;  // all of that block, and the same
  Result<void> Put(std::size_t b, bool state, std::uint64_t piece, int member, std::span<const float> values);

  // All that is here, with how many members there are and which of them has it, as bytes; and what any member of any ring
  // had, to the whole, of rows that this has. kCorrupt for bytes that are of no part.
  std::string Encode() const;
  static Result<void> Decode(const Learner& learner, std::string_view bytes);

  // The rows with what belongs to these parameters alone. Valid until the next call, as long as `rows` is.
  data::Batch Of(const data::Batch& rows);
  // The same of rows that have nothing else any more (HandedRows), but for the numbers of sparse entries.
  data::Batch OfHanded(const data::Batch& rows) { return spread_.by_features() ? FeaturesOf(rows) : rows; }

 private:
  struct Held {
    optimize::Parameters parameters;
    std::unique_ptr<optimize::Optimizer> optimizer;
    optimize::Gradient gradient;
  };
  static Result<Held> Hold(const Learner& learner, const Spread& spread, int member);
  OwnPart(const Learner& learner, int member, int members, Spread spread, Held held);
  // The floats of a piece, of those that a member has.
  Spread::Range PieceOf(std::size_t b, bool state, std::uint64_t piece, int member);
  using Visit = std::function<void(std::span<float> values)>;
  void VisitColumns(std::span<const std::uint32_t> columns, const Visit& visit);
  void FindPlaces();
  data::Batch FeaturesOf(const data::Batch& rows);
  data::Batch NumbersOf(const data::Batch& rows, const Spread::Range& columns);

  Learner learner_;
  int member_, members_;
  Spread spread_;
  Held held_;
  std::vector<std::uint64_t> taken_;  // rows of the whole, by block
  std::vector<std::int32_t> places_;  // of ranges of features: the how-manieth that is here, or -1
  std::int32_t placed_ = 0;           // of those, how many are here
  data::Rows entries_;                // sparse rows, as Of makes them
  std::vector<float> numbers_;        // dense ones
};

}  // namespace freshet::strategy::ring
