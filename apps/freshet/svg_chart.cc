#include <algorithm>
#include <array>
#include <cmath>

#include "base/str.h"
#include "chart.h"

namespace freshet::cli {
namespace {

constexpr double kWidth = 720, kPlotHeight = 300, kLeft = 70, kRight = 20, kBottom = 50;
constexpr std::size_t kTitleLetters = 92;  // that fit into a line of the title, at 13 px
constexpr std::array<const char*, 6> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a87400", "#56b4e9"};

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

std::string Text(double x, double y, const std::string& text, const std::string& more = "") {
  return Str("<text x=\"", Fixed(x, 1), "\" y=\"", Fixed(y, 1), "\"", more, ">", Escaped(text), "</text>\n");
}

std::string Stroke(double x1, double y1, double x2, double y2, const std::string& more) {
  return Str("<line x1=\"", Fixed(x1, 1), "\" y1=\"", Fixed(y1, 1), "\" x2=\"", Fixed(x2, 1), "\" y2=\"", Fixed(y2, 1),
             "\" ", more, "/>\n");
}

// Pieces between commas, as many to a line as fit.
std::vector<std::string> TitleLines(const std::string& title) {
  std::vector<std::string> lines = {""};
  for (std::size_t begin = 0; begin < title.size();) {
    const auto comma = title.find(", ", begin);
    const std::size_t end = comma == std::string::npos ? title.size() : comma + 2;
    if (!lines.back().empty() && lines.back().size() + (end - begin) > kTitleLetters) lines.emplace_back();
    lines.back() += title.substr(begin, end - begin);
    begin = end;
  }
  return lines;
}

// One, two or five times a power of ten, of which `most` or fewer fit into the range.
double RoundStep(double range, int most) {
  const double raw = range / most, ten = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * ten >= raw) return factor * ten;
  return 10 * ten;
}

// With as many digits as tell ticks apart.
std::string TickText(double value, double step, double most) {
  const double unit = most >= 1e6 ? 1e6 : (most >= 1e4 ? 1e3 : 1);
  const int digits = std::max(0, -static_cast<int>(std::floor(std::log10(step / unit) + 1e-9)));
  if (std::abs(value) < step / 2) return "0";
  return Str(Fixed(value / unit, digits), unit == 1e6 ? "M" : (unit == 1e3 ? "k" : ""));
}

struct Frame {
  Bounds b;
  double top;
  double x(double value) const { return kLeft + (value - b.x0) / (b.x1 - b.x0) * (kWidth - kLeft - kRight); }
  double y(double value) const { return top + (b.y1 - value) / (b.y1 - b.y0) * kPlotHeight; }
  double bottom() const { return top + kPlotHeight; }
};

std::string Axes(const Frame& frame, const std::string& x_name, const std::string& y_name) {
  const Bounds& b = frame.b;
  std::string out;
  const double dy = RoundStep(b.y1 - b.y0, 6), dx = RoundStep(b.x1 - b.x0, 7);
  for (double y = std::ceil(b.y0 / dy - 1e-9) * dy; y <= b.y1 + dy * 1e-9; y += dy) {
    out += Stroke(kLeft, frame.y(y), kWidth - kRight, frame.y(y), "stroke=\"#ddd\"");
    out += Text(kLeft - 8, frame.y(y) + 4, TickText(y, dy, std::max(std::abs(b.y0), std::abs(b.y1))),
                " text-anchor=\"end\"");
  }
  for (double x = std::ceil(b.x0 / dx - 1e-9) * dx; x <= b.x1 + dx * 1e-9; x += dx) {
    out += Stroke(frame.x(x), frame.bottom(), frame.x(x), frame.bottom() + 4, "stroke=\"#888\"");
    out += Text(frame.x(x), frame.bottom() + 18, TickText(x, dx, b.x1), " text-anchor=\"middle\"");
  }
  out += Stroke(kLeft, frame.bottom(), kWidth - kRight, frame.bottom(), "stroke=\"#888\"");
  out += Text((kLeft + kWidth - kRight) / 2, frame.bottom() + 38, x_name, " text-anchor=\"middle\"");
  out += Str("<text transform=\"translate(16 ", Fixed(frame.top + kPlotHeight / 2, 1),
             ") rotate(-90)\" text-anchor=\"middle\">", Escaped(y_name), "</text>\n");
  return out;
}

// A flag at the top where a drift was found, a tick at the bottom where it was retrained.
std::string Marks(const Frame& frame, const Line& line, const std::string& colour) {
  std::string out;
  for (const double drift : line.drifts) {
    const double x = frame.x(drift);
    out += Stroke(x, frame.top, x, frame.bottom(),
                  Str("stroke=\"", colour, "\" stroke-dasharray=\"4 4\" opacity=\"0.6\""));
    out += Str("<path d=\"M", Fixed(x - 5, 1), " ", Fixed(frame.top - 4, 1), "h10l-5 8z\" fill=\"", colour, "\"/>\n");
  }
  for (const double retraining : line.retrainings)
    out += Stroke(frame.x(retraining), frame.bottom() - 12, frame.x(retraining), frame.bottom(),
                  Str("stroke=\"", colour, "\" stroke-width=\"3\""));
  return out;
}

// Names in the colours of their lines, and what marks mean.
std::string Key(const std::vector<Line>& lines, double y) {
  std::string out;
  double x = kLeft;
  const auto say = [&](const std::string& text, const std::string& more) {
    out += Text(x, y, text, more);
    x += 7.5 * static_cast<double>(text.size()) + 18;
  };
  if (lines.size() > 1)
    for (std::size_t l = 0; l < lines.size(); ++l)
      say(lines[l].name, Str(" font-weight=\"bold\" fill=\"", kColours[l % kColours.size()], "\""));
  const auto any = [&](std::vector<double> Line::*marks) {
    return std::any_of(lines.begin(), lines.end(), [&](const Line& line) { return !(line.*marks).empty(); });
  };
  if (any(&Line::drifts)) {
    out += Str("<path d=\"M", Fixed(x, 1), " ", Fixed(y - 8, 1), "h10l-5 8z\" fill=\"#555\"/>\n");
    x += 14;
    say("drift found", " fill=\"#555\"");
  }
  if (any(&Line::retrainings)) {
    out += Stroke(x + 3, y - 10, x + 3, y + 1, "stroke=\"#555\" stroke-width=\"3\"");
    x += 10;
    say("retrained", " fill=\"#555\"");
  }
  return out;
}

}  // namespace

