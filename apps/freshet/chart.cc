#include "chart.h"

#include <algorithm>
#include <cmath>

#include "base/str.h"

namespace freshet::cli {
namespace {

std::string Short(double number) {
  if (std::abs(number) >= 1e6) return Str(Fixed(number / 1e6, 1), "M");
  if (std::abs(number) >= 1e4) return Str(Fixed(number / 1e3, 0), "k");
  return Fixed(number, std::abs(number) < 10 ? 3 : (std::abs(number) < 1000 ? 1 : 0));
}

}  // namespace

Bounds BoundsOf(const std::vector<Line>& lines) {
  Bounds b;
  for (const Line& line : lines)
    for (const Point& point : line.points) {
      b.x0 = std::min(b.x0, point.x);
      b.x1 = std::max(b.x1, point.x);
      b.y0 = std::min(b.y0, point.y);
      b.y1 = std::max(b.y1, point.y);
    }
  if (!(b.x1 > b.x0)) b.x1 = b.x0 + 1;
  if (!(b.y1 > b.y0)) b.y1 = b.y0 + 1;
  return b;
}

std::string TerminalChart(const std::vector<Line>& lines, const std::string& x_name, int width, int height) {
  const Bounds b = BoundsOf(lines);
  std::vector<std::string> canvas(static_cast<std::size_t>(height), std::string(static_cast<std::size_t>(width), ' '));
  const std::string marks = "*o+x#@";
  bool any = false;
  for (std::size_t l = 0; l < lines.size(); ++l)
    for (const Point& point : lines[l].points) {
      const auto column = static_cast<std::size_t>(std::lround((point.x - b.x0) / (b.x1 - b.x0) * (width - 1)));
      const auto row = static_cast<std::size_t>(std::lround((b.y1 - point.y) / (b.y1 - b.y0) * (height - 1)));
      canvas[row][column] = marks[l % marks.size()];
      any = true;
    }
  if (!any) return "";
  std::string out;
  for (std::size_t row = 0; row < canvas.size(); ++row) {
    std::string label = row == 0 ? Short(b.y1) : row + 1 == canvas.size() ? Short(b.y0) : "";
    label.insert(0, label.size() < 9 ? 9 - label.size() : 0, ' ');
    out += Str(label, " |", canvas[row], "\n");
  }
  std::string axis = Short(b.x0);
  const std::string right = Str(Short(b.x1), " ", x_name);
  axis.resize(std::max(axis.size() + 1, static_cast<std::size_t>(std::max(0, width - static_cast<int>(right.size())))),
              ' ');
  out += Str("          +", std::string(static_cast<std::size_t>(width), '-'), "\n           ", axis, right, "\n");
  if (lines.size() > 1)
    for (std::size_t l = 0; l < lines.size(); ++l)
      out += Str("           ", marks.substr(l % marks.size(), 1), " ", lines[l].name, "\n");
  return out;
}

void Curve::Add(double rows, double total_loss, double total_weight) {
  if (rows <= last_rows_ || total_weight <= last_weight_) return;
  if (rows - last_rows_ < least_rows_) return;
  stretches_.push_back({rows, total_loss - last_loss_, total_weight - last_weight_});
  last_rows_ = rows;
  last_loss_ = total_loss;
  last_weight_ = total_weight;
  if (stretches_.size() < 256) return;
  std::vector<Stretch> halves;
  for (std::size_t i = 0; i + 1 < stretches_.size(); i += 2)
    halves.push_back({stretches_[i + 1].rows, stretches_[i].loss + stretches_[i + 1].loss,
                      stretches_[i].weight + stretches_[i + 1].weight});
  stretches_ = std::move(halves);
  least_rows_ = (stretches_.back().rows - stretches_.front().rows) / static_cast<double>(stretches_.size());
}

std::vector<Point> Curve::points() const {
  std::vector<Point> out;
  for (const Stretch& s : stretches_) out.push_back({s.rows, s.loss / s.weight});
  // The last stretch may be a short one, whose mean says little.
  const std::size_t n = stretches_.size();
  if (n > 2 && stretches_[n - 1].weight < stretches_[n - 2].weight / 2) out.pop_back();
  return out;
}

}  // namespace freshet::cli
