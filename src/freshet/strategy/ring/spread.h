#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/partials.h"
#include "strategy/server/placement.h"

namespace freshet::strategy::ring {

// Which rows and columns of its blocks each member of a ring has, of a model that can be spread (model::Partials). Rows
// that belong to features lie in short ranges, which are spread by hashing, so that what is met often is not all with
// one member; of other rows and of columns each has one range. All blocks of features are cut at the same rows.
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

  const int members_;
  std::vector<optimize::Block> blocks_;  // whole
  std::vector<Cut> cuts_;
  std::size_t features_ = 0;  // a block of features, when there is one
  bool by_features_ = false;
  server::Placement placement_;
};

}  // namespace freshet::strategy::ring
