#include "fabric/subset.h"

#include <algorithm>

#include "base/check.h"

namespace freshet::fabric {

Subset::Subset(Fabric& whole, std::vector<int> ranks, Tag apart)
    : whole_(whole), ranks_(std::move(ranks)), others_(ranks_), apart_(apart), rank_(Here(whole.rank())) {
  CHECK(rank_ != kAnyRank);
  std::erase(others_, whole.rank());
}

int Subset::Here(int rank_of_whole) const {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank_of_whole);
  return found == ranks_.end() ? kAnyRank : static_cast<int>(found - ranks_.begin());
}

std::vector<int> Subset::Whole(std::span<const int> ranks) const {
  std::vector<int> whole;
  for (const int rank : ranks) whole.push_back(Whole(rank));
  return whole;
}

Result<Arrived> Subset::Wait(Transfer transfer, base::Clock::Duration timeout) {
  Arrived arrived = TRY(whole_.Wait(transfer, timeout));
  if (const int from = Here(arrived.from); from != kAnyRank) arrived.from = from;
  return arrived;
}

std::vector<Loss> Subset::Lost(std::size_t known) const {
  std::vector<Loss> losses;
  for (Loss& loss : whole_.Lost()) {
    loss.rank = Here(loss.rank);
    if (loss.rank != kAnyRank) losses.push_back(std::move(loss));
  }
  losses.erase(losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(std::min(known, losses.size())));
  return losses;
}

}  // namespace freshet::fabric
