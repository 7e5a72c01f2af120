#include "data/cache.h"

#include <set>

#include "base/faulty_files.h"
#include "base/random.h"
#include "data/world_testing.h"

namespace freshet::data {
namespace {

// Blocks of random rows: sparse or dense, with weights and times or without.
std::vector<Rows> RandomBlocks(base::Random& random) {
  std::vector<Rows> blocks(random.Below(6));
  const std::size_t width = random.Below(2) * (1 + random.Below(5));
  std::uint64_t sample = 0;
  for (Rows& rows : blocks) {
    rows.Clear();
    rows.width = width;
    const bool weights = random.Below(2) == 0, times = random.Below(2) == 0;
    for (std::uint64_t r = random.Below(20); r > 0; --r) {
      rows.labels.Append(static_cast<float>(random.Normal()));
      rows.samples.Append(sample++);
      if (weights) rows.weights.Append(static_cast<float>(random.Uniform()));
      if (times) rows.times.Append(static_cast<std::int64_t>(random.Next()));
      for (std::size_t j = 0; j < width; ++j) rows.dense.Append(static_cast<float>(random.Normal()));
      if (width > 0) continue;
      for (std::uint64_t e = random.Below(5); e > 0; --e) {
        rows.indices.Append(static_cast<std::uint32_t>(random.Next()));
        rows.values.Append(static_cast<float>(random.Normal()));
      }
      rows.offsets.Append(static_cast<std::uint32_t>(rows.indices.size()));
    }
  }
  return blocks;
}

Description SomeDescription() {
  Description description;
  description.format = "csv";
  description.delimiter = ",";
  description.columns = {{"caf\xe9", Column::Kind::kNumber}, {"y", Column::Kind::kLabel}};
  description.features = 1;
  description.labels.kind = Labels::Kind::kBinary;
  description.labels.names = {"0", "1"};
  description.dictionaries.resize(1);
  description.dictionaries[0].Add("name");
  return description;
}

Result<void> WriteCache(base::Files& files, const std::string& path, const std::vector<Rows>& blocks) {
  const auto writer = TRY(CacheWriter::Create(files, path));
  for (const Rows& rows : blocks) TRY(writer->Append(rows));
  return writer->Close(SomeDescription());
}

template <class T>
void ExpectSame(const Buffer<T>& a, const Buffer<T>& b) {
  ASSERT_EQ(std::vector<T>(a.span().begin(), a.span().end()), std::vector<T>(b.span().begin(), b.span().end()));
}

void ExpectSame(const Rows& a, const Rows& b) {
  ASSERT_EQ(a.width, b.width);
  ExpectSame(a.labels, b.labels);
  ExpectSame(a.samples, b.samples);
  ExpectSame(a.weights, b.weights);
  ExpectSame(a.times, b.times);
  ExpectSame(a.dense, b.dense);
  if (a.width > 0) return;
  ExpectSame(a.offsets, b.offsets);
  ExpectSame(a.indices, b.indices);
  ExpectSame(a.values, b.values);
}

TEST(Cache, GivesBackWhatWasPutIn) {
  World world;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "cache");
    const auto blocks = RandomBlocks(random);
    const std::string path = world.Path("cache");
    ASSERT_TRUE(WriteCache(world.posix, path, blocks).ok());
    const auto reader = CacheReader::Open(world.posix, path);
    ASSERT_TRUE(reader.ok()) << reader.error().text;
    EXPECT_EQ(CacheReader::Is(world.posix, path), true);
    EXPECT_EQ(reader.value()->description().ToJson(), SomeDescription().ToJson());
    EXPECT_EQ(reader.value()->description().dictionaries[0].Find("name"), 0u);
    ASSERT_EQ(reader.value()->blocks(), blocks.size());
    Rows rows;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      ASSERT_TRUE(reader.value()->Next(rows).value());
      EXPECT_EQ(rows.sequence, i);
      ExpectSame(rows, blocks[i]);
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_FALSE(reader.value()->Next(rows).value());
    EXPECT_EQ(world.Names(), std::vector<std::string>{"cache"}) << "no draft is left";
  }
}

TEST(Cache, IsReadInAnyOrderAndFromAnyBlock) {
  World world;
  std::vector<Rows> blocks(20);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].Clear();
    blocks[i].labels.Append(static_cast<float>(i));
    blocks[i].samples.Append(i);
    blocks[i].offsets.Append(0);
  }
  ASSERT_TRUE(WriteCache(world.posix, world.Path("cache"), blocks).ok());
  const auto reader = CacheReader::Open(world.posix, world.Path("cache")).value();
  const auto order = [&](std::uint64_t seed, std::uint64_t from) {
    reader->Permute(seed);
    EXPECT_TRUE(reader->Seek({.block = from}).ok());
    std::vector<float> seen;
    Rows rows;
    while (reader->Next(rows).value()) {
      EXPECT_EQ(rows.sequence, seen.size());
      EXPECT_EQ(rows.end.block, from + seen.size() + 1);
      seen.push_back(rows.labels[0]);
    }
    return seen;
  };
  const auto as_written = order(0, 0), shuffled = order(7, 0);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(as_written[i], static_cast<float>(i));
  EXPECT_NE(shuffled, as_written);
  EXPECT_NE(shuffled, order(8, 0));
  EXPECT_EQ(std::set<float>(shuffled.begin(), shuffled.end()).size(), 20u);
  EXPECT_EQ(order(7, 12), std::vector<float>(shuffled.begin() + 12, shuffled.end()));
  EXPECT_EQ(reader->Seek({.block = 21}).error().code, Code::kBadInput);
  EXPECT_DOUBLE_EQ(reader->Fraction({.block = 5}).value(), 0.25);
}

