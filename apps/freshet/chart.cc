#include "chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/str.h"

namespace freshet::cli {
namespace {

struct Bounds {
  double x0 = 1e300, x1 = -1e300, y0 = 1e300, y1 = -1e300;
};

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

std::string Short(double number) {
  if (std::abs(number) >= 1e6) return Str(Fixed(number / 1e6, 1), "M");
  if (std::abs(number) >= 1e4) return Str(Fixed(number / 1e3, 0), "k");
  return Fixed(number, std::abs(number) < 10 ? 3 : (std::abs(number) < 1000 ? 1 : 0));
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

}  // namespace

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

std::string SvgChart(const std::string& title, const std::vector<Line>& lines, const std::string& x_name,
                     const std::string& y_name) {
  constexpr double kWidth = 720, kHeight = 400, kLeft = 70, kRight = 20, kTop = 40, kBottom = 50;
  static constexpr std::array<const char*, 6> kColours = {"#0072b2", "#d55e00", "#009e73",
                                                          "#cc79a7", "#e69f00", "#56b4e9"};
  const Bounds b = BoundsOf(lines);
  const auto x = [&](double value) { return kLeft + (value - b.x0) / (b.x1 - b.x0) * (kWidth - kLeft - kRight); };
  const auto y = [&](double value) { return kTop + (b.y1 - value) / (b.y1 - b.y0) * (kHeight - kTop - kBottom); };
  std::string out = Str("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth, "\" height=\"", kHeight,
                        "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
                        "fill=\"white\"/>\n<text x=\"",
                        kLeft, "\" y=\"24\" font-size=\"16\">", Escaped(title), "</text>\n");
  for (int i = 0; i <= 4; ++i) {
    const double vy = b.y0 + (b.y1 - b.y0) * i / 4, vx = b.x0 + (b.x1 - b.x0) * i / 4;
    out += Str("<line x1=\"", kLeft, "\" x2=\"", kWidth - kRight, "\" y1=\"", Fixed(y(vy), 1), "\" y2=\"",
               Fixed(y(vy), 1), "\" stroke=\"#ddd\"/>\n");
    out +=
        Str("<text x=\"", kLeft - 8, "\" y=\"", Fixed(y(vy) + 4, 1), "\" text-anchor=\"end\">", Short(vy), "</text>\n");
    out += Str("<text x=\"", Fixed(x(vx), 1), "\" y=\"", kHeight - kBottom + 18, "\" text-anchor=\"middle\">",
               Short(vx), "</text>\n");
  }
  out += Str("<text x=\"", (kLeft + kWidth - kRight) / 2, "\" y=\"", kHeight - 12, "\" text-anchor=\"middle\">",
             Escaped(x_name), "</text>\n");
  out += Str("<text transform=\"translate(16 ", kHeight / 2, ") rotate(-90)\" text-anchor=\"middle\">", Escaped(y_name),
             "</text>\n");
  for (std::size_t l = 0; l < lines.size(); ++l) {
    const char* const colour = kColours[l % kColours.size()];
    out += Str("<polyline fill=\"none\" stroke=\"", colour, "\" stroke-width=\"2\" points=\"");
    for (const Point& point : lines[l].points) out += Str(Fixed(x(point.x), 1), ",", Fixed(y(point.y), 1), " ");
    out += "\"/>\n";
    if (lines.size() > 1)
      out += Str("<text x=\"", kWidth - kRight - 4, "\" y=\"", kTop + 14 + 16 * static_cast<double>(l),
                 "\" text-anchor=\"end\" fill=\"", colour, "\">", Escaped(lines[l].name), "</text>\n");
  }
  return out + "</svg>\n";
}

void Curve::Add(double rows, double total_loss, double total_weight) {
  if (rows <= last_rows_ || total_weight == 0) return;
  if (total_weight <= last_weight_) last_loss_ = last_weight_ = 0;  // a new epoch counts from zero
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
