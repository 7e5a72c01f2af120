#include "fabric/collectives/power.h"

#include <gtest/gtest.h>

#include "fabric/codecs/codec_testing.h"
#include "fabric/threads/threads_testing.h"

namespace freshet::fabric {
namespace {

using Rows = std::vector<std::vector<float>>;
using Reducers = std::vector<std::unique_ptr<PowerAllReduce>>;

Reducers Made(int size, std::size_t rows, std::size_t cols, std::size_t rank) {
  Reducers reducers;
  for (int r = 0; r < size; ++r) reducers.push_back(std::make_unique<PowerAllReduce>(rows, cols, rank, 17));
  return reducers;
}

void RunOnce(Rows& matrices, Reducers& reducers) {
  RunMembers(static_cast<int>(matrices.size()), [&](Fabric& fabric) {
    const auto r = static_cast<std::size_t>(fabric.rank());
    const auto result = reducers[r]->Run(fabric, 11, matrices[r]);
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

double Norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += value * value;
  return std::sqrt(sum);
}

double Distance(std::vector<float> a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return Norm(a);
}

TEST(PowerAllReduce, AMatrixOfItsRankArrivesInOneCall) {
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (int size = 1; size <= 9; ++size) {
      SCOPED_TRACE(Str("seed ", seed, " size ", size));
      constexpr std::size_t kRows = 23, kCols = 31, kRank = 2;
      const std::vector<float> left = GradientLike(seed, kRows * kRank);  // the same for all: the sum has their rank
      Rows matrices;
      for (int r = 0; r < size; ++r) {
        const std::vector<float> right = GradientLike(seed * 10 + static_cast<std::uint64_t>(r), kCols * kRank);
        matrices.emplace_back(kRows * kCols);
        for (std::size_t i = 0; i < kRows; ++i)
          for (std::size_t j = 0; j < kCols; ++j)
            for (std::size_t k = 0; k < kRank; ++k)
              matrices.back()[i * kCols + j] += left[i * kRank + k] * right[j * kRank + k];
      }
      const std::vector<float> expected = SumOf(matrices);
      auto reducers = Made(size, kRows, kCols, kRank);
      RunOnce(matrices, reducers);
      for (const auto& matrix : matrices) ASSERT_EQ(matrix, matrices[0]);
      ASSERT_LE(Distance(matrices[0], expected), 1e-4 * Norm(expected));
    }
}

TEST(PowerAllReduce, WhatArrivedAndTheErrorsAreWhatWasPutIn) {
  constexpr int kSize = 3;
  constexpr std::size_t kRows = 20, kCols = 15;
  auto reducers = Made(kSize, kRows, kCols, 2);
  std::vector<float> sent(kRows * kCols), arrived(kRows * kCols);
  for (std::uint64_t step = 0; step < 80; ++step) {
    Rows matrices = GradientRows(step, kSize, kRows * kCols);
    const std::vector<float> sum = SumOf(matrices);
    RunOnce(matrices, reducers);
    for (const auto& matrix : matrices) ASSERT_EQ(matrix, matrices[0]);
    for (std::size_t i = 0; i < sum.size(); ++i) sent[i] += sum[i], arrived[i] += matrices[0][i];
  }
  EXPECT_LT(Distance(sent, arrived), 0.9 * Norm(sent));
  for (const auto& reducer : reducers)
    for (std::size_t i = 0; i < arrived.size(); ++i) arrived[i] += reducer->state().error[i];
  for (std::size_t i = 0; i < sent.size(); ++i) ASSERT_NEAR(sent[i], arrived[i], 1e-3);
}

// The same matrix again and again: the approximation's part of the sum must come to be all of it.
TEST(PowerAllReduce, ASteadyGradientArrivesInFull) {
  constexpr std::size_t kRows = 12, kCols = 10;
  const std::vector<float> matrix = GradientLike(3, kRows * kCols);
  auto reducers = Made(2, kRows, kCols, 1);
  std::vector<float> arrived(kRows * kCols), expected(kRows * kCols);
  constexpr int kSteps = 300;
  for (int step = 0; step < kSteps; ++step) {
    Rows matrices(2, matrix);
    RunOnce(matrices, reducers);
    for (std::size_t i = 0; i < arrived.size(); ++i) arrived[i] += matrices[0][i], expected[i] += 2 * matrix[i];
  }
  EXPECT_LE(Distance(arrived, expected), 0.1 * Norm(expected));
}

TEST(PowerAllReduce, ZerosAndRanksBeyondTheMatrixDoNoHarm) {
  auto reducers = Made(3, 4, 3, 8);
  Rows zeros(3, std::vector<float>(12));
  RunOnce(zeros, reducers);
  for (const float value : zeros[0]) ASSERT_EQ(value, 0.0f);
  Rows matrices = GradientRows(1, 3, 12);
  const std::vector<float> expected = SumOf(matrices);
  RunOnce(matrices, reducers);
  EXPECT_LE(Distance(matrices[2], expected), 1e-4 * Norm(expected));
}

TEST(PowerAllReduce, GoesOnFromASavedStateAsIfItHadNotStopped) {
  auto reducers = Made(3, 9, 7, 2), restored = Made(3, 9, 7, 2);
  Rows zeros(3, std::vector<float>(63));
  RunOnce(zeros, reducers);  // uses random numbers anew
  for (std::uint64_t step = 0; step < 3; ++step) {
    Rows matrices = GradientRows(step, 3, 63);
    RunOnce(matrices, reducers);
  }
  for (std::size_t r = 0; r < 3; ++r) ASSERT_TRUE(restored[r]->Restore(reducers[r]->state()).ok());
  for (std::uint64_t step = 3; step < 6; ++step) {
    Rows matrices = GradientRows(step, 3, 63), again = matrices;
    if (step == 4) matrices = again = zeros;
    RunOnce(matrices, reducers);
    RunOnce(again, restored);
    ASSERT_EQ(matrices, again);
  }
  EXPECT_FALSE(restored[0]->Restore({}).ok());
}

TEST(PowerAllReduce, SendsOnlyTheTwoNarrowMatrices) {
  Rows matrices = GradientRows(1, 4, 100 * 60);
  auto reducers = Made(4, 100, 60, 2);
  RunOnce(matrices, reducers);
  std::uint64_t sent = 0;
  for (const auto& reducer : reducers) sent += reducer->bytes_sent();
  EXPECT_EQ(sent, 2u * 3 * 2 * (100 + 60) * sizeof(float));
  EXPECT_TRUE(PowerAllReduce::Pays(100, 60, 2));
  EXPECT_FALSE(PowerAllReduce::Pays(10, 1, 1));
}

}  // namespace
}  // namespace freshet::fabric
