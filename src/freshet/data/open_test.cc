#include "data/open.h"

#include "base/option.h"
#include "data/cache.h"
#include "data/world_testing.h"

namespace freshet::data {
namespace {

std::uint64_t Count(World& world, RowSource& source) {
  std::uint64_t rows = 0;
  EXPECT_TRUE(DriveInOrder(world.env().executor, source, [&](Rows& block) -> Result<void> {
                rows += block.batch().rows;
                return {};
              }).ok());
  return rows;
}

std::string Table(int rows) {
  std::string text = "x,y,label\n";
  for (int row = 0; row < rows; ++row) text += Str(row % 7, ",", row % 5, ",", row % 2, "\n");
  return text;
}

TEST(Open, WhatIsNotSaidIsToldFromTheData) {
  World world;
  Input input;
  input.paths = {world.Write("a.csv", Table(50))};
  Description description;
  const auto source = Open(world.env(), input, description);
  ASSERT_TRUE(source.ok()) << source.error().text;
  EXPECT_EQ(description.format, "csv");
  EXPECT_EQ(description.features, 2u);
  EXPECT_EQ(Count(world, *source.value()), 50u);
}

TEST(Open, TheRankOfAWorkerStandsInItsPaths) {
  World world;
  world.Write("part-00003.csv", Table(7));
  Input input;
  input.paths = {world.Path("part-{rank:5}.csv")};
  EXPECT_EQ(input.Resolved(), input.paths);
  input.rank = 3;
  EXPECT_EQ(input.Resolved(), std::vector{world.Path("part-00003.csv")});
  Description description;
  const auto source = Open(world.env(), input, description);
  ASSERT_TRUE(source.ok()) << source.error().text;
  EXPECT_EQ(Count(world, *source.value()), 7u);
}

TEST(Open, PartsAreOneInput) {
  World world;
  Input input;
  input.paths = {world.Write("a.csv", Table(1000))};
  std::uint64_t rows = 0;
  for (const char* const part : {"0/3", "1/3", "2/3"}) {
    input.part = part;
    Description description;
    const auto source = Open(world.env(), input, description);
    ASSERT_TRUE(source.ok()) << source.error().text;
    rows += Count(world, *source.value());
  }
  EXPECT_EQ(rows, 1000u);
  for (const char* const part : {"3/3", "-1/3", "1", "1/", "a/b", "0/0"}) {
    input.part = part;
    Description description;
    const auto refused = Open(world.env(), input, description);
    ASSERT_FALSE(refused.ok()) << part;
    EXPECT_EQ(ShowOptions(refused.error().text), Str("part '", part, "': expected K/N with K from 0 to N-1"));
  }
}

TEST(Open, ClassesThatTheHeadDoesNotShowAreFound) {
  World world;
  std::string text = "x,y,label\n";
  for (int row = 0; row < 20'000; ++row)
    text += Str(row % 7, ",1.25,", row < 19'999 ? Str("c", row % 3) : "rare", "\n");
  Input input;
  input.paths = {world.Write("a.csv", text)};
  Description description;
  ASSERT_TRUE(Open(world.env(), input, description).ok());
  EXPECT_EQ(description.labels.names.size(), 3u);
  ASSERT_TRUE(FindAllClasses(world.env(), input, description).ok());
  EXPECT_EQ(description.labels.names, (std::vector<std::string>{"c0", "c1", "c2", "rare"}));
}

TEST(Open, WithoutAPathIsRefused) {
  World world;
  Description description;
  EXPECT_EQ(Open(world.env(), Input(), description).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace freshet::data
