#include "strategy/scheduled/row_share.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace freshet::strategy::scheduled {

RowShare::RowShare(std::vector<std::uint32_t> rows, Share::Order order, std::uint64_t seed)
    : order_(order),
      seed_(seed),
      places_(base::Hash64(seed) % Share::kSweep),  // sweeps of all shares need not come at the same time
      rows_(std::move(rows)),
      sweep_(rows_),
      swept_(rows_.size()) {
  std::sort(rows_.begin(), rows_.end());
}

std::vector<std::uint32_t> RowShare::Next(std::uint64_t places, std::span<const double> changes) {
  const std::uint64_t count = std::min<std::uint64_t>(places, rows_.size());
  const std::uint64_t of_sweep =
      order_ == Share::Order::kRandom ? count : (places_ + count) / Share::kSweep - places_ / Share::kSweep;
  places_ += count;
  std::vector<std::uint32_t> chosen = MostChanged(count - of_sweep, changes);
  std::sort(chosen.begin(), chosen.end());
  const std::vector<std::uint32_t> swept = NextOfSweep(of_sweep, chosen);
  chosen.insert(chosen.end(), swept.begin(), swept.end());
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<std::uint32_t> RowShare::MostChanged(std::uint64_t count, std::span<const double> changes) const {
  if (count == 0) return {};
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    if (changes[a] != changes[b]) return changes[a] > changes[b];
    const std::uint64_t drawn_a = base::Hash64(a ^ seed_), drawn_b = base::Hash64(b ^ seed_);
    return drawn_a != drawn_b ? drawn_a < drawn_b : a < b;
  };
  std::vector<std::uint32_t> chosen = rows_;
  const auto last = chosen.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(chosen.begin(), last - 1, chosen.end(), before);
  chosen.erase(last, chosen.end());
  return chosen;
}

// Who was chosen already has been by. A time round ends with the places of a turn.
std::vector<std::uint32_t> RowShare::NextOfSweep(std::uint64_t count, std::span<const std::uint32_t> chosen) {
  std::vector<std::uint32_t> swept;
  if (count > 0 && swept_ == sweep_.size()) {
    base::Random random(seed_ + times_round_++, "order of rows");
    for (std::size_t i = sweep_.size(); i > 1; --i) std::swap(sweep_[i - 1], sweep_[random.Below(i)]);
    swept_ = 0;
  }
  for (; swept.size() < count && swept_ < sweep_.size(); ++swept_)
    if (!std::binary_search(chosen.begin(), chosen.end(), sweep_[swept_])) swept.push_back(sweep_[swept_]);
  return swept;
}

}  // namespace freshet::strategy::scheduled
