#include "strategy/ring/layer_balance.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/str.h"

namespace freshet::strategy::ring {
namespace {

TEST(LayerBalance, NeighboursMeetInPairsAndEachWithBothOfThem) {
  for (int size = 1; size <= 7; ++size) {
    std::vector<BalanceRounds> members;
    for (int rank = 0; rank < size; ++rank) members.emplace_back(rank, size);
    std::vector<int> met(static_cast<std::size_t>(size), 0);  // with the next
    for (int step = 0; step < 200; ++step) {
      for (BalanceRounds& member : members) member.BeginStep();
      for (int rank = 0; rank < size; ++rank) {
        const BalanceRounds& member = members[static_cast<std::size_t>(rank)];
        EXPECT_EQ(member.ends(), members[0].ends());
        EXPECT_FALSE(member.measures() && member.ends());
        const int with = rank + member.partner();
        ASSERT_TRUE(with >= 0 && with < size);
        if (with != rank) {
          EXPECT_EQ(members[static_cast<std::size_t>(with)].partner(), -member.partner());
        }
        if (with > rank) ++met[static_cast<std::size_t>(rank)];
      }
    }
    for (int rank = 0; rank + 1 < size; ++rank) EXPECT_GE(met[static_cast<std::size_t>(rank)], 10) << rank;
  }
}

TEST(LayerBalance, TheBestOfferMakesTheLargerTimeSmallest) {
  const Offer offers[] = {{1, 10}, {2, 10}, {3, 10}, {6, 10}};
  EXPECT_EQ(BestOffer(offers, 10, 4), 2u);  // 7 and 7
  EXPECT_EQ(BestOffer(offers, 10, 8), 0u);  // 9 and 9
  EXPECT_EQ(BestOffer(offers, 10, 9), 4u);  // nothing is gained
  EXPECT_EQ(BestOffer(offers, 4, 10), 4u);
  EXPECT_EQ(BestOffer({}, 10, 1), 0u);
}

TEST(LayerBalance, OfOffersAboutAsGoodThatIsTakenByWhichLeastTravels) {
  const Offer offers[] = {{3, 10}, {3.1, 5}, {2, 1}};
  EXPECT_EQ(BestOffer(offers, 10, 4), 1u);
}

// Two members of any speeds, between which layers of any cost lie, come to rest, and no worse than they began.
TEST(LayerBalance, ComesToRestHoweverFastMembersAre) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "layers");
    std::vector<double> costs(2 + random.Below(30));
    for (double& cost : costs) cost = 0.05 + random.Uniform();
    const double slower = 0.2 + 5 * random.Uniform();  // the second member
    std::size_t edge = 1 + random.Below(costs.size() - 1);
    const auto times = [&] {
      double first = 0, second = 0;
      for (std::size_t k = 0; k < costs.size(); ++k) (k < edge ? first : second) += costs[k] * (k < edge ? 1 : slower);
      return std::pair(first, second);
    };
    int moves = 0;
    for (bool moved = true; moved && moves < 100; moves += moved ? 1 : 0) {
      const auto [first, second] = times();
      std::vector<Offer> offers;
      double seconds = 0;
      if (first > second)
        for (std::size_t k = edge; --k > 0;) offers.push_back({seconds += costs[k], 1});
      else
        for (std::size_t k = edge; k + 1 < costs.size(); ++k) offers.push_back({seconds += slower * costs[k], 1});
      const std::size_t best = BestOffer(offers, std::max(first, second), std::min(first, second));
      moved = best < offers.size();
      if (moved) edge = first > second ? edge - best - 1 : edge + best + 1;
    }
    EXPECT_LT(moves, 10);
  }
}

}  // namespace
}  // namespace freshet::strategy::ring
