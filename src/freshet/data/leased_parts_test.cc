#include "data/leased_parts.h"

#include <set>

#include "base/random.h"
#include "data/world_testing.h"

namespace freshet::data {
namespace {

// Rows whose label is their number, in lines of any length.
std::string Lines(std::uint64_t rows, base::Random& random) {
  std::string text;
  for (std::uint64_t row = 0; row < rows; ++row) {
    text += Str(row);
    const std::uint64_t entries = 1 + random.Below(1 + random.Below(12));
    for (std::uint64_t entry = 1; entry <= entries; ++entry) text += Str(" ", entry * 3, ":1");
    text += "\n";
  }
  return text;
}

class LeasedPartsTest : public testing::Test {
 protected:
  std::unique_ptr<LeasedParts> Make(std::uint64_t parts) {
    auto made = LeasedParts::Make(parts, [this, parts](std::uint64_t part) -> Result<std::unique_ptr<RowSource>> {
      ReaderOptions options;
      options.paths = {path_};
      options.chunk_bytes = 200;
      options.part = {part, parts};
      ++opened_;
      return std::unique_ptr<RowSource>(TRY(Reader::Open(world_.env(), options, {}, description_)));
    });
    EXPECT_TRUE(made.ok()) << made.error().text;
    return std::move(made).value();
  }
  // Labels of the updates from `first` on, at most so many.
  static std::vector<std::vector<float>> Updates(LeasedParts& parts, std::uint64_t first, std::uint64_t most) {
    EXPECT_TRUE(parts.Seek({.block = first}).ok());
    std::vector<std::vector<float>> updates;
    Rows rows;
    const auto next = [&] {
      const auto more = parts.Next(rows);
      EXPECT_TRUE(more.ok()) << more.error().text;
      return more.ok() && more.value();
    };
    while (updates.size() < most && next()) {
      EXPECT_EQ(rows.begin.block, first + updates.size());
      const std::size_t each = parts.rows();
      for (std::size_t begin = 0; begin < rows.size(); begin += each) {
        const std::size_t end = std::min(begin + each, rows.size());
        updates.emplace_back(rows.labels.data() + begin, rows.labels.data() + end);
      }
      EXPECT_EQ(rows.end.block, first + updates.size());
    }
    if (updates.size() > most) updates.resize(most);
    return updates;
  }

  World world_;
  Description description_;
  std::string path_;
  int opened_ = 0;
};

TEST_F(LeasedPartsTest, WhatBelongsToAnUpdateDoesNotDependOnWhoHoldsWhat) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "leases");
    const std::uint64_t rows = 1 + random.Below(400), parts = 1 + random.Below(6);
    path_ = world_.Write("rows", Lines(rows, random));
    const std::uint64_t update = parts + random.Below(20), window = 1 + random.Below(50);
    const std::uint64_t shuffled = random.Below(2) * seed, left_out = random.Below(2) * (2 + random.Below(5));
    const auto settle = [&](LeasedParts& one) {
      one.SetUpdate(update);
      one.SetWindow(window);
      if (left_out > 0)
        one.SetWanted([left_out](const Batch& batch, std::size_t row) {
          return static_cast<std::uint64_t>(batch.labels[row]) % left_out != 0;
        });
      one.Permute(shuffled);
    };
    const auto alone = Make(parts);
    settle(*alone);
    alone->Lease(0, 1);
    const auto all = Updates(*alone, 0, rows + 1);
    std::multiset<float> seen;
    for (const auto& one : all) seen.insert(one.begin(), one.end());
    std::multiset<float> wanted;
    for (std::uint64_t row = 0; row < rows; ++row)
      if (left_out == 0 || row % left_out != 0) wanted.insert(static_cast<float>(row));
    EXPECT_EQ(seen, wanted);

    // Readers of changing numbers, each of whom goes on where all are.
    std::vector<std::unique_ptr<LeasedParts>> readers;
    for (std::uint64_t u = 0; u < all.size();) {
      const std::uint64_t holders = 1 + random.Below(5), some = 1 + random.Below(8);
      while (readers.size() < holders) settle(*readers.emplace_back(Make(parts)));
      std::vector<std::multiset<float>> together(some);
      for (std::uint64_t holder = 0; holder < holders; ++holder) {
        readers[holder]->Lease(holder, holders);
        const auto mine = Updates(*readers[holder], u, some);
        for (std::size_t i = 0; i < mine.size(); ++i) together[i].insert(mine[i].begin(), mine[i].end());
      }
      for (std::uint64_t i = 0; i < some && u < all.size(); ++i, ++u)
        EXPECT_EQ(together[i], std::multiset<float>(all[u].begin(), all[u].end())) << "update " << u;
      if (HasFailure()) return;
    }
  }
}

TEST_F(LeasedPartsTest, KeepsItsPlaceInAPartThatItKeeps) {
  base::Random random(1, "lines");
  path_ = world_.Write("rows", Lines(3000, random));
  const auto parts = Make(4);
  parts->SetUpdate(8);
  parts->Lease(0, 2);
  Updates(*parts, 0, 200);
  EXPECT_EQ(opened_, 3);  // one to find out how much there is
  parts->Lease(0, 1);
  Updates(*parts, 100, 10);
  EXPECT_EQ(opened_, 5);
  EXPECT_EQ(parts->Held(), std::vector<double>({1, 1, 1, 1}));
  EXPECT_NEAR(parts->Fraction({.block = 3000 / 16}).value(), 0.5, 0.05);
}

TEST_F(LeasedPartsTest, WhatCannotBeReadFromAnywhereIsRefused) {
  const auto made = LeasedParts::Make(2, [](std::uint64_t) -> Result<std::unique_ptr<RowSource>> {
    class Stream final : public RowSource {
      Result<bool> Next(Rows&) override { return false; }
      Result<void> Finish(Rows&) override { return {}; }
      Result<void> Seek(const Position&) override { return {}; }
      std::optional<double> Fraction(const Position&) const override { return std::nullopt; }
    };
    return std::unique_ptr<RowSource>(std::make_unique<Stream>());
  });
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::kInvalid);
}

}  // namespace
}  // namespace freshet::data
