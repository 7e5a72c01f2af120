#include "strategy/server/near_rows.h"

#include <gtest/gtest.h>

#include "model/rows_testing.h"
#include "strategy/server/own_rows.h"

namespace freshet::strategy::server {
namespace {

struct Near {
  optimize::HeapMemory memory;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<NearRows> rows;

  explicit Near(const std::string& kind) {
    model::ModelConfig config;
    config.kind = kind;
    if (kind == "factorization") config.loss = "squared";
    config.factors = 3;
    model = model::Model::Make(config).value();
    rows = NearRows::Make(*model, memory).value();
  }
};

std::vector<std::uint32_t> IndicesOf(const data::Batch& batch) {
  return {batch.indices + batch.offsets[0], batch.indices + batch.offsets[batch.rows]};
}

TEST(NearRows, NumbersWhatIsMetInItsOrder) {
  Near near("fm");
  data::Rows far;
  model::AddSparse(far, 1, {{9'000'000, 1}, {17, 2}});
  model::AddSparse(far, 0, {{17, 3}, {data::kUnseen, 1}, {40'000'000, 4}});
  EXPECT_EQ(IndicesOf(near.rows->Show(far.batch()).value()), (std::vector<std::uint32_t>{0, 1, 1, data::kUnseen, 2}));
  const data::Batch second = far.batch().Slice(1, 2);
  EXPECT_EQ(IndicesOf(near.rows->Show(second).value()), (std::vector<std::uint32_t>{1, data::kUnseen, 2}));
  EXPECT_EQ(near.rows->Far(2, 2), 40'000'000u);
  EXPECT_EQ(near.rows->Far(0, 0), 0u);  // the bias, which does not grow
  EXPECT_EQ(near.rows->parameters().rows(2), 3u);
  near.rows->Forget();
  EXPECT_EQ(IndicesOf(near.rows->Show(second).value()), (std::vector<std::uint32_t>{0, data::kUnseen, 1}));
  EXPECT_EQ(near.rows->Far(1, 0), 17u);
}

TEST(NearRows, UsersAndItemsOfTheSameNumberAreNotTheSame) {
  Near near("factorization");
  data::Rows far;
  model::AddRating(far, 5, 5, 1);
  model::AddRating(far, 6, 5, 1);
  EXPECT_EQ(IndicesOf(near.rows->Show(far.batch()).value()), (std::vector<std::uint32_t>{0, 1, 2, 1}));
}

TEST(NearRows, ManyAreToldApart) {
  Near near("linear");
  base::Random random(1, "near");
  std::vector<std::uint32_t> far;
  data::Rows rows;
  for (int r = 0; r < 3000; ++r) {
    std::vector<std::pair<std::uint32_t, float>> entries;
    for (int e = 0; e < 50; ++e) {
      far.push_back(static_cast<std::uint32_t>(random.Below(1 << 27)));
      entries.emplace_back(far.back(), 1.0f);
    }
    model::AddSparse(rows, 1, entries);
  }
  EXPECT_FALSE(near.rows->many());
  const auto numbers = IndicesOf(near.rows->Show(rows.batch()).value());
  ASSERT_EQ(numbers.size(), far.size());
  for (std::size_t i = 0; i < far.size(); ++i) ASSERT_EQ(near.rows->Far(0, numbers[i]), far[i]);
  EXPECT_FALSE(near.rows->many());  // one batch has so many
}

TEST(OwnRows, LieInTheOrderInWhichTheirRangesAreNamed) {
  OwnRows own({{"weights", 0, 1, 1000}, {"bias", 2, 1}}, {64, 64});
  EXPECT_TRUE(own.packs(0));
  EXPECT_FALSE(own.Find(0, 130).has_value());
  EXPECT_EQ(own.Add(0, 130), 0u);
  EXPECT_EQ(own.Find(0, 130), 2u);
  EXPECT_EQ(own.Find(0, 128), 0u);
  EXPECT_FALSE(own.Find(0, 127).has_value());
  EXPECT_EQ(own.Add(0, 5), 64u);
  EXPECT_EQ(own.Find(0, 5), 69u);
  EXPECT_EQ(own.Find(1, 1), 1u);
  EXPECT_TRUE(own.MayHave(0, 999));
  EXPECT_FALSE(own.MayHave(0, 1000));
  own.Name(0, 131);
  own.Name(0, 6);
  EXPECT_EQ(own.rows(0), 131u);
  EXPECT_EQ(own.rows(1), 2u);
}

}  // namespace
}  // namespace freshet::strategy::server
