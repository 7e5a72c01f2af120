#include "fabric/collectives/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "fabric/fabric_suite_testing.h"

namespace freshet::fabric {
namespace {

std::vector<Algorithm> AlgorithmsOf(const Fabric& fabric) {
  std::vector<Algorithm> algorithms = {Algorithm::kAuto,        Algorithm::kCentral, Algorithm::kRing,
                                       Algorithm::kTree,        Algorithm::kHalving, Algorithm::kDirect,
                                       Algorithm::kHierarchical};
  if (fabric.has_native()) algorithms.push_back(Algorithm::kNative);
  return algorithms;
}

// What a member brings to a sum: whole numbers, of which any sum is exact, or any numbers.
std::vector<float> Values(std::uint64_t seed, int rank, std::size_t length, bool whole) {
  base::Random random(seed, static_cast<std::uint64_t>(rank));
  std::vector<float> values(length);
  for (float& value : values)
    value = static_cast<float>(whole ? static_cast<double>(random.Below(2001)) - 1000.0 : random.Normal());
  return values;
}

std::vector<double> SumOf(std::uint64_t seed, int size, std::size_t length, bool whole) {
  std::vector<double> sum(length);
  for (int rank = 0; rank < size; ++rank) {
    const std::vector<float> values = Values(seed, rank, length, whole);
    for (std::size_t i = 0; i < length; ++i) sum[i] += values[i];
  }
  return sum;
}

// Hosts of which each has one member or more, in no order.
std::vector<std::string> Hosts(base::Random& random, int size) {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < size; ++rank) hosts.push_back(Str("host", random.Below(3)));
  return hosts;
}

void ExpectSameEverywhere(Collectives& collectives, std::span<const float> values) {
  const auto all = collectives.Gather(AsBytes(values));
  ASSERT_TRUE(all.ok()) << all.error().text;
  for (const std::vector<std::byte>& one : all.value()) EXPECT_TRUE(one == all.value().front());
}

}  // namespace

TEST_P(FabricSuite, EveryAlgorithmSumsExactlyAndLeavesTheSameBytesEverywhere) {
  for (int seed = 0; seed < GetParam().seeds; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(static_cast<std::uint64_t>(seed), "suite");
    const int size = std::min(GetParam().most_members, 1 + static_cast<int>(random.Below(9)));
    const std::size_t length = random.Below(seed % 4 == 0 ? 5000 : 24);  // often shorter than the group
    const std::size_t piece_bytes = 4 + random.Below(600);
    const GroupSpec spec{.size = size, .hosts = Hosts(random, size)};
    const auto number = static_cast<std::uint64_t>(seed);
    Run(spec, [&](std::unique_ptr<Fabric>& member) {
      SCOPED_TRACE(Str("seed ", seed, " size ", size, " length ", length, " rank ", member->rank()));
      Collectives collectives(*member, {.piece_bytes = piece_bytes});
      for (const Algorithm algorithm : AlgorithmsOf(*member)) {
        SCOPED_TRACE(NameOf(algorithm));
        std::vector<float> whole = Values(number, member->rank(), length, true);
        const Result<void> result = collectives.AllReduce(whole, algorithm);
        ASSERT_TRUE(result.ok()) << result.error().text;
        const std::vector<double> sum = SumOf(number, size, length, true);
        EXPECT_TRUE(std::equal(sum.begin(), sum.end(), whole.begin(), whole.end()));
      }
    });
  }
}

TEST_P(FabricSuite, SumsOfAnyNumbersAreTheSameBytesEverywhereAndEachTimeAndNearEachOther) {
  for (int seed = 0; seed < GetParam().seeds / 4; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(static_cast<std::uint64_t>(seed), "any numbers");
    const int size = std::min(GetParam().most_members, 2 + static_cast<int>(random.Below(8)));
    const std::size_t length = random.Below(300);
    const auto number = static_cast<std::uint64_t>(seed);
    Run(GroupSpec{.size = size, .hosts = Hosts(random, size)}, [&](std::unique_ptr<Fabric>& member) {
      Collectives collectives(*member, {.piece_bytes = 64});
      const std::vector<double> sum = SumOf(number, size, length, false);
      for (const Algorithm algorithm : AlgorithmsOf(*member)) {
        SCOPED_TRACE(Str(NameOf(algorithm), " size ", size, " length ", length));
        std::vector<float> once = Values(number, member->rank(), length, false), again = once;
        ASSERT_TRUE(collectives.AllReduce(once, algorithm).ok());
        ASSERT_TRUE(collectives.Wait(collectives.StartAllReduce(again, algorithm)).ok());
        EXPECT_EQ(std::memcmp(once.data(), again.data(), length * sizeof(float)), 0);
        ExpectSameEverywhere(collectives, once);
        for (std::size_t i = 0; i < length; ++i) ASSERT_NEAR(once[i], sum[i], 1e-6 * (4.0 * size));
      }
    });
  }
}

