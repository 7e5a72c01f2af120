#include "train/window.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/scratch_testing.h"

namespace freshet::train {
namespace {

// Rows whose label, sample, weight, time and entries all say which row it is.
data::Rows NumberedRows(std::size_t count, bool dense) {
  data::Rows rows;
  rows.width = dense ? 2 : 0;
  rows.ClearRows();
  for (std::size_t i = 0; i < count; ++i) {
    rows.labels.Append(static_cast<float>(i));
    rows.weights.Append(static_cast<float>(i) + 0.5f);
    rows.samples.Append(i);
    rows.times.Append(static_cast<std::int64_t>(1000 + i));
    for (std::size_t e = 0; e < (dense ? 2 : i % 3); ++e) {
      if (dense) {
        rows.dense.Append(static_cast<float>(10 * i + e));
      } else {
        rows.indices.Append(static_cast<std::uint32_t>(10 * i + e));
        rows.values.Append(static_cast<float>(i));
      }
    }
    if (!dense) rows.offsets.Append(static_cast<std::uint32_t>(rows.indices.size()));
  }
  return rows;
}

void ExpectRow(const data::Batch& batch, std::size_t row, std::size_t number) {
  ASSERT_EQ(batch.labels[row], static_cast<float>(number));
  ASSERT_EQ(batch.weights[row], static_cast<float>(number) + 0.5f);
  ASSERT_EQ(batch.samples[row], number);
  ASSERT_EQ(batch.times[row], static_cast<std::int64_t>(1000 + number));
  if (!batch.sparse()) {
    ASSERT_EQ(batch.dense[row * 2 + 1], static_cast<float>(10 * number + 1));
    return;
  }
  ASSERT_EQ(batch.offsets[row + 1] - batch.offsets[row], number % 3);
  for (std::uint32_t e = 0; e < number % 3; ++e) ASSERT_EQ(batch.indices[batch.offsets[row] + e], 10 * number + e);
}

Window Filled(std::size_t count, bool dense) {
  Window window(dense, 2);
  const data::Rows rows = NumberedRows(count, dense);
  for (std::size_t i = 0; i < count; ++i) window.Add(rows.batch(), i);
  return window;
}

TEST(Window, KeepsRowsInOrderAndDropsThemFromTheFront) {
  for (const bool dense : {false, true}) {
    Window window = Filled(20, dense);
    ASSERT_EQ(window.size(), 20u);
    window.DropFront(7);
    ASSERT_EQ(window.size(), 13u);
    for (std::size_t i = 0; i < 13; ++i) ExpectRow(window.batch(), i, i + 7);
    window.DropFront(13);
    EXPECT_EQ(window.size(), 0u);
  }
}

TEST(Window, ShufflesWholeRowsTheSameForTheSameStream) {
  for (const bool dense : {false, true}) {
    Window window = Filled(50, dense), same = Filled(50, dense);
    const data::Batch mixed = window.Shuffled(base::Random(3, "shuffle")),
                      again = same.Shuffled(base::Random(3, "shuffle"));
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < 50; ++i) {
      numbers.push_back(static_cast<std::size_t>(mixed.labels[i]));
      ExpectRow(mixed, i, numbers.back());
      ASSERT_EQ(again.labels[i], mixed.labels[i]);
    }
    EXPECT_FALSE(std::is_sorted(numbers.begin(), numbers.end()));
    std::sort(numbers.begin(), numbers.end());
    for (std::size_t i = 0; i < 50; ++i) ASSERT_EQ(numbers[i], i);
  }
}

TEST(Window, ComesBackFromAFileAsItWasOrWithoutItsFirstRows) {
  const base::ScratchDirectory scratch;
  base::PosixFiles files;
  for (const bool dense : {false, true})
    for (const auto& [count, first] :
         std::vector<std::pair<std::size_t, std::size_t>>{{0, 0}, {1, 0}, {9, 0}, {9, 4}}) {
      const Window window = Filled(count, dense);
      std::vector<data::Tensor> tensors;
      std::vector<std::uint32_t> offsets;
      Window::Save(window.batch().Slice(first, count), offsets, tensors);
      ASSERT_TRUE(base::WriteAtomic(files, scratch / "w", [&](base::OutputFile& file) {
                    return data::WriteTensors(file, tensors, {});
                  }).ok());
      Window back = Filled(4, dense);  // what it held before is forgotten
      ASSERT_TRUE(back.Load(data::TensorFile::Read(files, scratch / "w").value()).ok());
      ASSERT_EQ(back.size(), count - first);
      for (std::size_t i = 0; i < back.size(); ++i) ExpectRow(back.batch(), i, first + i);
    }
}

TEST(Window, KnowsAboutHowMuchMemoryItTakes) {
  EXPECT_EQ(Window(true, 2).bytes(), 0u);
  EXPECT_GT(Filled(100, true).bytes(), 100 * 2 * sizeof(float));
  EXPECT_GT(Filled(200, false).bytes(), Filled(100, false).bytes());
}

}  // namespace
}  // namespace freshet::train
