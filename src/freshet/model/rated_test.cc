#include "model/rated.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "data/rows.h"

namespace freshet::model {
namespace {

data::Rows RatingsOf(const std::vector<Rated::Pair>& pairs) {
  data::Rows rows;
  rows.ClearRows();
  for (const auto& [user, item] : pairs) {
    rows.labels.Append(3);
    for (const std::uint32_t index : {user, item}) {
      rows.indices.Append(index);
      rows.values.Append(1);
    }
    rows.offsets.Append(static_cast<std::uint32_t>(rows.indices.size()));
  }
  return rows;
}

TEST(Rated, ComesBackInOrderFromItsPackedForm) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "rated");
    std::vector<Rated::Pair> pairs;
    for (std::uint64_t n = random.Below(300); n > 0; --n)
      pairs.emplace_back(random.Below(20), random.Below(std::uint64_t{1} << random.Below(20)));
    Rated rated;
    rated.Add(RatingsOf(pairs).batch());
    EXPECT_EQ(rated.pairs(), pairs);
    rated.Add(RatingsOf(pairs).batch());  // what comes twice counts once
    const std::string packed = rated.Pack();
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    EXPECT_EQ(Rated::Unpack(packed).value().pairs(), pairs);
    Rated sorted;
    sorted.Add(RatingsOf(pairs).batch());
    EXPECT_EQ(sorted.Pack(), packed);
  }
}

TEST(Rated, LeavesOutWhomNobodyKnows) {
  Rated rated;
  rated.Add(RatingsOf({{1, data::kUnseen}, {data::kUnseen, 2}, {3, 4}}).batch());
  EXPECT_EQ(rated.pairs(), (std::vector<Rated::Pair>{{3, 4}}));
}

TEST(Rated, IsRefusedWhenItsBytesAreCutOrMakeNoSense) {
  Rated rated;
  rated.Add(RatingsOf({{0, 5}, {1, 1'000'000}}).batch());
  const std::string packed = rated.Pack();  // 1 5 1 and three bytes
  for (const std::size_t size : {1, 3, 4, 5})
    EXPECT_EQ(Rated::Unpack(packed.substr(0, size)).error().code, Code::kCorrupt) << size;
  EXPECT_EQ(Rated::Unpack("\xff\xff\xff\xff\x0f").error().code, Code::kCorrupt);  // more than there are bytes
  EXPECT_EQ(Rated::Unpack(std::string("\x01", 1) + std::string(6, '\xff')).error().code, Code::kCorrupt);
  EXPECT_EQ(Rated::Unpack(std::string("\x02\x01\x00", 3)).error().code, Code::kCorrupt);  // the same item twice
  EXPECT_TRUE(Rated::Unpack("").value().empty());
}

}  // namespace
}  // namespace freshet::model
