#include "strategy/scheduled/share.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/random.h"

namespace freshet::strategy::scheduled {

bool Share::Entry::operator<(const Entry& other) const {
  return std::tuple(other.waited, -priority, tie, coordinate) <
         std::tuple(waited, -other.priority, other.tie, other.coordinate);
}

Share::Share(const std::vector<std::uint32_t>& coordinates, Order order, std::uint64_t seed)
    : order_(order),
      seed_(seed),
      turns_(base::Hash64(seed) % kSweep),  // sweeps of all shares need not come in the same round
      out_(coordinates.size(), false),
      sweep_(coordinates.size()) {
  for (const std::uint32_t coordinate : coordinates)
    entries_.push_back({.coordinate = coordinate,
                        .place = static_cast<std::uint32_t>(entries_.size()),
                        .priority = std::numeric_limits<double>::infinity(),
                        .tie = base::Hash64(coordinate ^ base::Hash64(seed))});
  std::iota(sweep_.begin(), sweep_.end(), 0);
  swept_ = sweep_.size();
}

std::optional<std::uint32_t> Share::NextOfLap() {
  if (lap_.empty()) {
    for (const Entry& entry : entries_)
      if (entry.priority > 0) lap_.push_back(entry.place);
    std::sort(lap_.begin(), lap_.end(), [&](std::uint32_t a, std::uint32_t b) { return entries_[a] < entries_[b]; });
  }
  while (!lap_.empty()) {
    const std::uint32_t place = lap_.front();
    lap_.pop_front();
    if (!out_[place]) return place;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> Share::NextOfSweep() {
  for (std::size_t tried = 0; tried < 2 * sweep_.size(); ++tried, ++swept_) {
    if (swept_ >= sweep_.size()) {
      base::Random random(seed_ + times_round_++, "order of coordinates");
      for (std::size_t i = sweep_.size(); i > 1; --i) std::swap(sweep_[i - 1], sweep_[random.Below(i)]);
      swept_ = 0;
    }
    if (!out_[sweep_[swept_]]) return sweep_[swept_];
  }
  return std::nullopt;
}

std::optional<Share::Entry> Share::Next() {
  std::optional<std::uint32_t> place;
  if (order_ == Order::kRecent && ++turns_ % kSweep != 0) place = NextOfLap();
  if (!place) place = NextOfSweep();
  if (!place) return std::nullopt;
  out_[*place] = true;
  return entries_[*place];
}

// It comes at the end of the lap, or as soon as the sweep has another turn.
void Share::PutOff(const Entry& entry) {
  out_[entry.place] = false;
  ++entries_[entry.place].waited;
  if (order_ == Order::kRecent && entry.priority > 0) lap_.push_back(entry.place);
}

void Share::Updated(Entry entry, double change) {
  if (swept_ < sweep_.size() && sweep_[swept_] == entry.place) ++swept_;
  out_[entry.place] = false;
  entry.waited = 0;
  entry.priority = change;
  entries_[entry.place] = entry;
}

}  // namespace freshet::strategy::scheduled
