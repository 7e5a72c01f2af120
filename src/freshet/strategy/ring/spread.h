#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "model/partials.h"
#include "strategy/server/placement.h"

namespace freshet::strategy::ring {

// Which rows and columns of its blocks each member of a ring has, of a model that can be spread (model::Partials). Rows
// that belong to features lie in short ranges, which are spread by hashing, so that what is met often is not all with
// one member; of other rows and of columns each has one range. All blocks of features are cut at the same rows.
//
// Columns may move between members. Who moved them knows; others are to be told what each holds before they ask for it.
//
// Threads: one.
class Spread {
 public:
  static constexpr std::uint64_t kRangeRows = 16;  // of features
  Spread(const model::Model& model, int members);

  int members() const { return members_; }
  bool by_features() const { return by_features_; }  // are there rows that belong to features?
  // The blocks as a member has them, those of features without a row.
  std::vector<optimize::Block> BlocksOf(int member) const;
  optimize::Portion PortionOf(int member) const;

  struct Range {
    std::uint64_t first = 0, last = 0;
    std::uint64_t size() const { return last - first; }
  };
  Range ColumnsOf(std::size_t b, int member) const;

  // What moves, of a model whose rows belong to features: numbers of ranges. Of others: the first row or column, and the one
  // after the last, of the one block that is cut into a range for each member.
  using Columns = std::vector<std::uint32_t>;
  void Move(std::span<const std::uint32_t> columns, int from, int to);
  // May `to` be given these by its neighbour? Asked by `to`.
  bool MayMove(std::span<const std::uint32_t> columns, int from, int to);
  // All that a member holds; of features the ranges that began with others. And that each holds so much, by rank: false for
  // what cannot be.
  Columns HeldBy(int member);
  bool Hold(const std::vector<Columns>& held);
  std::uint64_t cut_length() const { return length_; }  // rows or columns of that block; 0: there are features
  Range RangeOf(int member) const;                      // of them

  int OwnerOfRange(std::uint64_t range) { return placement_.ServerOf(features_, range * kRangeRows); }

  // The rows that a member has of the first `rows` of a block, but for those before `from`, range by range; `at` is how
  // many it has before them.
  using Visit = std::function<void(Range rows, std::uint64_t at)>;
  void VisitRows(std::size_t b, int member, std::uint64_t from, std::uint64_t rows, const Visit& visit);
  std::uint64_t CountRows(std::size_t b, int member, std::uint64_t rows);

  // Copies these rows and columns of a whole table to one that has nothing else, and back. In tables of what an optimizer
  // remembers a row is `slots` times as wide.
  void Take(const optimize::Parameters& whole, std::size_t b, int member, std::uint64_t slots, std::uint64_t from,
            float* own);
  // Of those the floats from `first` on, which begin a row and end one.
  void Give(std::span<const float> own, std::size_t b, int member, std::uint64_t slots, std::uint64_t first,
            optimize::Parameters& whole);

 private:
  using Cut = model::Partials::Cut;
  Range RowsOf(std::size_t b, int member) const;  // of what does not belong to features
  bool IsRange(std::uint64_t range) const { return range <= blocks_[features_].most_rows / kRangeRows; }

  const int members_;
  std::vector<optimize::Block> blocks_;  // whole
  std::vector<Cut> cuts_;
  std::size_t features_ = 0;            // a block of features, when there is one
  std::map<std::uint64_t, int> began_;  // ranges of features that were moved: with whom
  std::uint64_t length_ = 0;
  std::vector<std::uint64_t> firsts_;  // by member, and the end
  bool by_features_ = false;
  server::Placement placement_;
};

}  // namespace freshet::strategy::ring
