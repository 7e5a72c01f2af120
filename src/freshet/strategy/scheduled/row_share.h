#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategy/scheduled/share.h"

namespace freshet::strategy::scheduled {

// The scheduler of one share of the rows (users, or items) of a factorization: whose turn it is.
//
// In recent order those come first that a change since their last turn concerns most, but every Share::kSweep-th place is
// of whoever comes next of all, in an order that is drawn from the seed, so that none is forgotten. In random order there
// are such sweeps alone.
//
// Threads: one.
class RowShare {
 public:
  RowShare() = default;
  RowShare(std::vector<std::uint32_t> rows, Share::Order order, std::uint64_t seed);

  std::span<const std::uint32_t> rows() const { return rows_; }  // all, in ascending order
  // Those for so many places, in ascending order: no row twice, so that they may be fewer. Of any row it is known how much
  // has changed (infinitely: it had no turn yet).
  std::vector<std::uint32_t> Next(std::uint64_t places, std::span<const double> changes);

 private:
  std::vector<std::uint32_t> MostChanged(std::uint64_t count, std::span<const double> changes) const;
  std::vector<std::uint32_t> NextOfSweep(std::uint64_t count, std::span<const std::uint32_t> chosen);

  Share::Order order_ = Share::Order::kRecent;
  std::uint64_t seed_ = 1;
  std::uint64_t places_ = 0;  // so far
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint32_t> sweep_;  // the same in the order in which all come by
  std::size_t swept_ = 0;             // so many of them have, this time round
  std::uint64_t times_round_ = 0;
};

}  // namespace freshet::strategy::scheduled