std::string SvgChart(const std::string& title, const std::vector<Line>& lines, const std::string& x_name,
                     const std::string& y_name) {
  const std::vector<std::string> words = TitleLines(title);
  const double key = 24 + 18 * static_cast<double>(words.size());
  const Frame frame{BoundsOf(lines), key + 16};
  std::string out = Str("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth, "\" height=\"",
                        Fixed(frame.bottom() + kBottom, 0), "\" font-family=\"sans-serif\" font-size=\"12\">\n",
                        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  for (std::size_t i = 0; i < words.size(); ++i)
    out += Text(20, 24 + 18 * static_cast<double>(i), words[i], " class=\"title\" font-size=\"13\"");
  out += Key(lines, key);
  out += Axes(frame, x_name, y_name);
  for (std::size_t l = 0; l < lines.size(); ++l) {
    const char* const colour = kColours[l % kColours.size()];
    out += Marks(frame, lines[l], colour);
    out += Str("<polyline fill=\"none\" stroke=\"", colour, "\" stroke-width=\"2\" points=\"");
    for (const Point& point : lines[l].points)
      out += Str(Fixed(frame.x(point.x), 1), ",", Fixed(frame.y(point.y), 1), " ");
    out += "\"/>\n";
  }
  return out + "</svg>\n";
}

}  // namespace freshet::cli