TEST_P(FabricSuite, ShortSumsByHalvingAreThoseOfTheSameNumbersWithinLongOnes) {
  for (const int size : {2, 3, 4, 5, 8}) {
    if (size > GetParam().most_members) continue;
    constexpr std::size_t kLong = 270'000,
                          kShort = 5'000;  // swapped whole: at most 262,144 floats of two, 8,192 of more
    Run(size, [&](Fabric& fabric) {
      SCOPED_TRACE(Str("size ", size, " rank ", fabric.rank()));
      Collectives collectives(fabric);
      std::vector<float> values = Values(7, fabric.rank(), kLong, false);
      std::vector<float> first(values.begin(), values.begin() + kShort);
      ASSERT_TRUE(collectives.AllReduce(values, Algorithm::kHalving).ok());
      ASSERT_TRUE(collectives.AllReduce(first, Algorithm::kHalving).ok());
      EXPECT_EQ(std::memcmp(values.data(), first.data(), kShort * sizeof(float)), 0);
      const std::vector<double> sum = SumOf(7, size, kLong, false);
      for (std::size_t i = 0; i < kLong; ++i) ASSERT_NEAR(values[i], sum[i], 1e-6 * (4.0 * size));
    });
  }
}

TEST_P(FabricSuite, LongSumsAreExactByEveryAlgorithm) {
  for (const int size : {2, 3}) {
    constexpr std::size_t kLength = 700'001;
    Run(size, [&](Fabric& fabric) {
      Collectives collectives(fabric);
      for (const Algorithm algorithm : AlgorithmsOf(fabric)) {
        std::vector<float> values(kLength);
        for (std::size_t i = 0; i < kLength; ++i) values[i] = static_cast<float>(i % 1000) + 1.0F;
        ASSERT_TRUE(collectives.AllReduce(values, algorithm).ok());
        bool right = true;
        for (std::size_t i = 0; i < kLength; ++i)
          right = right && values[i] == static_cast<float>(size) * (static_cast<float>(i % 1000) + 1.0F);
        EXPECT_TRUE(right) << NameOf(algorithm);
      }
    });
  }
}

TEST_P(FabricSuite, ReduceScatterLeavesEachItsChunkAndAllGatherBringsThemTogether) {
  for (int seed = 0; seed < GetParam().seeds / 4; ++seed) {
    base::Random random(static_cast<std::uint64_t>(seed), "scatter");
    const int size = std::min(GetParam().most_members, 1 + static_cast<int>(random.Below(9)));
    const std::size_t length = random.Below(40);
    const auto number = static_cast<std::uint64_t>(seed);
    Run(size, [&](Fabric& fabric) {
      SCOPED_TRACE(Str("seed ", seed, " size ", size, " length ", length));
      Collectives collectives(fabric, {.piece_bytes = 8});
      std::vector<float> values = Values(number, fabric.rank(), length, true);
      ASSERT_TRUE(collectives.ReduceScatter(values).ok());
      const std::vector<double> sum = SumOf(number, size, length, true);
      const std::span<float> mine = Chunk(values, fabric.rank(), size);
      EXPECT_TRUE(std::equal(mine.begin(), mine.end(), sum.begin() + (mine.data() - values.data())));
      for (float& value : values) {
        if (&value < mine.data() || &value >= mine.data() + mine.size()) value = -1e6F;
      }
      ASSERT_TRUE(collectives.AllGather(values).ok());
      EXPECT_TRUE(std::equal(sum.begin(), sum.end(), values.begin()));
    });
  }
}

TEST_P(FabricSuite, GatherBringsBlocksOfAnySizeInTheOrderOfRanks) {
  Run(4, [](Fabric& fabric) {
    Collectives collectives(fabric);
    const std::string mine(static_cast<std::size_t>(fabric.rank()) * 5000, static_cast<char>('a' + fabric.rank()));
    const auto all = collectives.Gather(BytesOf(mine));
    ASSERT_TRUE(all.ok()) << all.error().text;
    ASSERT_EQ(all.value().size(), static_cast<std::size_t>(fabric.size()));
    for (std::size_t rank = 0; rank < all.value().size(); ++rank) {
      EXPECT_EQ(all.value()[rank], std::vector<std::byte>(rank * 5000, static_cast<std::byte>('a' + rank)));
    }
  });
}

