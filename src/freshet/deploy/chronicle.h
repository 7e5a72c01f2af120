#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace freshet::deploy {

// How a deployment did, moment by moment, for as long as people look back: the last ten minutes by tens of seconds, two
// hours by minutes, a day by ten minutes, two weeks by two hours. It is kept with every version and goes on through the
// records after it, so that a restart knows it.
//
// Threads: one at a time.
class Chronicle {
 public:
  // Sums and counts are of all that ever was, so that what lies between two points can be told from both, and points
  // may go without a loss but of resolution.
  struct Point {
    std::int64_t time = 0;         // seconds since 1970
    double rows = 0, errors = 0;   // predictions judged, and the sum of their errors
    double recent = 0;             // error of about the last thousand
    double log_loss = 0, auc = 0;  // of a classifier's last thousand; below 0: not known
    std::uint64_t observations = 0, iterations = 0, drifts = 0, roll_backs = 0, kept = 0;  // kept: the newest version
  };

  // Whether a point at this time would be the first of its ten seconds.
  bool Due(std::int64_t time) const { return points_.empty() || time / kFinest > points_.back().time / kFinest; }
  // Adds a point that is due, and lets go of older ones.
  void Mark(const Point& point);
  // A time that may be true of a record read again, whose own may be anything a client said: neither before the last
  // point nor after `now`.
  std::int64_t Plausible(std::int64_t time, std::int64_t now) const;
  const std::deque<Point>& points() const { return points_; }

  std::vector<std::vector<double>> Save() const;
  // False, and nothing has changed, when the numbers cannot come from Save.
  [[nodiscard]] bool Load(const std::vector<std::vector<double>>& saved);

 private:
  static constexpr std::int64_t kFinest = 10;
  std::deque<Point> points_;  // oldest first
};

}  // namespace freshet::deploy
