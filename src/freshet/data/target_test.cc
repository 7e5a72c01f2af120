#include "data/target.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "data/cache.h"
#include "data/packed_testing.h"
#include "data/world_testing.h"

namespace freshet::data {
namespace {

std::vector<float> Prices(std::size_t count) {
  base::Random random(1, "prices");
  std::vector<float> prices;
  for (std::size_t i = 0; i < count; ++i) prices.push_back(180'000 + 80'000 * static_cast<float>(random.Normal()));
  return prices;
}

TEST(Target, OfASampleIsItsMeanAndDeviation) {
  const Target target = Target::Of({10, 20, 30, 40});
  EXPECT_TRUE(target.any());
  EXPECT_FALSE(target.moving());
  EXPECT_DOUBLE_EQ(target.mean(), 25);
  EXPECT_DOUBLE_EQ(target.deviation(), std::sqrt(125));
  std::vector<float> labels = {25, 25 + static_cast<float>(std::sqrt(125))};
  target.Scale(labels);
  EXPECT_FLOAT_EQ(labels[0], 0);
  EXPECT_FLOAT_EQ(labels[1], 1);
  target.Unscale(labels);
  EXPECT_FLOAT_EQ(labels[0], 25);
}

TEST(Target, IsNotSetByAStrayLabel) {
  std::vector<float> prices = Prices(10'000);
  prices[77] = 1e30f;
  prices[78] = std::numeric_limits<float>::infinity();
  prices[79] = std::nanf("");
  const Target target = Target::Of(prices);
  EXPECT_NEAR(target.mean(), 180'000, 4'000);
  EXPECT_NEAR(target.deviation(), 80'000, 2'000);
}

TEST(Target, OfLabelsThatAreAllTheSameIsTheirSize) {
  EXPECT_EQ(Target::Of({-7, -7, -7}).mean(), -7);
  EXPECT_EQ(Target::Of({-7, -7, -7}).deviation(), 7);
  EXPECT_EQ(Target::Of({0, 0}).deviation(), 1);
  EXPECT_FALSE(Target::Of({}).any());
  EXPECT_FALSE(Target::Of({std::nanf("")}).any());
}

TEST(Target, HoldsForEverySizeAFloatCanHave) {
  for (const float size : {1e-30f, 1e-10f, 1e10f, 1e30f}) {
    SCOPED_TRACE(size);
    const Target target = Target::Of({1 * size, 2 * size, 3 * size});
    EXPECT_NEAR(target.mean() / size, 2, 1e-6);
    EXPECT_NEAR(target.Scaled(3 * size), std::sqrt(1.5), 1e-5);
    EXPECT_NEAR(target.Unscaled(target.Scaled(3 * size)) / size, 3, 1e-5);
  }
}

TEST(Target, ThatMovesFollowsTheFirstLabelsAndThenStays) {
  Target target = Target::Moving();
  EXPECT_TRUE(target.any());
  EXPECT_EQ(target.Unscaled(0.5f), 0.5f);  // it knows nothing yet
  const std::vector<float> prices = Prices(2 * Target::kSettledRows);
  for (std::size_t i = 0; i < prices.size(); ++i) {
    EXPECT_EQ(target.moving(), i < Target::kSettledRows);
    target.Observe(prices[i]);
    EXPECT_LE(std::abs(target.Scaled(prices[i])), std::sqrt(static_cast<double>(Target::kSettledRows)));
  }
  EXPECT_NEAR(target.mean(), 180'000, 10'000);
  EXPECT_NEAR(target.deviation(), 80'000, 6'000);
  const Target then = target;
  target.Observe(-1e30f);
  EXPECT_EQ(target, then);
}

TEST(Target, ThatWasSavedWhileItMovedGoesOnTheSame) {
  const std::vector<float> prices = Prices(200);
  Target target = Target::Moving();
  for (std::size_t i = 0; i < 100; ++i) target.Observe(prices[i]);
  auto loaded = Target::Load(target.mean(), target.deviation(), target.rows(), target.squares());
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded.value(), target);
  for (std::size_t i = 100; i < 200; ++i) {
    target.Observe(prices[i]);
    loaded.value().Observe(prices[i]);
  }
  EXPECT_EQ(loaded.value(), target);
  EXPECT_FALSE(Target::Load(0, 0, 1, 0).ok());
  EXPECT_FALSE(Target::Load(0, std::nan(""), 1, 0).ok());
  EXPECT_FALSE(Target::Load(0, 1, Target::kSettledRows, 0).ok());
}

// Rows sorted by their label, so that no place of the file is like another.
std::string Sorted(std::size_t rows, bool quoted) {
  std::string text = "size,name,price\n";
  for (std::size_t r = 0; r < rows; ++r)
    text += Str(r % 7, quoted ? ",\"a house, with a garden\"," : ",house,", r * 10, "\n");
  return text;
}

// A label of weight two is two labels, one of none is none.
TEST(Target, CountsLabelsByTheirWeights) {
  World world;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "weighted labels");
    std::string weighted = "x,w,y\n", repeated = "x,w,y\n";
    for (std::uint64_t r = 0; r < 200 + 50 * seed; ++r) {
      const std::uint64_t weight = random.Below(4);
      const std::string label = Str(random.Normal() * 7 + 100);
      weighted += Str("1,", weight, ",", label, "\n");
      for (std::uint64_t i = 0; i < weight; ++i) repeated += Str("1,1,", label, "\n");
    }
    Target targets[2];
    const std::string* texts[] = {&weighted, &repeated};
    for (int k = 0; k < 2; ++k) {
      InputOptions input;
      input.weight_column = "w";
      input.task = Labels::Kind::kReal;
      Description description;
      const auto reader = Reader::Open(world.env(), FilesAt({world.Write("rows", *texts[k])}), input, description);
      ASSERT_TRUE(reader.ok()) << reader.error().text;
      targets[k] = EstimateTarget(*reader.value()).value();
    }
    EXPECT_NEAR(targets[0].mean(), targets[1].mean(), 1e-6);
    EXPECT_NEAR(targets[0].deviation(), targets[1].deviation(), 1e-6);
  }
}

