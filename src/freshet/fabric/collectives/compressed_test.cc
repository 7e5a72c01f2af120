#include "fabric/collectives/compressed.h"

#include <gtest/gtest.h>

#include "fabric/codecs/codec_testing.h"
#include "fabric/threads/threads_testing.h"

namespace freshet::fabric {
namespace {

using Rows = std::vector<std::vector<float>>;

std::unique_ptr<Codec> Made(std::string_view name) {
  return Codec::Make(name, {.fraction = 0.05, .threshold = 0.05}).value();
}

std::vector<std::unique_ptr<CompressedAllReduce>> Reducers(std::string_view codec, int size, std::size_t length) {
  std::vector<std::unique_ptr<CompressedAllReduce>> reducers;
  for (int r = 0; r < size; ++r) reducers.push_back(std::make_unique<CompressedAllReduce>(Made(codec), length));
  return reducers;
}

// One exchange among rows.size() members, each with its row and its reducer.
void RunOnce(Rows& rows, std::vector<std::unique_ptr<CompressedAllReduce>>& reducers) {
  RunMembers(static_cast<int>(rows.size()), [&](Fabric& fabric) {
    const auto r = static_cast<std::size_t>(fabric.rank());
    const auto result = reducers[r]->Run(fabric, 7, rows[r]);
    ASSERT_TRUE(result.ok()) << result.error().text;
  });
}

Rows GradientRows(std::uint64_t seed, int size, std::size_t length) {
  Rows rows;
  for (int r = 0; r < size; ++r) rows.push_back(GradientLike(seed * 100 + static_cast<std::uint64_t>(r), length));
  return rows;
}

std::vector<float> SumOf(const Rows& rows) {
  std::vector<float> sum(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += row[i];
  return sum;
}

double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

TEST(CompressedAllReduce, EveryMemberEndsWithTheSameBitsWhateverCodecSizeAndLength) {
  for (const std::string& name : Codec::Names())
    for (int size = 1; size <= 9; ++size)
      for (const std::size_t length : {0u, 1u, 3u, 8u, 100u, 5001u}) {
        SCOPED_TRACE(Str(name, " size ", size, " length ", length));
        Rows rows = GradientRows(length, size, length);
        const std::vector<float> expected = SumOf(rows);
        auto reducers = Reducers(name, size, length);
        RunOnce(rows, reducers);
        for (const auto& row : rows) ASSERT_EQ(row, rows[0]);
        if (name == "none" || size == 1) {
          ASSERT_EQ(rows[0], expected);
        }
        const bool sixteen = name == "fp16" || name == "bf16";
        for (std::size_t i = 0; sixteen && i < length; ++i)
          ASSERT_NEAR(rows[0][i], expected[i], 0.02f + 0.02f * std::abs(expected[i]));
      }
}

// What arrived and what is in the residuals of all is what was put in: nothing is lost, only late.
TEST(CompressedAllReduce, WithFeedbackTheSumsOfManyStepsAreThoseOfTheInputs) {
  for (const std::string& name : Codec::Names()) {
    if (!Made(name)->uses_residual()) continue;
    SCOPED_TRACE(name);
    constexpr int kSize = 3;
    constexpr std::size_t kLength = 1500;
    auto reducers = Reducers(name, kSize, kLength);
    std::vector<float> sent(kLength), arrived(kLength);
    for (std::uint64_t step = 0; step < 60; ++step) {
      Rows rows = GradientRows(step, kSize, kLength);
      const std::vector<float> sum = SumOf(rows);
      RunOnce(rows, reducers);
      for (std::size_t i = 0; i < kLength; ++i) sent[i] += sum[i], arrived[i] += rows[0][i];
    }
    const std::vector<float> delivered = arrived;
    for (const auto& reducer : reducers)
      for (std::size_t i = 0; i < kLength; ++i) arrived[i] += reducer->residual()[i];
    for (std::size_t i = 0; i < kLength; ++i) ASSERT_NEAR(sent[i], arrived[i], 1e-3 + 1e-5 * std::abs(sent[i]));
    EXPECT_LT(Distance(sent, delivered), 0.9 * Distance(sent, std::vector<float>(kLength)));
  }
}

// A member leaves with its own residual; what the others still have to deliver arrives in the smaller group.
TEST(CompressedAllReduce, TheResidualStaysRightWhenTheGroupShrinks) {
  constexpr std::size_t kLength = 800;
  auto reducers = Reducers("1bit", 3, kLength);
  Rows rows = GradientRows(1, 3, kLength);
  RunOnce(rows, reducers);
  std::vector<float> owed(kLength);
  for (int r = 0; r < 2; ++r)
    for (std::size_t i = 0; i < kLength; ++i) owed[i] += reducers[static_cast<std::size_t>(r)]->residual()[i];
  reducers.pop_back();
  Rows zeros(2, std::vector<float>(kLength));
  RunOnce(zeros, reducers);
  for (std::size_t i = 0; i < kLength; ++i) {
    const float left = reducers[0]->residual()[i] + reducers[1]->residual()[i];
    ASSERT_NEAR(zeros[0][i] + left, owed[i], 1e-4);
  }
  Rows alone(1, std::vector<float>(kLength));
  const std::vector<float> last(reducers[0]->residual().begin(), reducers[0]->residual().end());
  reducers.pop_back();
  RunOnce(alone, reducers);
  EXPECT_EQ(alone[0], last);
}

TEST(CompressedAllReduce, GoesOnFromASavedResidualAsIfItHadNotStopped) {
  for (const std::string& name : Codec::Names()) {
    constexpr int kSize = 4;
    constexpr std::size_t kLength = 600;
    auto reducers = Reducers(name, kSize, kLength), restored = Reducers(name, kSize, kLength);
    for (std::uint64_t step = 0; step < 3; ++step) {
      Rows rows = GradientRows(step, kSize, kLength);
      RunOnce(rows, reducers);
    }
    for (std::size_t r = 0; r < kSize; ++r) ASSERT_TRUE(restored[r]->Restore(reducers[r]->residual()).ok());
    Rows rows = GradientRows(9, kSize, kLength), again = rows;
    RunOnce(rows, reducers);
    RunOnce(again, restored);
    EXPECT_EQ(rows, again) << name;
  }
  CompressedAllReduce other(Made("1bit"), 10);
  const auto refused = other.Restore(std::vector<float>(9));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find("expected 10"), std::string::npos);
}

TEST(CompressedAllReduce, OneBitSendsATwentyEighthOfWhatADenseRingSends) {
  constexpr std::size_t kLength = 1 << 20;
  for (int size = 2; size <= 9; ++size) {
    Rows rows;
    for (int r = 0; r < size; ++r) rows.emplace_back(kLength, static_cast<float>(r - 3) * 0.01f);
    auto reducers = Reducers("1bit", size, kLength);
    std::vector<std::uint64_t> travelled(static_cast<std::size_t>(size));
    RunMembers(size, [&](Fabric& fabric) {
      const auto r = static_cast<std::size_t>(fabric.rank());
      ASSERT_TRUE(reducers[r]->Run(fabric, 7, rows[r]).ok());
      travelled[r] = fabric.bytes_sent();
    });
    std::uint64_t payload = 0, total = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) payload += reducers[r]->bytes_sent(), total += travelled[r];
    const std::uint64_t dense = 2 * static_cast<std::uint64_t>(size - 1) * kLength * sizeof(float);
    EXPECT_GE(total, payload);
    EXPECT_LE(total * 28, dense) << size;
    // Room for a header of 64 bytes on every message.
    const auto messages = static_cast<std::uint64_t>(2 * size * (size - 1));
    EXPECT_LE((payload + 64 * messages) * 28, dense) << size;
  }
}

TEST(CompressedAllReduce, MembersWithDifferentCodecsAreToldSo) {
  std::vector<Result<void>> results(3);
  RunMembers(3, [&](Fabric& fabric) {
    const auto r = static_cast<std::size_t>(fabric.rank());
    CompressedAllReduce reducer(Made(r == 1 ? "int8" : "1bit"), 4000);
    std::vector<float> values(4000, 1.0f);
    results[r] = reducer.Run(fabric, 7, values);
  });
  bool said = false;
  for (const auto& result : results) {
    ASSERT_FALSE(result.ok());
    said =
        said || (result.error().code == Code::kCorrupt && result.error().text.find("same codec") != std::string::npos);
  }
  EXPECT_TRUE(said);
}

}  // namespace
}  // namespace freshet::fabric
