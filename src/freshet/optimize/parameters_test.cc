#include "optimize/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>

#include "base/random.h"

namespace freshet::optimize {
namespace {

// Memory that runs out: the nth reservation or commitment fails.
class ScarceMemory final : public Memory {
 public:
  explicit ScarceMemory(int calls) : left_(calls) {}
  void* Reserve(std::size_t bytes) override { return --left_ < 0 ? nullptr : Count(real_.Reserve(bytes), 1); }
  bool Commit(void* at, std::size_t from, std::size_t to) override {
    return --left_ >= 0 && real_.Commit(at, from, to);
  }
  void Release(void* at, std::size_t bytes) override {
    reserved_ -= 1;
    real_.Release(at, bytes);
  }
  int reserved() const { return reserved_; }

 private:
  void* Count(void* got, int change) {
    reserved_ += change;
    return got;
  }
  HeapMemory real_;
  int left_, reserved_ = 0;
};

TEST(Parameters, StartAtZeroWithEveryBlockAligned) {
  HeapMemory memory;
  auto parameters = std::move(Parameters::Create({{"a", 3, 5}, {"empty", 0, 4}, {"b", 2, 1, 0, 2}}, memory)).value();
  ASSERT_EQ(parameters.blocks(), 3u);
  EXPECT_EQ(parameters.size(), 3u * 5 + 2);
  EXPECT_EQ(parameters.Find("b"), 2u);
  EXPECT_FALSE(parameters.Find("c").has_value());
  for (const std::size_t b : {0, 2}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(parameters.Row(b, 0)) % 64, 0u);
    for (const float value : parameters.Gather(b)) EXPECT_EQ(value, 0.0f);
  }
  EXPECT_EQ(parameters.Row(0, 2) - parameters.Row(0, 0), 10);
}

TEST(Parameters, KeepRowsAndAddressesAsTheyGrow) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "grow");
    HeapMemory memory;
    const std::uint64_t width = 1 + random.Below(5), beside = random.Below(3);
    auto parameters =
        std::move(Parameters::Create({{"a", 1, width, 1 << 22, beside}, {"b", 1, 1, 1 << 22}}, memory)).value();
    const float* const first = parameters.Row(0, 0);
    std::uint64_t rows = 1;
    while (rows < 300'000) {
      const std::uint64_t row = random.Below(rows), place = random.Below(width);
      const auto value = static_cast<float>(random.Normal());
      parameters.Row(0, row)[place] = value;
      rows += 1 + random.Below(1 + rows);
      ASSERT_TRUE(parameters.Grow(0, rows).ok());
      ASSERT_TRUE(parameters.Grow(1, rows / 2).ok());
      ASSERT_EQ(parameters.Row(0, 0), first);
      ASSERT_EQ(parameters.Row(0, row)[place], value);
      ASSERT_EQ(parameters.Row(0, rows - 1)[width - 1], 0.0f);
      parameters.Row(0, rows - 1)[width - 1] = 0;  // writable up to its end
    }
    ASSERT_TRUE(parameters.Grow(0, 5).ok());  // growing to less changes nothing
    ASSERT_EQ(parameters.rows(0), rows);
  }
}

TEST(Parameters, RefuseToGrowBeyondTheirMostRows) {
  HeapMemory memory;
  auto parameters = std::move(Parameters::Create({{"w", 2, 1, 10}}, memory)).value();
  EXPECT_TRUE(parameters.Grow(0, 10).ok());
  const auto refused = parameters.Grow(0, 11);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_NE(refused.error().text.find("'w' cannot have 11 rows, at most 10"), std::string::npos);
  EXPECT_EQ(parameters.rows(0), 10u);
}

TEST(Parameters, CreateFailsCleanlyWhicheverAllocationFails) {
  for (int calls = 0;; ++calls) {
    SCOPED_TRACE(Str("after ", calls, " calls"));
    ScarceMemory memory(calls);
    {
      const auto made = Parameters::Create({{"a", 3, 2}, {"b", 3, 2}, {"c", 1, 1, 100}}, memory);
      if (made.ok()) break;
      ASSERT_EQ(made.error().code, Code::kInvalid);
    }
    ASSERT_EQ(memory.reserved(), 0);
  }
}

TEST(Parameters, CreateRefusesMoreThanTheAddressSpaceHas) {
  HeapMemory memory;
  EXPECT_EQ(Parameters::Create({{"huge", 0, 1, std::uint64_t{1} << 48}}, memory).error().code, Code::kInvalid);
}

TEST(Parameters, AreUnchangedWhenGrowFails) {
  ScarceMemory memory(2);
  auto parameters = std::move(Parameters::Create({{"w", 4, 1, 1 << 24}}, memory)).value();
  *parameters.Row(0, 3) = 7;
  EXPECT_EQ(parameters.Grow(0, 1 << 23).error().code, Code::kInvalid);
  EXPECT_EQ(parameters.rows(0), 4u);
  EXPECT_EQ(*parameters.Row(0, 3), 7.0f);
}

TEST(Parameters, CanBeReadWhileTheyGrow) {
  HeapMemory memory;
  auto parameters = std::move(Parameters::Create({{"w", 1, 1, 1 << 22}}, memory)).value();
  *parameters.Row(0, 0) = 5;
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      ASSERT_EQ(*parameters.Row(0, 0), 5.0f);
      ASSERT_GE(parameters.rows(0), 1u);
    }
  });
  for (std::uint64_t rows = 2; rows <= (1 << 22); rows *= 2) ASSERT_TRUE(parameters.Grow(0, rows).ok());
  stop = true;
  reader.join();
}

