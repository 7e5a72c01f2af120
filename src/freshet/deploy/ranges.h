#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace freshet::deploy {

// Stretches of numbers, both ends included, in order and with gaps between them.
class Ranges {
 public:
  using Range = std::pair<std::uint64_t, std::uint64_t>;

  Ranges() = default;
  explicit Ranges(const std::vector<Range>& ranges) {
    for (const Range& range : ranges) Add(range.first, range.second);
  }

  // Nothing when first > last. Cheap when what is added comes after the rest.
  void Add(std::uint64_t first, std::uint64_t last) {
    if (first > last) return;
    auto begin = std::lower_bound(ranges_.begin(), ranges_.end(), first,
                                  [](const Range& range, std::uint64_t n) { return range.second < n; });
    if (begin != ranges_.begin() && std::prev(begin)->second + 1 == first) --begin;
    auto end = begin;
    for (; end != ranges_.end() && end->first <= last + 1; ++end) {
      first = std::min(first, end->first);
      last = std::max(last, end->second);
    }
    ranges_.insert(ranges_.erase(begin, end), {first, last});
  }
  void Add(const Ranges& others) {
    for (const Range& range : others.ranges_) Add(range.first, range.second);
  }

  bool Holds(std::uint64_t number) const {
    const auto range = std::lower_bound(ranges_.begin(), ranges_.end(), number,
                                        [](const Range& r, std::uint64_t n) { return r.second < n; });
    return range != ranges_.end() && range->first <= number;
  }
  bool empty() const { return ranges_.empty(); }
  const std::vector<Range>& list() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

}  // namespace freshet::deploy