TEST_P(FabricSuite, BroadcastBringsTheRootsBytesToAll) {
  for (const int size : {1, 2, 5}) {
    Run(std::min(size, GetParam().most_members), [](Fabric& fabric) {
      Collectives collectives(fabric, {.piece_bytes = 100});
      for (int root = 0; root < fabric.size(); ++root) {
        for (const std::size_t length : {0, 1, 99, 100, 1234}) {
          std::string text(length, static_cast<char>('a' + fabric.rank()));
          ASSERT_TRUE(collectives.Broadcast(BytesOf(text), root).ok());
          EXPECT_EQ(text, std::string(length, static_cast<char>('a' + root)));
        }
      }
      std::string text = "x";
      EXPECT_EQ(collectives.Broadcast(BytesOf(text), fabric.size()).error().code, Code::kInvalid);
    });
  }
}

TEST_P(FabricSuite, NobodyPassesABarrierBeforeAllHaveCome) {
  // What is sent before the barrier has come when the receiver is behind it: so the receiver, who looked not before,
  // finds it at once.
  Run(3, [](Fabric& fabric) {
    Collectives collectives(fabric);
    for (int round = 0; round < 20; ++round) {
      std::string text = "0";
      const int peer = (fabric.rank() + 1) % 3, from = (fabric.rank() + 2) % 3;
      const Transfer got = fabric.StartReceive(from, 1, BytesOf(text)).value();
      ASSERT_TRUE(fabric.Send(peer, 1, BytesOf(Str(round % 10))).ok());
      ASSERT_TRUE(collectives.Barrier().ok());
      ASSERT_TRUE(fabric.Wait(got).ok());
      EXPECT_EQ(text, Str(round % 10));
    }
  });
}

TEST_P(FabricSuite, WhoLeavesRightAfterABarrierFailsNobodyWhoIsStillInIt) {
  for (int size = 2; size <= 5; ++size)
    for (int round = 0; round < 5; ++round)
      Run(GroupSpec{.size = std::min(size, GetParam().most_members)}, [&](std::unique_ptr<Fabric>& member) {
        const Result<void> met = Collectives(*member).Barrier();
        EXPECT_TRUE(met.ok()) << met.error().text;
        member.reset();
      });
}

TEST_P(FabricSuite, WhatWasStartedRunsInOrderAlsoBesideWhatIsCalled) {
  Run(3, [](Fabric& fabric) {
    Collectives collectives(fabric);
    std::vector<std::vector<float>> values;
    std::vector<Collectives::Pending> pending;
    for (std::size_t i = 0; i < 10; ++i) values.push_back(std::vector<float>(10 + 3000 * i, static_cast<float>(i)));
    for (std::vector<float>& one : values) pending.push_back(collectives.StartAllReduce(one));
    std::vector<float> beside(5, 1.0F);
    ASSERT_TRUE(collectives.AllReduce(beside).ok());
    ASSERT_TRUE(collectives.Barrier().ok());
    EXPECT_EQ(beside, std::vector<float>(5, 3.0F));
    for (std::size_t i = values.size(); i-- > 0;) {  // in any order
      ASSERT_TRUE(collectives.Wait(pending[i]).ok());
      EXPECT_EQ(values[i], std::vector<float>(values[i].size(), 3.0F * static_cast<float>(i)));
    }
  });
}

TEST_P(FabricSuite, AnyOperationMayBeStartedWithTagsOfItsOwn) {
  Run(2, [](Fabric& fabric) {
    Collectives collectives(fabric);
    std::string text = fabric.rank() == 0 ? "from zero" : "         ";
    const auto pending = collectives.Start([&](Tag tag) -> Result<void> {
      if (fabric.rank() == 0) return fabric.Send(1, tag + 65535, BytesOf(std::as_const(text)));
      TRY(fabric.Receive(0, tag + 65535, BytesOf(text)));
      return {};
    });
    EXPECT_TRUE(collectives.Wait(pending).ok());
    EXPECT_EQ(text, "from zero");
  });
}

TEST_P(FabricSuite, AFailureComesOutWhereItIsWaitedFor) {
  Run(3, [](Fabric& fabric) {
    Collectives collectives(fabric);
    if (fabric.rank() == 2) return fabric.Abort({Code::kStopped, "asked to stop"});
    std::vector<float> values(100, 1.0F), more(100, 1.0F);
    const auto first = collectives.StartAllReduce(values), second = collectives.StartAllReduce(more, Algorithm::kRing);
    for (const auto pending : {first, second}) {
      const Result<void> result = collectives.Wait(pending);
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.error().code, Code::kPeerLost);
      EXPECT_NE(result.error().text.find("asked to stop"), std::string::npos) << result.error().text;
    }
  });
}