TEST(Parameters, GatherAndScatterAreInverses) {
  HeapMemory memory;
  for (const std::uint64_t beside : {0, 1, 2, 5}) {
    SCOPED_TRACE(Str("beside ", beside));
    auto parameters = std::move(Parameters::Create({{"w", 7, 3, 0, beside}}, memory)).value();
    std::vector<float> rows(21), others(7 * beside);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
    for (std::size_t i = 0; i < others.size(); ++i) others[i] = -1 - static_cast<float>(i);
    parameters.Scatter(0, rows);
    parameters.ScatterBeside(0, others);
    EXPECT_EQ(parameters.Gather(0), rows);
    EXPECT_EQ(parameters.GatherBeside(0), others);
    EXPECT_EQ(parameters.Row(0, 2)[1], 7.0f);
  }
}

TEST(Parameters, CopyTakesTheRowsWhateverLiesBesideThem) {
  HeapMemory memory;
  for (const std::uint64_t from : {0, 2})
    for (const std::uint64_t to : {0, 2}) {
      SCOPED_TRACE(Str("from beside ", from, " to beside ", to));
      auto source = std::move(Parameters::Create({{"w", 5, 2, 100, from}}, memory)).value();
      auto target = std::move(Parameters::Create({{"w", 1, 2, 100, to}}, memory)).value();
      std::vector<float> rows(10);
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i) + 1;
      source.Scatter(0, rows);
      if (to > 0) target.Row(0, 0)[2] = 9;
      target.CopyFrom(source);
      EXPECT_EQ(target.Gather(0), rows);
      EXPECT_EQ(target.Checksum(), source.Checksum());
      if (to > 0) {
        EXPECT_EQ(target.Row(0, 0)[2], 9.0f);
      }
    }
}

TEST(Parameters, CopyRowsTakesTheRowsItIsToldAndWhatIsBesideThemWhereThatFits) {
  HeapMemory memory;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "rows");
    const std::uint64_t width = 1 + random.Below(3), beside = random.Below(3);
    const std::uint64_t other_beside = random.Below(2) == 0 ? beside : random.Below(3);
    const std::uint64_t rows = 1 + random.Below(20), other_rows = 1 + random.Below(20);
    auto source = std::move(Parameters::Create({{"w", rows, width, 100, beside}}, memory)).value();
    auto target = std::move(Parameters::Create({{"w", other_rows, width, 100, other_beside}}, memory)).value();
    for (auto* const each : {&source, &target})
      for (std::uint64_t r = 0; r < each->rows(0); ++r)
        for (std::uint64_t k = 0; k < each->stride(0); ++k) each->Row(0, r)[k] = static_cast<float>(random.Normal());
    const auto before = target.Gather(0), before_beside = target.GatherBeside(0);
    const std::uint64_t last = random.Below(rows + 1), first = random.Below(last + 1);
    target.CopyRows(source, 0, first, last);
    ASSERT_EQ(target.rows(0), std::max(other_rows, last));
    for (std::uint64_t r = 0; r < target.rows(0); ++r) {
      const bool copied = r >= first && r < last;
      for (std::uint64_t k = 0; k < width; ++k) {
        const float old = r < other_rows ? before[r * width + k] : 0;
        ASSERT_EQ(target.Row(0, r)[k], copied ? source.Row(0, r)[k] : old);
      }
      for (std::uint64_t k = 0; k < other_beside; ++k) {
        const float old = r < other_rows ? before_beside[r * other_beside + k] : 0;
        const bool fits = other_beside == beside;
        ASSERT_EQ(target.Row(0, r)[width + k], copied && fits ? source.Row(0, r)[width + k] : old);
      }
    }
  }
}

TEST(Parameters, ChecksumChangesWithEveryValue) {
  HeapMemory memory;
  auto parameters = std::move(Parameters::Create({{"a", 4, 2}, {"b", 3, 1, 0, 2}}, memory)).value();
  const std::uint32_t before = parameters.Checksum();
  for (std::size_t b = 0; b < 2; ++b)
    for (std::uint64_t row = 0; row < parameters.rows(b); ++row) {
      *parameters.Row(b, row) = 1;
      EXPECT_NE(parameters.Checksum(), before);
      *parameters.Row(b, row) = 0;
    }
  parameters.Row(1, 0)[1] = 3;  // what lies beside is not part of the model
  EXPECT_EQ(parameters.Checksum(), before);
}

TEST(Parameters, AllFiniteFindsASingleNumberThatIsNot) {
  HeapMemory memory;
  for (const std::uint64_t beside : {0, 2}) {
    auto parameters = std::move(Parameters::Create({{"a", 30, 3, 0, beside}}, memory)).value();
    EXPECT_TRUE(parameters.AllFinite());
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), std::nanf("")})
      for (std::uint64_t row = 0; row < 30; ++row) {
        parameters.Row(0, row)[row % 3] = bad;
        ASSERT_FALSE(parameters.AllFinite());
        parameters.Row(0, row)[row % 3] = 3e38f;
        ASSERT_TRUE(parameters.AllFinite());
      }
  }
}

}  // namespace
}  // namespace freshet::optimize
