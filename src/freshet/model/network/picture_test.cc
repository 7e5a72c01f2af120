#include "model/network/picture.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "model/network/picture_layout.h"
#include "model/network/zoo.h"

namespace freshet::model::network {
namespace {

std::size_t Occurrences(std::string_view text, std::string_view piece) {
  std::size_t count = 0;
  for (auto at = text.find(piece); at != std::string_view::npos; at = text.find(piece, at + 1)) ++count;
  return count;
}

TEST(Picture, OfLeNetHasABoxForEachLayerWithItsActivation) {
  const Graph graph = MakeZoo("lenet5", {1, 28, 28}, 10).value();
  const auto facts = Infer(graph).value();
  const std::string dot = ToDot(graph, facts), svg = ToSvg(graph, facts);
  EXPECT_EQ(Occurrences(dot, "label="), 7u);
  EXPECT_EQ(Occurrences(dot, " -> "), 6u);
  EXPECT_EQ(Occurrences(svg, "<rect x="), 7u);
  EXPECT_EQ(Occurrences(svg, "<path d=\"M"), 6u + 1);  // and the tip of the arrows
  for (const std::string& picture : {dot, svg})
    for (const char* piece : {"conv1", "convolution 20, 5 × 5", "20 × 24 × 24", "dense 500, relu", "10 · head"})
      EXPECT_NE(picture.find(piece), std::string::npos) << piece;
}

TEST(Picture, KeepsALayerApartThatOthersReadBeforeItsActivation) {
  Graph graph({4});
  const int dense = graph.Dense(0, 4, "before");
  graph.AddHead(graph.Sum({dense, graph.Relu(dense)}, "both"));
  EXPECT_EQ(Occurrences(ToDot(graph, Infer(graph).value()), "label="), 4u);
}

TEST(Picture, SurvivesAnyNames) {
  Graph graph({4});
  graph.AddHead(graph.Dense(0, 4, "a<b>&\"c\"\\\n"));
  const auto facts = Infer(graph).value();
  EXPECT_NE(ToSvg(graph, facts).find(">a&lt;b>&amp;\"c\"\\ <"), std::string::npos);
  EXPECT_NE(ToDot(graph, facts).find("\"a<b>&\\\"c\\\"\\\\ \\ndense 4"), std::string::npos);
}

TEST(Picture, OfEveryNetworkOfTheZooCanBeDrawn) {
  for (const ZooEntry& entry : Zoo()) {
    const Graph graph = MakeZoo(entry.name, entry.input, entry.classes).value();
    EXPECT_TRUE(ToSvg(graph, Infer(graph).value()).ends_with("</svg>\n")) << entry.name;
  }
}

// Boxes stand below what they read and beside their neighbours; lines pass beside boxes, row by row.
TEST(Layout, NeverPutsOneThingOnAnother) {
  constexpr double kGap = 5;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "layout");
    std::vector<double> widths;
    std::vector<std::vector<std::size_t>> from;
    for (std::size_t b = 0, boxes = 1 + random.Below(15); b < boxes; ++b) {
      widths.push_back(random.Uniform(10, 50));
      from.emplace_back();
      for (std::size_t edge = 0; b > 0 && edge < 1 + random.Below(3); ++edge) from[b].push_back(random.Below(b));
    }
    const picture::Layout layout = picture::LayOut(widths, from, kGap);
    struct Thing {
      picture::Spot spot;
      double width;
    };
    std::vector<Thing> things;
    for (std::size_t b = 0; b < widths.size(); ++b) {
      for (const std::size_t f : from[b]) EXPECT_GT(layout.spots[b].row, layout.spots[f].row);
      EXPECT_LT(layout.spots[b].row, layout.rows);
      things.push_back({layout.spots[b], widths[b]});
    }
    for (const picture::Path& path : layout.paths) {
      EXPECT_EQ(path.bends.size(), layout.spots[path.to].row - layout.spots[path.from].row - 1);
      for (const picture::Spot& bend : path.bends) things.push_back({bend, 0});
    }
    for (const Thing& a : things) {
      EXPECT_GE(a.spot.x - a.width / 2, -1e-6);
      EXPECT_LE(a.spot.x + a.width / 2, layout.width + 1e-6);
      for (const Thing& b : things)
        EXPECT_TRUE(&a == &b || a.spot.row != b.spot.row ||
                    std::abs(a.spot.x - b.spot.x) >= (a.width + b.width) / 2 + kGap - 1e-6);
    }
  }
}

TEST(Layout, DrawsAChainAsAStraightLine) {
  const picture::Layout layout = picture::LayOut({10, 30, 20}, {{}, {0}, {1}}, 5);
  for (const picture::Spot& spot : layout.spots) EXPECT_DOUBLE_EQ(spot.x, 15);
}

}  // namespace
}  // namespace freshet::model::network