TEST_P(FabricSuite, AnOperationThatAMemberStaysAwayFromEndsTheGroup) {
  for (const Algorithm algorithm : {Algorithm::kCentral, Algorithm::kRing, Algorithm::kTree, Algorithm::kHalving,
                                    Algorithm::kDirect, Algorithm::kHierarchical}) {
    const GroupSpec spec{.size = 3, .timeout = std::chrono::milliseconds(30)};
    Run(spec, [&](std::unique_ptr<Fabric>& member) {
      SCOPED_TRACE(NameOf(algorithm));
      Collectives collectives(*member);
      if (member->rank() == 2) {
        std::string text = "never comes";
        const auto receive = member->StartReceive(0, 1, BytesOf(text));
        if (!receive.ok()) {  // the others have given up already
          EXPECT_EQ(receive.error().code, Code::kPeerLost) << receive.error().text;
          return;
        }
        const auto got = member->Wait(receive.value(), std::chrono::seconds(60));
        ASSERT_FALSE(got.ok());
        EXPECT_EQ(got.error().code, Code::kPeerLost) << got.error().text;
        return;
      }
      std::vector<float> values(50'000, 1.0F);
      const Result<void> result = collectives.AllReduce(values, algorithm);
      ASSERT_FALSE(result.ok());
      const bool known = result.error().code == Code::kTimeout || result.error().code == Code::kPeerLost;
      EXPECT_TRUE(known) << result.error().text;
      EXPECT_EQ(collectives.Barrier().error().code, Code::kPeerLost);
    });
  }
}

TEST_P(FabricSuite, DifferentLengthsAreAnErrorOfEveryMember) {
  for (const Algorithm algorithm : {Algorithm::kCentral, Algorithm::kRing, Algorithm::kTree, Algorithm::kHalving}) {
    Run(2, [&](Fabric& fabric) {
      Collectives collectives(fabric);
      std::vector<float> values(fabric.rank() == 0 ? 100'000 : 100'002, 1.0F);
      EXPECT_FALSE(collectives.AllReduce(values, algorithm).ok()) << NameOf(algorithm);
    });
  }
}

TEST_P(FabricSuite, CalibratingGivesEveryoneTheSameTable) {
  Run(2, [](Fabric& fabric) {
    Collectives collectives(fabric);
    const base::SystemClock clock;
    const Result<void> result = collectives.Calibrate(clock);
    ASSERT_TRUE(result.ok()) << result.error().text;
    const std::string text = collectives.table().ToText();
    const auto all = collectives.Gather(BytesOf(text));
    ASSERT_TRUE(all.ok());
    EXPECT_EQ(all.value()[0], all.value()[1]);
    std::vector<float> values(10, 1.0F);
    EXPECT_TRUE(collectives.AllReduce(values).ok());
    EXPECT_EQ(values, std::vector<float>(10, 2.0F));
  });
}

TEST(AlgorithmTable, ReadsWhatItWrites) {
  const std::string text = "0 tree, 65536 halving, 1000000 ring";
  const AlgorithmTable table = AlgorithmTable::FromText(text).value();
  EXPECT_EQ(table.ToText(), text);
  EXPECT_EQ(table.For(0), Algorithm::kTree);
  EXPECT_EQ(table.For(65535), Algorithm::kTree);
  EXPECT_EQ(table.For(65536), Algorithm::kHalving);
  EXPECT_EQ(table.For(1 << 30), Algorithm::kRing);
}

TEST(AlgorithmTable, RefusesWhatIsNoTableAndSaysWhy) {
  const struct {
    const char *text, *part;
  } cases[] = {{"", "needs a size"},        {"ring", "needs a size"},       {"0 rnig", "did you mean ring"},
               {"5 ring", "begin at 0"},    {"0 ring, 0 tree", "and rise"}, {"0 auto", "what auto means"},
               {"-1 ring", "needs a size"}, {"0ring", "needs a size"},      {"0 ring,", "needs a size"}};
  for (const auto& one : cases) {
    const Result<AlgorithmTable> table = AlgorithmTable::FromText(one.text);
    ASSERT_FALSE(table.ok()) << one.text;
    EXPECT_NE(table.error().text.find(one.part), std::string::npos) << table.error().text;
  }
}

TEST(Algorithm, NamesAreReadBack) {
  for (const std::string& name : AlgorithmNames()) EXPECT_EQ(NameOf(AlgorithmOf(name).value()), name);
  EXPECT_EQ(AlgorithmOf("star").error().code, Code::kInvalid);
}

TEST(Chunk, ChunksCoverTheValuesAndDifferByAtMostOne) {
  for (std::size_t length = 0; length < 50; ++length) {
    for (int count = 1; count < 12; ++count) {
      EXPECT_EQ(ChunkBegin(length, 0, count), 0U);
      EXPECT_EQ(ChunkBegin(length, count, count), length);
      for (int i = 0; i < count; ++i) {
        const std::size_t each = ChunkBegin(length, i + 1, count) - ChunkBegin(length, i, count);
        EXPECT_TRUE(each == length / static_cast<std::size_t>(count) ||
                    each == length / static_cast<std::size_t>(count) + 1);
      }
    }
  }
}

}  // namespace freshet::fabric
