#include "fabric/subset.h"

#include <algorithm>

#include "base/check.h"

namespace freshet::fabric {

Subset::Subset(Fabric& whole, std::vector<int> ranks, Tag apart)
    : whole_(whole), ranks_(std::move(ranks)), apart_(apart) {
  const auto me = std::find(ranks_.begin(), ranks_.end(), whole.rank());
  CHECK(me != ranks_.end());
  rank_ = static_cast<int>(me - ranks_.begin());
}

Result<Arrived> Subset::Wait(Transfer transfer, base::Clock::Duration timeout) {
  Arrived arrived = TRY(whole_.Wait(transfer, timeout));
  const auto from = std::find(ranks_.begin(), ranks_.end(), arrived.from);
  if (from != ranks_.end()) arrived.from = static_cast<int>(from - ranks_.begin());
  return arrived;
}

}  // namespace freshet::fabric
