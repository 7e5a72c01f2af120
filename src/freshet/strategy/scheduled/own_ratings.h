#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "model/ratings.h"
#include "strategy/grid.h"
#include "strategy/walk.h"

namespace freshet::strategy::scheduled {

// The two kinds of rows of a factorization.
enum Side : std::size_t { kUsers, kItems };
constexpr Side Other(Side side) { return side == kUsers ? kItems : kUsers; }

// The ratings that one member of a descent has, those by its users and those of its items, and how far each is from what
// is predicted. Users are of Grid::kSides shares, and so are items.
//
// Threads: Visit from any, Add and Arrange from one.
class OwnRatings {
 public:
  // This member's are the users and the items of these shares.
  OwnRatings(std::uint64_t seed, const Walk::Sides& shares) : grid_{seed}, mine_(shares) {}

  // All ratings of all members, in the same order for each: others are counted.
  void Add(const model::Rating& rating);
  void Arrange();  // when all were added; what follows is for then

  std::uint64_t size() const { return size_; }  // of all
  double mean() const { return size_ == 0 ? 0 : sum_ / static_cast<double>(size_); }
  std::uint32_t rows(Side side) const { return static_cast<std::uint32_t>(counts_[side].size()); }  // 1 + the last one
  std::uint32_t count(Side side, std::uint32_t row) const { return counts_[side][row]; }            // by all
  std::size_t ShareOf(Side side, std::uint32_t row) const {
    return side == kUsers ? grid_.UserSide(row) : grid_.ItemSide(row);
  }
  bool Mine(Side side, std::uint32_t row) const { return mine_.Has(ShareOf(side, row)); }

  std::size_t kept() const { return errors_.size(); }
  double& error(std::size_t at) { return errors_[at]; }  // label - prediction; the label, when they were arranged
  double error(std::size_t at) const { return errors_[at]; }
  // Calls visit(at, other row) for each rating of a row that is here, in an order that does not depend on what else is. Of
  // this member's rows these are all there are.
  template <class Visitor>
  void Visit(Side side, std::uint32_t row, const Visitor& visit) const {
    for (std::size_t i = begins_[side][row]; i < begins_[side][row + 1]; ++i) {
      const std::size_t at = side == kUsers ? i : of_items_[i];
      visit(at, others_[side][at]);
    }
  }

 private:
  const Grid grid_;
  const Walk::Sides mine_;
  std::uint64_t size_ = 0;
  double sum_ = 0;  // of labels
  std::array<std::vector<std::uint32_t>, 2> counts_;
  std::vector<model::Rating> added_;  // own ones, until they are arranged

  // Ratings lie by user.
  std::vector<double> errors_;
  std::array<std::vector<std::uint32_t>, 2> others_;  // their items, and their users
  std::vector<std::uint32_t> of_items_;               // where they lie, by item
  std::array<std::vector<std::size_t>, 2> begins_;    // of each row's: users' in errors_, items' in of_items_
};

}  // namespace freshet::strategy::scheduled
