#include "strategy/ring/layer_balance.h"

#include <algorithm>

namespace freshet::strategy::ring {
namespace {

constexpr double kClearly = 0.95;               // of the larger time: what is measured is not that exact
constexpr double kNearly = 1.05;                // as good
constexpr std::size_t kSoon = 4, kSeldom = 16;  // steps of a round: one after a change, some measured, one to tell
constexpr std::size_t kSoonRounds = 16;

}  // namespace

std::size_t BalanceRounds::length() const { return rounds_ < kSoonRounds ? kSoon : kSeldom; }

void BalanceRounds::BeginStep() {
  if (ends()) {
    ++rounds_;
    at_ = 0;
  }
  ++at_;
}

int BalanceRounds::partner() const {
  if (!ends()) return 0;
  const bool gives_on = (static_cast<std::size_t>(rank_) + rounds_) % 2 == 0;
  if (gives_on) return rank_ + 1 < size_ ? 1 : 0;
  return rank_ > 0 ? -1 : 0;
}

bool Unequal(double one, double other) { return std::min(one, other) < kClearly * std::max(one, other); }

std::size_t BestOffer(std::span<const Offer> offers, double mine, double theirs) {
  const auto larger = [&](const Offer& offer) { return std::max(mine - offer.seconds, theirs + offer.seconds); };
  double least = kClearly * mine;
  std::size_t best = offers.size();
  for (const Offer& offer : offers) least = std::min(least, larger(offer));
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (larger(offers[i]) > std::min(kNearly * least, kClearly * mine)) continue;
    if (best == offers.size() || offers[i].floats < offers[best].floats ||
        (offers[i].floats == offers[best].floats && larger(offers[i]) < larger(offers[best])))
      best = i;
  }
  return best;
}

}  // namespace freshet::strategy::ring
