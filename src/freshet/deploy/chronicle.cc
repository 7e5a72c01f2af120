#include "deploy/chronicle.h"

#include <algorithm>
#include <cmath>

namespace freshet::deploy {
namespace {

constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour, kOldest = 14 * kDay;

// How far apart points of an age are, in seconds.
std::int64_t SpacingAt(std::int64_t age) {
  return age <= 10 * kMinute ? 10 : (age <= 2 * kHour ? kMinute : (age <= kDay ? 10 * kMinute : 2 * kHour));
}

}  // namespace

void Chronicle::Mark(const Point& point) {
  if (!Due(point.time)) return;
  points_.push_back(point);
  while (points_.front().time < point.time - kOldest) points_.pop_front();
  // The last point of each stretch stays: what happened in it shows by how its counts differ from the one before.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const std::int64_t spacing = SpacingAt(point.time - points_[i].time);
    const bool last = i + 1 == points_.size() || points_[i].time / spacing != points_[i + 1].time / spacing;
    if (last) points_[kept++] = points_[i];
  }
  points_.resize(kept);
}

std::int64_t Chronicle::Plausible(std::int64_t time, std::int64_t now) const {
  const std::int64_t least = points_.empty() ? now - kOldest : points_.back().time;
  return std::min(std::max(time, least), std::max(now, least));
}

std::vector<std::vector<double>> Chronicle::Save() const {
  const auto rounded = [](double x) { return std::round(x * 1e5) / 1e5; };
  std::vector<std::vector<double>> saved;
  for (const Point& p : points_)
    saved.push_back({static_cast<double>(p.time), p.rows, rounded(p.errors), rounded(p.recent), rounded(p.log_loss),
                     rounded(p.auc), static_cast<double>(p.observations), static_cast<double>(p.iterations),
                     static_cast<double>(p.drifts), static_cast<double>(p.roll_backs), static_cast<double>(p.kept)});
  return saved;
}

bool Chronicle::Load(const std::vector<std::vector<double>>& saved) {
  const auto count = [](double x) { return static_cast<std::uint64_t>(x); };
  std::deque<Point> loaded;
  for (const std::vector<double>& p : saved) {
    if (p.size() != 11) return false;
    const auto plausible = [](double x) { return x >= -1e15 && x <= 1e15; };
    for (const std::size_t whole : {0u, 6u, 7u, 8u, 9u, 10u})
      if (!plausible(p[whole]) || (whole > 0 && p[whole] < 0)) return false;
    const auto time = static_cast<std::int64_t>(p[0]);
    if (!loaded.empty() && time <= loaded.back().time) return false;
    loaded.push_back(
        {time, p[1], p[2], p[3], p[4], p[5], count(p[6]), count(p[7]), count(p[8]), count(p[9]), count(p[10])});
  }
  points_ = std::move(loaded);
  return true;
}

}  // namespace freshet::deploy
