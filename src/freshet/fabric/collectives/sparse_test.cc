#include "fabric/collectives/sparse.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "fabric/threads/threads_testing.h"

namespace freshet::fabric {
namespace {

// Whole numbers, so that sums are exact.
SparseRows RandomRows(base::Random& random, std::size_t block_rows, std::size_t width, double share) {
  SparseRows touched;
  for (std::size_t row = 0; row < block_rows; ++row)
    if (random.Uniform() < share) {
      touched.rows.push_back(static_cast<std::uint32_t>(row));
      for (std::size_t i = 0; i < width; ++i) touched.values.push_back(static_cast<float>(random.Below(21)) - 10);
    }
  return touched;
}

// The plain, slow version.
SparseRows SumOf(const std::vector<SparseRows>& members, std::size_t width) {
  std::map<std::uint32_t, std::vector<float>> sums;
  for (const SparseRows& member : members)
    for (std::size_t k = 0; k < member.rows.size(); ++k) {
      std::vector<float>& sum = sums[member.rows[k]];
      sum.resize(width);
      for (std::size_t i = 0; i < width; ++i) sum[i] += member.values[k * width + i];
    }
  SparseRows total;
  for (const auto& [row, sum] : sums) {
    total.rows.push_back(row);
    total.values.insert(total.values.end(), sum.begin(), sum.end());
  }
  return total;
}

// Runs it and gives the bytes all have sent.
std::uint64_t RunOnce(std::vector<SparseRows>& members, std::size_t block_rows, std::size_t width) {
  std::vector<std::uint64_t> sent(members.size());
  RunMembers(static_cast<int>(members.size()), [&](Fabric& fabric) {
    const auto r = static_cast<std::size_t>(fabric.rank());
    SparseAllReduce reduce(block_rows, width);
    const auto result = reduce.Run(fabric, 3, members[r]);
    ASSERT_TRUE(result.ok()) << result.error().text;
    sent[r] = reduce.bytes_sent();
  });
  std::uint64_t total = 0;
  for (const std::uint64_t bytes : sent) total += bytes;
  return total;
}

TEST(SparseAllReduce, EveryMemberEndsWithTheUnionAndTheSums) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "rows");
    const int size = 1 + static_cast<int>(random.Below(9));
    const std::size_t block_rows = random.Below(2) == 0 ? random.Below(12) : random.Below(700);
    const std::size_t width = 1 + random.Below(4);
    const double share = random.Below(4) == 0 ? 1.0 : random.Uniform();
    std::vector<SparseRows> members;
    for (int r = 0; r < size; ++r) members.push_back(RandomRows(random, block_rows, width, r == 2 ? 0.0 : share));
    const SparseRows expected = SumOf(members, width);
    RunOnce(members, block_rows, width);
    for (const SparseRows& member : members) {
      ASSERT_EQ(member.rows, expected.rows);
      ASSERT_EQ(member.values, expected.values);
    }
  }
}

TEST(SparseAllReduce, NeverSendsMoreThanTheDenseBlockAndLittleOfFewRows) {
  base::Random random(1, "bytes");
  for (const int size : {2, 5, 9})
    for (const double share : {0.001, 0.01, 0.3, 0.9, 0.99, 1.0}) {
      constexpr std::size_t kRows = 20000, kWidth = 2;
      std::vector<SparseRows> members;
      for (int r = 0; r < size; ++r) members.push_back(RandomRows(random, kRows, kWidth, share));
      const std::uint64_t bytes = RunOnce(members, kRows, kWidth);
      const std::uint64_t dense = 2 * static_cast<std::uint64_t>(size - 1) * kRows * kWidth * sizeof(float);
      const auto messages = static_cast<std::uint64_t>(2 * size * (size - 1));
      EXPECT_LE(bytes, dense + 6 * messages) << size << " " << share;
      if (share <= 0.01) {
        EXPECT_LE(bytes * 8, dense) << size << " " << share;
      }
    }
}

TEST(SparseAllReduce, FrequentRowsThatLieTogetherAreSharedOutEvenly) {
  std::vector<std::uint64_t> sent(4);
  RunMembers(4, [&](Fabric& fabric) {
    SparseRows touched;
    for (std::uint32_t row = 0; row < 1000; ++row) touched.rows.push_back(row), touched.values.push_back(1);
    SparseAllReduce reduce(1 << 20, 1);
    ASSERT_TRUE(reduce.Run(fabric, 3, touched).ok());
    sent[static_cast<std::size_t>(fabric.rank())] = reduce.bytes_sent();
  });
  for (const std::uint64_t bytes : sent) EXPECT_EQ(bytes, sent[0]);
}

TEST(SparseAllReduce, RefusesWhatIsNoRows) {
  base::Random random(5, "hostile");
  for (int round = 0; round < 100; ++round) {
    std::vector<std::byte> hostile(random.Below(40));
    for (std::byte& byte : hostile) byte = static_cast<std::byte>(random.Next());
    if (round % 2 == 0 && !hostile.empty()) hostile[0] = static_cast<std::byte>(random.Below(3));
    hostile.resize(hostile.size() / 4 * 4 + 1, std::byte{0});  // never a whole number of rows after two bytes
    RunMembers(2, [&](Fabric& fabric) {
      if (fabric.rank() == 1) {
        const auto sent = fabric.StartSend(0, 3, hostile);
        const auto taken = fabric.StartBorrow(0, 3);
        if (sent.ok()) (void)fabric.Wait(sent.value()).ok();
        if (taken.ok() && fabric.Wait(taken.value()).ok()) fabric.Release(taken.value());
        fabric.Abort({Code::kStopped, "enough"});
        return;
      }
      SparseRows touched{{1, 5}, {1, 2, 3, 4, 5, 6}};
      SparseAllReduce reduce(1000, 3);
      EXPECT_FALSE(reduce.Run(fabric, 3, touched).ok());
    });
  }
}

}  // namespace
}  // namespace freshet::fabric
