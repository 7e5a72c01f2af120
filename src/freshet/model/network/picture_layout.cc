// The usual four steps for drawing layers: rows by the longest way from the top, bends where a line crosses a row,
// order within rows by the mean of neighbours, places by least squares.

#include "model/network/picture_layout.h"

#include <algorithm>

namespace freshet::model::network::picture {
namespace {

constexpr std::size_t kMostBends = 50'000;  // longer lines of larger graphs go straight
constexpr int kOrderings = 12, kSettlings = 40;

// Values that rise by at least gaps[i] from i to i + 1 and are, in squares, nearest to the wanted ones: what is left
// after taking the gaps off must not fall, so neighbours that do are pooled at their mean.
std::vector<double> Spread(const std::vector<double>& wanted, const std::vector<double>& gaps) {
  struct Pool {
    double sum;
    std::size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Pool> pools;
  std::vector<double> offsets;
  double offset = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i > 0) offset += gaps[i - 1];
    offsets.push_back(offset);
    pools.push_back({wanted[i] - offset, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().count += last.count;
    }
  }
  std::vector<double> places;
  for (const Pool& pool : pools)
    for (std::size_t i = 0; i < pool.count; ++i) places.push_back(pool.mean() + offsets[places.size()]);
  return places;
}

class Drawing {
 public:
  Drawing(const std::vector<double>& widths, const std::vector<std::vector<std::size_t>>& from, double gap)
      : boxes_(widths.size()), gap_(gap) {
    for (std::size_t b = 0; b < boxes_; ++b) {
      std::size_t row = 0;
      for (const std::size_t f : from[b]) row = std::max(row, nodes_[f].spot.row + 1);
      AddNode(row, widths[b]);
    }
    for (std::size_t b = 0; b < boxes_; ++b)
      for (const std::size_t f : from[b]) Connect(f, b);
  }

  Layout Run() {
    for (auto& row : rows_) Pack(row);
    for (int sweep = 0; sweep < kOrderings; ++sweep) {
      for (std::size_t r = 1; r < rows_.size(); ++r) Order(rows_[r], &Node::above);
      for (std::size_t r = rows_.size(); r-- > 0;) Order(rows_[r], &Node::below);
    }
    for (int sweep = 0; sweep < kSettlings; ++sweep) {
      for (std::size_t r = 1; r < rows_.size(); ++r) Settle(rows_[r]);
      for (std::size_t r = rows_.size(); r-- > 0;) Settle(rows_[r]);
    }
    return Finish();
  }

 private:
  struct Node {
    Spot spot;
    double width;
    std::vector<std::size_t> above = {}, below = {};
  };

  std::size_t AddNode(std::size_t row, double width) {
    nodes_.push_back({{row, 0}, width});
    if (rows_.size() <= row) rows_.resize(row + 1);
    rows_[row].push_back(nodes_.size() - 1);
    return nodes_.size() - 1;
  }

  void Link(std::size_t above, std::size_t below) {
    nodes_[above].below.push_back(below);
    nodes_[below].above.push_back(above);
  }

  void Connect(std::size_t from, std::size_t to) {
    Line line{from, to, {}};
    std::size_t at = from;
    if (nodes_.size() < kMostBends)
      for (std::size_t row = nodes_[from].spot.row + 1; row < nodes_[to].spot.row; ++row) {
        const std::size_t bend = AddNode(row, 0);
        Link(at, bend);
        line.bends.push_back(at = bend);
      }
    Link(at, to);
    lines_.push_back(std::move(line));
  }

  std::vector<double> Gaps(const std::vector<std::size_t>& row) const {
    std::vector<double> gaps;
    for (std::size_t i = 1; i < row.size(); ++i)
      gaps.push_back((nodes_[row[i - 1]].width + nodes_[row[i]].width) / 2 + gap_);
    return gaps;
  }

  void Put(const std::vector<std::size_t>& row, const std::vector<double>& wanted) {
    const std::vector<double> places = Spread(wanted, Gaps(row));
    for (std::size_t i = 0; i < row.size(); ++i) nodes_[row[i]].spot.x = places[i];
  }
  // Side by side around the middle.
  void Pack(const std::vector<std::size_t>& row) { Put(row, std::vector<double>(row.size(), 0.0)); }

  void Order(std::vector<std::size_t>& row, std::vector<std::size_t> Node::*side) {
    std::vector<std::pair<double, std::size_t>> keys;
    for (const std::size_t n : row) {
      const auto& others = nodes_[n].*side;
      double sum = 0;
      for (const std::size_t o : others) sum += nodes_[o].spot.x;
      keys.emplace_back(others.empty() ? nodes_[n].spot.x : sum / static_cast<double>(others.size()), n);
    }
    std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = keys[i].second;
    Pack(row);
  }

  // How much a link wants to be straight: that between two bends most, then that of a chain.
  double Pull(std::size_t above, std::size_t below) const {
    if (above >= boxes_ && below >= boxes_) return 8;
    return nodes_[above].below.size() == 1 && nodes_[below].above.size() == 1 ? 4 : 1;
  }

  // Moves the nodes of a row towards what they are linked to.
  void Settle(const std::vector<std::size_t>& row) {
    std::vector<double> wanted;
    for (const std::size_t n : row) {
      double sum = 0, weight = 0;
      for (const auto* const side : {&nodes_[n].above, &nodes_[n].below})
        for (const std::size_t o : *side) {
          const double pull = side == &nodes_[n].above ? Pull(o, n) : Pull(n, o);
          sum += pull * nodes_[o].spot.x;
          weight += pull;
        }
      wanted.push_back(weight == 0 ? nodes_[n].spot.x : sum / weight);
    }
    Put(row, wanted);
  }

  Layout Finish() const {
    double left = 0, right = 0;
    for (const Node& node : nodes_) {
      left = std::min(left, node.spot.x - node.width / 2);
      right = std::max(right, node.spot.x + node.width / 2);
    }
    const auto moved = [&](std::size_t n) { return Spot{nodes_[n].spot.row, nodes_[n].spot.x - left}; };
    Layout layout;
    layout.rows = rows_.size();
    layout.width = right - left;
    for (std::size_t b = 0; b < boxes_; ++b) layout.spots.push_back(moved(b));
    for (const Line& line : lines_) {
      Path path{line.from, line.to, {}};
      for (const std::size_t bend : line.bends) path.bends.push_back(moved(bend));
      layout.paths.push_back(std::move(path));
    }
    return layout;
  }

  struct Line {
    std::size_t from, to;
    std::vector<std::size_t> bends;
  };

  const std::size_t boxes_;  // nodes from here on are bends
  const double gap_;
  std::vector<Node> nodes_;
  std::vector<std::vector<std::size_t>> rows_;  // of nodes, from left to right
  std::vector<Line> lines_;
};

}  // namespace

Layout LayOut(const std::vector<double>& widths, const std::vector<std::vector<std::size_t>>& from, double gap) {
  return Drawing(widths, from, gap).Run();
}

}  // namespace freshet::model::network::picture
