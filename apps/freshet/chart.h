#pragma once

#include <string>
#include <vector>

namespace freshet::cli {

struct Point {
  double x, y;
};
struct Line {
  std::string name;
  std::vector<Point> points;
  std::vector<double> drifts = {}, retrainings = {};  // where on the way they were, to be marked
};
struct Bounds {
  double x0 = 1e300, x1 = -1e300, y0 = 1e300, y1 = -1e300;
};
// Of all points; never without width or height.
Bounds BoundsOf(const std::vector<Line>& lines);

// A line chart for a terminal: `width` × `height` characters of blocks and an axis.
std::string TerminalChart(const std::vector<Line>& lines, const std::string& x_name, int width = 64, int height = 12);
// The same as an SVG picture, with ticks at round numbers. A long title is broken where it has a comma.
std::string SvgChart(const std::string& title, const std::vector<Line>& lines, const std::string& x_name,
                     const std::string& y_name);

// Means of a stream of losses over stretches of rows, thinned so that there are never more than 256 points.
class Curve {
 public:
  // Totals so far, of all epochs.
  void Add(double rows, double total_loss, double total_weight);
  std::vector<Point> points() const;

 private:
  struct Stretch {
    double rows, loss, weight;
  };
  std::vector<Stretch> stretches_;
  double last_loss_ = 0, last_weight_ = 0, least_rows_ = 0, last_rows_ = 0;
};

}  // namespace freshet::cli
