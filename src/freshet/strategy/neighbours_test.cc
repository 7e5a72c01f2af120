#include "strategy/neighbours.h"

#include <gtest/gtest.h>

#include "base/option.h"

namespace freshet::strategy {
namespace {

using Lists = std::vector<std::vector<int>>;

TEST(Neighbours, AreThoseOfTheGraph) {
  EXPECT_EQ(Neighbours("ring", 4).value(), (Lists{{1, 3}, {0, 2}, {1, 3}, {0, 2}}));
  EXPECT_EQ(Neighbours("random", 3).value(), (Lists{{1, 2}, {0, 2}, {0, 1}}));
  EXPECT_EQ(Neighbours("exponential", 8).value()[0], (std::vector<int>{1, 2, 4, 6, 7}));
  EXPECT_EQ(Neighbours("0-1,1-2,2-1", 3).value(), (Lists{{1}, {0, 2}, {1}}));
  for (const char* const graph : {"ring", "random", "exponential"}) {
    EXPECT_EQ(Neighbours(graph, 1).value(), Lists(1)) << graph;
    EXPECT_EQ(Neighbours(graph, 2).value(), (Lists{{1}, {0}})) << graph;
  }
}

TEST(Neighbours, OfWhatIsNoGraphAreRefused) {
  const auto why = [](const std::string& graph, int members) {
    const auto found = Neighbours(graph, members);
    return found.ok() ? "" : ShowOptions(found.error().text, "");
  };
  EXPECT_EQ(why("star", 3),
            "neighbours: found 'star', expected ring, random, exponential, or pairs of ranks as 0-1,1-2,2-0");
  EXPECT_NE(why("0-", 3), "");
  EXPECT_NE(why("0-1,", 2), "");
  EXPECT_EQ(why("0-1,1-3", 3), "neighbours: there is no rank 3 among 3 workers; the last is 2");
  EXPECT_EQ(why("0-1,2-3", 4),
            "neighbours: there is no way from rank 0 to rank 2, so that they could never learn from each other");
}

TEST(Neighbours, OfAGraphWhoseVertexIsGoneTheOthersKeepTheirs) {
  const auto ring = NeighboursOf("ring", {0, 2, 5}).value();
  EXPECT_EQ(ring.lists, (Lists{{1, 2}, {0, 2}, {0, 1}}));
  const auto square = NeighboursOf("0-1,1-2,2-3,3-0", {0, 2, 3}).value();
  EXPECT_EQ(square.lists, (Lists{{2}, {2}, {0, 1}}));
  EXPECT_TRUE(square.added.empty());
}

TEST(Neighbours, PiecesOfAGraphThatFellApartAreConnected) {
  const auto star = NeighboursOf("3-0,3-1,3-2", {0, 1, 2}).value();
  EXPECT_EQ(star.lists, (Lists{{1, 2}, {0}, {0}}));
  EXPECT_EQ(star.added, (std::vector<std::pair<int, int>>{{0, 1}, {0, 2}}));
  const auto beyond = NeighboursOf("0-1", {0, 1, 2}).value();  // one has come that the graph does not know
  EXPECT_EQ(beyond.lists, (Lists{{1, 2}, {0}, {0}}));
  EXPECT_FALSE(NeighboursOf("0:1", {0, 1}).ok());
}

}  // namespace
}  // namespace freshet::strategy
