#include <algorithm>

#include "model/network/picture.h"
#include "model/network/picture_boxes.h"
#include "model/network/picture_layout.h"

namespace freshet::model::network {
namespace picture {
namespace {

// All in pixels.
constexpr double kLine = 15, kLetter = 6.4, kBoldLetter = 7.2, kInside = 10, kGapAcross = 18, kGapDown = 26,
                 kMargin = 16;
constexpr double kBoxHeight = 3 * kLine + 8;

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

// Letters, not bytes.
std::size_t Letters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

double WidthOf(const Box& box) {
  double width = 8 * kLetter;
  for (const std::string& line : box.lines) {
    const bool bold = &line == &box.lines[0];
    width = std::max(width, static_cast<double>(Letters(line)) * (bold ? kBoldLetter : kLetter));
  }
  return width + 2 * kInside;
}

double Top(std::size_t row) { return kMargin + static_cast<double>(row) * (kBoxHeight + kGapDown); }
std::string Px(double number) { return Fixed(number, 1); }

// Down from box to box, straight beside the boxes of the rows between.
std::string Curve(const Layout& layout, const Path& path) {
  double x = kMargin + layout.spots[path.from].x, y = Top(layout.spots[path.from].row) + kBoxHeight;
  std::string out = Str("M", Px(x), " ", Px(y));
  const auto to = [&](double next_x, double next_y) {
    const double middle = (y + next_y) / 2;
    out += Str("C", Px(x), " ", Px(middle), " ", Px(next_x), " ", Px(middle), " ", Px(next_x), " ", Px(next_y));
    x = next_x;
    y = next_y;
  };
  for (const Spot& bend : path.bends) {
    to(kMargin + bend.x, Top(bend.row));
    y = Top(bend.row) + kBoxHeight;
    out += Str("V", Px(y));
  }
  to(kMargin + layout.spots[path.to].x, Top(layout.spots[path.to].row) - 3);
  return out;
}

std::string Drawn(const Box& box, const Spot& spot, double width) {
  const double left = kMargin + spot.x - width / 2, top = Top(spot.row);
  std::string out = Str("<rect x=\"", Px(left), "\" y=\"", Px(top), "\" width=\"", Px(width), "\" height=\"",
                        Px(kBoxHeight), "\" rx=\"7\" fill=\"", ColourOf(box.op), "\" stroke=\"#555\" stroke-width=\"",
                        box.head ? "2.5" : "1", "\"/>\n");
  double y = top + (kBoxHeight - kLine * static_cast<double>(box.lines.size())) / 2 + 11;
  for (std::size_t i = 0; i < box.lines.size(); ++i, y += kLine)
    out += Str("<text x=\"", Px(kMargin + spot.x), "\" y=\"", Px(y), "\"",
               i == 0                      ? " font-weight=\"bold\""
               : i + 1 == box.lines.size() ? " fill=\"#555\""
                                           : "",
               ">", Escaped(box.lines[i]), "</text>\n");
  return out;
}

std::string Draw(const std::vector<Box>& boxes) {
  std::vector<double> widths;
  std::vector<std::vector<std::size_t>> from;
  for (const Box& box : boxes) {
    widths.push_back(WidthOf(box));
    from.push_back(box.from);
  }
  const Layout layout = LayOut(widths, from, kGapAcross);
  const std::string width = Px(layout.width + 2 * kMargin), height = Px(Top(layout.rows) - kGapDown + kMargin);
  std::string out = Str("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"", height,
                        "\" viewBox=\"0 0 ", width, " ", height,
                        "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" text-anchor=\"middle\">\n"
                        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
                        "<defs><marker id=\"tip\" viewBox=\"0 0 6 6\" refX=\"3\" refY=\"3\" markerWidth=\"6\" "
                        "markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0L6 3L0 6z\" fill=\"#777\"/></marker></defs>\n"
                        "<g fill=\"none\" stroke=\"#777\">\n");
  for (const Path& path : layout.paths)
    out += Str("<path d=\"", Curve(layout, path), "\" marker-end=\"url(#tip)\"/>\n");
  out += "</g>\n";
  for (std::size_t b = 0; b < boxes.size(); ++b) out += Drawn(boxes[b], layout.spots[b], widths[b]);
  return out + "</svg>\n";
}

}  // namespace
}  // namespace picture

std::string ToSvg(const Graph& graph, const std::vector<Facts>& facts) {
  return picture::Draw(picture::Boxes(graph, facts));
}

}  // namespace freshet::model::network
