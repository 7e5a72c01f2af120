#include "deploy/drift/adwin.h"

#include <algorithm>
#include <cmath>

namespace freshet::deploy {
namespace {

constexpr double kDelta = 0.002;
constexpr int kCheckEvery = 32;
constexpr std::size_t kSameSize = 5;  // buckets
constexpr double kLeastPart = 5;      // errors on each side of a cut
constexpr std::size_t kNumbers = 5;   // that a saved bucket takes

}  // namespace

void Adwin::Bucket::Merge(const Bucket& newer) {
  low = moments.count > 0 ? std::min(low, newer.low) : newer.low;
  high = moments.count > 0 ? std::max(high, newer.high) : newer.high;
  moments.Merge(newer.moments);
}

bool Adwin::Bucket::plausible() const {
  return moments.plausible() && moments.count >= 1 &&
         std::exp2(std::round(std::log2(moments.count))) == moments.count && std::isfinite(low) &&
         std::isfinite(high) && low <= high;
}

Drift Adwin::OnError(double error) {
  buckets_.push_back({{1, error, 0}, error, error});
  Compress();
  if (--until_check_ > 0) return Drift::kNone;
  until_check_ = kCheckEvery;
  for (;;) switch (FindChange()) {
      case Change::kNone:
        return Drift::kNone;
      case Change::kFall:
        buckets_.erase(buckets_.begin());
        break;
      case Change::kRise:
        while (FindChange() != Change::kNone) buckets_.erase(buckets_.begin());  // what is left came after the change
        SetSince(rows());
        buckets_.clear();
        return Drift::kDrift;
    }
}

// Merges the two oldest buckets of each size of which there are too many, from the small sizes to the large.
void Adwin::Compress() {
  for (std::size_t end = buckets_.size(); end > 0;) {
    std::size_t begin = end;
    while (begin > 0 && buckets_[begin - 1].moments.count == buckets_[end - 1].moments.count) --begin;
    if (end - begin <= kSameSize) return;
    buckets_[begin].Merge(buckets_[begin + 1]);
    buckets_.erase(buckets_.begin() + static_cast<std::ptrdiff_t>(begin) + 1);
    end = begin + 1;
  }
}

Adwin::Bucket Adwin::Window() const {
  Bucket window;
  for (const Bucket& bucket : buckets_) window.Merge(bucket);
  return window;
}

Adwin::Change Adwin::FindChange() const {
  const Bucket window = Window();
  const ErrorMoments& all = window.moments;
  if (all.count < 2 * kLeastPart) return Change::kNone;
  const double confidence = std::log(2 * std::log(all.count) / kDelta);
  ErrorMoments old;
  for (const Bucket& bucket : buckets_) {
    old.Merge(bucket.moments);
    const double rest = all.count - old.count;
    if (rest < kLeastPart) break;
    if (old.count < kLeastPart) continue;
    const double m = 1 / old.count + 1 / rest;
    const double rise = (all.mean - old.mean) * (all.count / rest);  // the mean of the rest, less that of the old
    const double chance =
        std::sqrt(2 * m * all.variance() * confidence) + 2.0 / 3 * m * (window.high - window.low) * confidence;
    if (std::abs(rise) > chance) return rise > 0 ? Change::kRise : Change::kFall;
  }
  return Change::kNone;
}

std::vector<double> Adwin::Save() const {
  std::vector<double> state = {static_cast<double>(until_check_)};
  for (const auto& [moments, low, high] : buckets_)
    state.insert(state.end(), {moments.count, moments.mean, moments.squares, low, high});
  return state;
}

bool Adwin::Load(std::span<const double> state) {
  if (state.size() % kNumbers != 1) return false;
  if (!(state[0] >= 1 && state[0] <= kCheckEvery && state[0] == std::floor(state[0]))) return false;
  std::vector<Bucket> buckets;
  for (std::size_t i = 1; i < state.size(); i += kNumbers) {
    const Bucket bucket{{state[i], state[i + 1], state[i + 2]}, state[i + 3], state[i + 4]};
    if (!bucket.plausible()) return false;
    if (!buckets.empty() && bucket.moments.count > buckets.back().moments.count) return false;
    buckets.push_back(bucket);
  }
  buckets_ = std::move(buckets);
  until_check_ = static_cast<int>(state[0]);
  return true;
}

}  // namespace freshet::deploy