TEST(Target, OfAFileIsOfAllItsPlaces) {
  World world;
  constexpr std::size_t kRows = 200'000;  // of several megabytes
  InputOptions input;
  input.task = Labels::Kind::kReal;
  for (const bool quoted : {false, true}) {
    SCOPED_TRACE(quoted);
    Description description;
    const auto reader =
        Reader::Open(world.env(), FilesAt({world.Write("sorted.csv", Sorted(kRows, quoted))}), input, description);
    ASSERT_TRUE(reader.ok()) << reader.error().text;
    const auto target = EstimateTarget(*reader.value());
    ASSERT_TRUE(target.ok()) << target.error().text;
    EXPECT_NEAR(target.value().mean(), 10.0 * kRows / 2, 10.0 * kRows / 20);
    EXPECT_NEAR(target.value().deviation(), 10.0 * kRows / std::sqrt(12), 10.0 * kRows / 20);
    std::uint64_t rows = 0;  // the reading begins at the beginning all the same
    ASSERT_TRUE(DriveInOrder(world.env().executor, *reader.value(), [&](Rows& block) -> Result<void> {
                  rows += block.size();
                  return {};
                }).ok());
    EXPECT_EQ(rows, kRows);
  }
}

TEST(Target, OfSeveralFilesIsOfAllAndOfAPackedOneOfItsHead) {
  World world;
  InputOptions input;
  input.task = Labels::Kind::kReal;
  Description several, packed;
  const auto files = Reader::Open(
      world.env(),
      FilesAt({world.Write("a.csv", "x,y\n1,10.5\n2,10.5\n"), world.Write("b.csv", "x,y\n1,20.5\n2,20.5\n")}), input,
      several);
  ASSERT_TRUE(files.ok()) << files.error().text;
  const Target both = EstimateTarget(*files.value()).value();
  EXPECT_GT(both.mean(), 10.5);
  EXPECT_LT(both.mean(), 20.5);
  const auto gzip =
      Reader::Open(world.env(), FilesAt({world.Write("c.csv.gz", Gzipped("x,y\n1,10\n2,20\n3,33.5"))}), input, packed);
  ASSERT_TRUE(gzip.ok()) << gzip.error().text;
  EXPECT_TRUE(EstimateTarget(*gzip.value()).value().any());
}

TEST(Target, OfACacheIsOfItsBlocks) {
  World world;
  InputOptions input;
  input.task = Labels::Kind::kReal;
  Description description;
  const auto reader =
      Reader::Open(world.env(), FilesAt({world.Write("a.csv", "x,y\n1,10\n2,20\n3,30\n")}), input, description);
  ASSERT_TRUE(reader.ok()) << reader.error().text;
  auto writer = CacheWriter::Create(world.posix, world.Path("rows")).value();
  ASSERT_TRUE(
      DriveInOrder(world.env().executor, *reader.value(), [&](Rows& rows) { return writer->Append(rows); }).ok());
  ASSERT_TRUE(writer->Close(description).ok());
  const auto cache = CacheReader::Open(world.posix, world.Path("rows")).value();
  EXPECT_EQ(EstimateTarget(*cache).value(), Target::Of({10, 20, 30}));
}

TEST(Description, KeepsItsTargetAndOneWithoutIsWrittenAsBefore) {
  World world;
  const auto around = [&](const Description& description) {
    Metadata metadata;
    std::vector<Tensor> tensors;
    std::vector<std::string> storage;
    description.Save(metadata, tensors, storage);
    base::StringFile file;
    EXPECT_TRUE(WriteTensors(file, tensors, metadata).ok());
    return Description::Load(TensorFile::Parse(file.text, "test").value());
  };
  Description description;
  description.format = "csv";
  description.labels.kind = Labels::Kind::kReal;
  EXPECT_NE(description.ToJson().find("\"version\":1,"), std::string::npos);
  EXPECT_EQ(description.ToJson().find("target"), std::string::npos);
  EXPECT_FALSE(around(description).value().target.any());
  description.target = Target(180'921.3, 79'442.1);
  EXPECT_NE(description.ToJson().find("\"version\":4,"), std::string::npos);
  EXPECT_NE(description.ToJson().find("\"target\":{\"mean\":180921.3,\"deviation\":79442.1}"), std::string::npos);
  EXPECT_EQ(around(description).value().target, description.target);
  description.target = Target::Moving();
  for (const float price : Prices(10)) description.target.Observe(price);
  EXPECT_EQ(around(description).value().target, description.target);
  description.shape = {1, 2, 2};
  description.features = 4;
  description.view.crop = 1;
  EXPECT_EQ(around(description).value().view, description.view);
  EXPECT_EQ(around(description).value().target, description.target);
}

}  // namespace
}  // namespace freshet::data
