#include "model/slices.h"

#include <gtest/gtest.h>

#include "data/rows.h"

namespace freshet::model {
namespace {

std::unique_ptr<Model> Linear(bool dense, std::uint64_t features) {
  ModelConfig config;
  config.dense = dense;
  config.features = features;
  return std::move(Model::Make(config)).value();
}

// Sparse rows of ever more entries.
data::Rows Growing(std::size_t count) {
  data::Rows rows;
  rows.ClearRows();
  for (std::size_t r = 0; r < count; ++r) {
    rows.labels.Append(1);
    for (std::uint32_t e = 0; e < r; ++e) {
      rows.indices.Append(e);
      rows.values.Append(1);
    }
    rows.offsets.Append(static_cast<std::uint32_t>(rows.indices.size()));
  }
  return rows;
}

std::vector<std::size_t> Ends(const Model& model, const data::Batch& batch) {
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < batch.rows;) {
    const std::size_t end = SliceEnd(model, batch, at, 1);
    EXPECT_GT(end, at);
    ends.push_back(at = end);
    if (testing::Test::HasFailure()) break;
  }
  return ends;
}

TEST(Slices, OfSparseRowsHaveAboutTheSameWorkAndNoneIsEmpty) {
  const data::Rows rows = Growing(3000);
  const auto ends = Ends(*Linear(false, 0), rows.batch());
  ASSERT_GT(ends.size(), 3u);
  EXPECT_EQ(ends.back(), 3000u);
  for (std::size_t i = 1; i + 1 < ends.size(); ++i)
    EXPECT_NEAR(static_cast<double>(rows.offsets[ends[i]] - rows.offsets[ends[i - 1]]), 1 << 20, 1 << 16);
}

TEST(Slices, ThatBeginWhereAnotherEndedAreThoseOfTheWhole) {
  const data::Rows rows = Growing(3000);
  const auto model = Linear(false, 0);
  const auto ends = Ends(*model, rows.batch());
  const data::Batch rest = rows.batch().Slice(ends[1], rows.size());
  EXPECT_EQ(ends[1] + SliceEnd(*model, rest, 0, 1), ends[2]);
}

TEST(Slices, ARowOfMoreWorkThanASliceIsOneAlone) {
  std::vector<float> labels(4), dense(4);
  data::Batch batch;
  batch.rows = 4;
  batch.labels = labels.data();
  batch.dense = dense.data();
  batch.width = 3 << 20;  // nobody reads them
  EXPECT_EQ(Ends(*Linear(true, 3 << 20), batch), (std::vector<std::size_t>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace freshet::model
