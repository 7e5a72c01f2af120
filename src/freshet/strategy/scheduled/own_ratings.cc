#include "strategy/scheduled/own_ratings.h"

#include <algorithm>
#include <numeric>

namespace freshet::strategy::scheduled {

void OwnRatings::Add(const model::Rating& rating) {
  const auto count = [&](Side side, std::uint32_t row) {
    if (counts_[side].size() <= row) counts_[side].resize(std::size_t{row} + 1, 0);
    ++counts_[side][row];
  };
  count(kUsers, rating.user);
  count(kItems, rating.item);
  ++size_;
  sum_ += static_cast<double>(rating.label);
  if (Mine(kUsers, rating.user) || Mine(kItems, rating.item)) added_.push_back(rating);
}

void OwnRatings::Arrange() {
  CHECK(added_.size() <= UINT32_MAX);
  const auto place = [](std::vector<std::size_t>& begins, std::uint32_t rows, const auto& row_of, std::size_t count) {
    begins.assign(std::size_t{rows} + 1, 0);
    for (std::size_t i = 0; i < count; ++i) ++begins[row_of(i) + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    return std::vector<std::size_t>(begins.begin(), begins.end() - 1);  // where the next one of each row goes
  };
  std::vector<std::size_t> next = place(
      begins_[kUsers], rows(kUsers), [&](std::size_t i) { return added_[i].user; }, added_.size());
  errors_.resize(added_.size());
  others_[kUsers].resize(added_.size());
  others_[kItems].resize(added_.size());
  for (const model::Rating& rating : added_) {
    const std::size_t at = next[rating.user]++;
    errors_[at] = static_cast<double>(rating.label);
    others_[kUsers][at] = rating.item;
    others_[kItems][at] = rating.user;
  }
  added_ = {};
  next = place(
      begins_[kItems], rows(kItems), [&](std::size_t at) { return others_[kUsers][at]; }, errors_.size());
  of_items_.resize(errors_.size());
  for (std::size_t at = 0; at < errors_.size(); ++at)
    of_items_[next[others_[kUsers][at]]++] = static_cast<std::uint32_t>(at);
}

}  // namespace freshet::strategy::scheduled
