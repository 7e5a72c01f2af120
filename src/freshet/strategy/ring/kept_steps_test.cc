#include "strategy/ring/kept_steps.h"

#include <gtest/gtest.h>

#include "model/rows_testing.h"

namespace freshet::strategy::ring {
namespace {

TEST(KeptSteps, KeepWhatTheyWereHandedUntilItIsDropped) {
  for (const bool sparse : {false, true}) {
    data::Rows rows;
    rows.width = sparse ? 0 : 2;
    for (std::uint32_t r = 0; r < 20; ++r) {
      const auto label = static_cast<float>(r);
      if (sparse)
        model::AddSparse(rows, label, {{r, label}, {r + 7, 2.0f}});
      else
        model::AddDense(rows, label, {label, 2 * label});
    }
    KeptSteps kept;
    for (std::uint64_t step = 1; step <= 6; ++step) {
      const data::Batch piece = rows.batch().Slice(3 * (step - 1), 3 * step);
      kept.Add(step, piece, 0.1 * static_cast<double>(step), 1, 2);
      if (step > 3) kept.DropUpTo(step - 3);
    }
    ASSERT_EQ(kept.steps().size(), 3u);
    EXPECT_GT(kept.BytesAfter(3), kept.BytesAfter(5));
    EXPECT_EQ(kept.BytesAfter(6), 0u);
    for (const KeptSteps::Step& step : kept.steps()) {
      const data::Batch batch = step.rows.batch();
      ASSERT_EQ(batch.rows, 3u);
      EXPECT_EQ(step.progress, 0.1 * static_cast<double>(step.number));
      for (std::size_t r = 0; r < 3; ++r) {
        const auto label = static_cast<float>(3 * (step.number - 1) + r);
        EXPECT_EQ(batch.labels[r], label);
        EXPECT_EQ(sparse ? batch.values[batch.offsets[r]] : batch.dense[2 * r], label);
      }
    }
    kept.DropLast();
    EXPECT_EQ(kept.steps().back().number, 5u);
    kept.DropUpTo(9);
    EXPECT_TRUE(kept.steps().empty());
  }
}

}  // namespace
}  // namespace freshet::strategy::ring