// Everything there is to read in a file, or the error.
Result<void> ReadThrough(World& world, const std::string& path) {
  const auto reader = TRY(CacheReader::Open(world.posix, path));
  Rows rows;
  while (TRY(reader->Next(rows))) continue;
  return {};
}

TEST(Cache, ThatIsCutOffAnywhereIsCorrupt) {
  World world;
  base::Random random(4, "cut");
  ASSERT_TRUE(WriteCache(world.posix, world.Path("cache"), RandomBlocks(random)).ok());
  const std::string whole = world.Read(world.Path("cache"));
  ASSERT_GT(whole.size(), 1'000u);
  for (std::size_t size = 0; size < whole.size(); size += 1 + size % 7) {
    const auto result = ReadThrough(world, world.Write("cut", whole.substr(0, size)));
    ASSERT_FALSE(result.ok()) << size;
    ASSERT_EQ(result.error().code, Code::kCorrupt) << result.error().text;
  }
}

TEST(Cache, ThatIsDamagedAnywhereIsCorrupt) {
  World world;
  base::Random random(4, "damage");
  ASSERT_TRUE(WriteCache(world.posix, world.Path("cache"), RandomBlocks(random)).ok());
  const std::string whole = world.Read(world.Path("cache"));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    if (at >= whole.size() - 12 && at < whole.size() - 8) continue;  // four bytes of the trailer that mean nothing
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
    const auto result = ReadThrough(world, world.Write("damaged", damaged));
    ASSERT_FALSE(result.ok()) << at;
    ASSERT_EQ(result.error().code, Code::kCorrupt) << result.error().text;
    ASSERT_NE(result.error().text.find("delete this cache"), std::string::npos) << result.error().text;
  }
}

TEST(Cache, ThatWasNotClosedIsNotThere) {
  World world;
  base::Random random(5, "unfinished");
  {
    const auto writer = CacheWriter::Create(world.posix, world.Path("cache")).value();
    for (const Rows& rows : RandomBlocks(random)) ASSERT_TRUE(writer->Append(rows).ok());
  }
  EXPECT_TRUE(world.Names().empty());
}

TEST(Cache, IsTheOldOrTheNewOneWhicheverOperationFails) {
  World world;
  base::FaultyFiles faulty(world.posix);
  base::Random random(6, "faults");
  const auto old_blocks = RandomBlocks(random);
  auto new_blocks = RandomBlocks(random);
  while (new_blocks.size() < 2 || new_blocks.size() == old_blocks.size()) new_blocks = RandomBlocks(random);
  const std::string path = world.Path("cache");
  for (const bool for_ever : {false, true}) {
    int nth = 1;
    for (bool failed = true; failed; ++nth) {
      SCOPED_TRACE(Str("operation ", nth, for_ever ? " and all after it" : ""));
      ASSERT_TRUE(WriteCache(world.posix, path, old_blocks).ok());
      const std::string old_bytes = world.Read(path);
      faulty.FailAt(nth, for_ever);
      const auto result = WriteCache(faulty, path, new_blocks);
      failed = faulty.failures() > 0;
      EXPECT_EQ(result.ok(), !failed);
      EXPECT_EQ(world.Names(), std::vector<std::string>{"cache"}) << "no draft is left";
      const auto reader = CacheReader::Open(world.posix, path);
      ASSERT_TRUE(reader.ok()) << reader.error().text;
      if (world.Read(path) == old_bytes) continue;
      EXPECT_EQ(reader.value()->blocks(), new_blocks.size());
      EXPECT_TRUE(ReadThrough(world, path).ok());
    }
    EXPECT_GT(nth, 10);
  }
}

TEST(Cache, IsToldFromOtherFiles) {
  World world;
  EXPECT_FALSE(CacheReader::Is(world.posix, world.Write("text", "1 1:1\n-1 2:1\n")));
  EXPECT_FALSE(CacheReader::Is(world.posix, world.Write("empty", "")));
  EXPECT_FALSE(CacheReader::Is(world.posix, world.Path("nothing")));
  EXPECT_FALSE(CacheReader::Is(world.posix, "-"));
  EXPECT_EQ(CacheReader::Open(world.posix, world.Path("text")).error().code, Code::kCorrupt);
  EXPECT_EQ(CacheReader::Open(world.posix, world.Path("nothing")).error().code, Code::kNotFound);
}

TEST(Cache, EndsWithAnErrorAndNotForEverWhenABlockIsDamaged) {
  World world(3);
  std::vector<Rows> blocks(30);
  for (Rows& rows : blocks) {
    rows.Clear();
    for (int i = 0; i < 100; ++i) {
      rows.labels.Append(1);
      rows.samples.Append(0);
      rows.offsets.Append(0);
    }
  }
  ASSERT_TRUE(WriteCache(world.posix, world.Path("cache"), blocks).ok());
  std::string bytes = world.Read(world.Path("cache"));
  bytes[bytes.size() / 4] ^= 1;
  const auto reader = CacheReader::Open(world.posix, world.Write("cache", bytes)).value();
  const auto result = DriveInOrder(world.env().executor, *reader, [](Rows&) -> Result<void> { return {}; });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace freshet::data
