#pragma once

#include <cstddef>
#include <vector>

namespace freshet::model::network::picture {

// Where boxes and the lines between them go when a graph is drawn in rows from top to bottom.

struct Spot {
  std::size_t row = 0;
  double x = 0;  // of the middle
};
struct Path {
  std::size_t from = 0, to = 0;
  std::vector<Spot> bends;  // in the rows between, where it passes beside the boxes
};
struct Layout {
  std::vector<Spot> spots;  // of every box
  std::vector<Path> paths;  // in the order of boxes and of what they read
  std::size_t rows = 0;
  double width = 0;
};

// Boxes of given widths, each reading some before it. Each stands below all it reads; neighbours in a row keep `gap`
// apart.
Layout LayOut(const std::vector<double>& widths, const std::vector<std::vector<std::size_t>>& from, double gap);

}  // namespace freshet::model::network::picture
