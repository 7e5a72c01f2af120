#include "deploy/log/record.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace freshet::deploy {
namespace {

std::string RandomText(base::Random& random) {
  std::string text(random.Below(20), '\0');
  for (char& c : text) c = static_cast<char>(random.Below(256));
  return text;
}

TEST(Record, ComesBackAsItWas) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    base::Random random(seed, "record");
    std::string bytes = RandomText(random);
    const std::size_t before = bytes.size();
    const std::string payload = RandomText(random);
    const auto kind = static_cast<RecordKind>(1 + random.Below(10));
    AppendRecord(bytes, seed * 1'000'000'007, kind, payload);
    EXPECT_EQ(bytes.size(), before + kRecordHeader + payload.size());
    const auto record = ParseRecord(std::string_view(bytes + "and more").substr(before));
    ASSERT_TRUE(record);
    EXPECT_EQ(record->sequence, seed * 1'000'000'007);
    EXPECT_EQ(record->kind, kind);
    EXPECT_EQ(Name(record->kind), Name(kind));
  }
}

TEST(Record, IsNoneWhenAnyBitIsFlippedOrAnyByteIsMissing) {
  std::string bytes;
  AppendRecord(bytes, 7, RecordKind::kObservation, "some payload");
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(ParseRecord(std::string_view(bytes).substr(0, size))) << size;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(ParseRecord(flipped)) << bit;
  }
}

// One row of any form, with its slip.
struct Packed {
  data::Rows rows;
  Slip slip;
  std::string bytes;

  explicit Packed(base::Random& random) {
    const bool dense = random.Below(2) == 0;
    const std::uint64_t entries = random.Below(5) + (dense ? 1 : 0);
    rows.width = dense ? entries : 0;
    rows.ClearRows();
    rows.labels.Append(static_cast<float>(random.Normal()));
    if (random.Below(2) == 0) rows.weights.Append(static_cast<float>(random.Uniform()));
    for (std::uint64_t e = 0; e < entries; ++e) {
      if (!dense) rows.indices.Append(static_cast<std::uint32_t>(random.Next()));
      (dense ? rows.dense : rows.values).Append(static_cast<float>(random.Normal()));
    }
    if (!dense) rows.offsets.Append(static_cast<std::uint32_t>(entries));
    slip.time = static_cast<std::int64_t>(random.Next());
    if (random.Below(2) == 0) slip.id = "i" + RandomText(random);
    if (random.Below(2) == 0) slip.owner = "o" + RandomText(random);
    for (std::uint64_t s = random.Below(3); s > 0; --s) slip.scores.push_back(static_cast<float>(random.Normal()));
    for (std::uint64_t s = random.Below(3); s > 0 && entries > 0; --s)
      slip.names.push_back({static_cast<std::uint32_t>(random.Below(entries)),
                            static_cast<std::uint32_t>(random.Below(9)), RandomText(random)});
    PackRow(rows.batch(), 0, slip, bytes);
  }
};

bool operator==(const data::Buffer<float>& a, const data::Buffer<float>& b) {
  return std::equal(a.span().begin(), a.span().end(), b.span().begin(), b.span().end());
}

TEST(PackedRow, ComesBackAsItWas) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "row");
    const Packed packed(random);
    data::Rows rows;
    rows.width = packed.rows.width;
    rows.ClearRows();
    Slip slip;
    ASSERT_TRUE(UnpackRow(packed.bytes, rows, slip).ok());
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_TRUE(rows.labels == packed.rows.labels && rows.weights == packed.rows.weights);
    EXPECT_TRUE(rows.dense == packed.rows.dense && rows.values == packed.rows.values);
    EXPECT_TRUE(std::equal(rows.indices.span().begin(), rows.indices.span().end(), packed.rows.indices.span().begin()));
    EXPECT_EQ(rows.times[0], packed.slip.time);
    EXPECT_EQ(slip.time, packed.slip.time);
    EXPECT_EQ(slip.id, packed.slip.id);
    EXPECT_EQ(slip.owner, packed.slip.owner);
    EXPECT_EQ(slip.scores, packed.slip.scores);
    ASSERT_EQ(slip.names.size(), packed.slip.names.size());
    for (std::size_t i = 0; i < slip.names.size(); ++i) {
      EXPECT_EQ(slip.names[i].entry, packed.slip.names[i].entry);
      EXPECT_EQ(slip.names[i].space, packed.slip.names[i].space);
      EXPECT_EQ(slip.names[i].name, packed.slip.names[i].name);
    }
    Slip peeked;
    PeekSlip(packed.bytes, peeked);
    EXPECT_EQ(peeked.time, slip.time);
    EXPECT_EQ(peeked.id, slip.id);
    EXPECT_EQ(peeked.owner, slip.owner);
  }
}

TEST(PackedRow, OfOtherBytesIsRefusedAndLeavesTheRowsAsTheyWere) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "row");
    const Packed packed(random);
    data::Rows rows;
    rows.width = packed.rows.width;
    rows.ClearRows();
    Slip slip;
    for (std::size_t size = 0; size < packed.bytes.size(); ++size) {
      ASSERT_EQ(UnpackRow(std::string_view(packed.bytes).substr(0, size), rows, slip).error().code, Code::kCorrupt);
      ASSERT_EQ(rows.size() + rows.indices.size() + rows.values.size() + rows.dense.size() + rows.weights.size(), 0u);
    }
    ASSERT_FALSE(UnpackRow(packed.bytes + "x", rows, slip).ok());
    for (int i = 0; i < 50; ++i) {  // anything may come out, but nothing bad may happen
      std::string bytes = packed.bytes;
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Next());
      PeekSlip(bytes, slip);
      if (UnpackRow(bytes, rows, slip).ok()) {
        for (const data::NewName& name : slip.names)
          ASSERT_LT(name.entry, rows.width > 0 ? rows.width : rows.offsets.back() - rows.offsets[rows.size() - 1]);
      }
    }
  }
}

TEST(PackedRow, OfAnotherFormIsRefused) {
  data::Rows dense, sparse, row;
  dense.width = 2;
  dense.ClearRows();
  sparse.ClearRows();
  row.width = 3;
  row.ClearRows();
  row.labels.Append(1);
  for (int i = 0; i < 3; ++i) row.dense.Append(1);
  std::string bytes;
  PackRow(row.batch(), 0, {}, bytes);
  Slip slip;
  EXPECT_FALSE(UnpackRow(bytes, dense, slip).ok());
  EXPECT_FALSE(UnpackRow(bytes, sparse, slip).ok());
}

TEST(PackedRow, WithAWeightMayFollowThoseWithout) {
  data::Rows rows;
  rows.ClearRows();
  Slip slip;
  for (int i = 0; i < 4; ++i) {
    data::Rows one;
    one.ClearRows();
    one.labels.Append(static_cast<float>(i));
    if (i % 2 == 1) one.weights.Append(static_cast<float>(10 * i));
    one.offsets.Append(0);
    std::string bytes;
    PackRow(one.batch(), 0, {}, bytes);
    ASSERT_TRUE(UnpackRow(bytes, rows, slip).ok());
  }
  ASSERT_EQ(rows.weights.size(), 4u);
  EXPECT_EQ(std::vector(rows.weights.span().begin(), rows.weights.span().end()), (std::vector<float>{1, 10, 1, 30}));
}

TEST(PackedNames, ComeBackAsTheyWereOrAreRefused) {
  const std::vector<data::NewName> names = {{0, 1, "ann"}, {7, 0, ""}, {1, 2, std::string("\0x", 2)}};
  std::string bytes;
  PackNames(names, bytes);
  const auto back = UnpackNames(bytes).value();
  ASSERT_EQ(back.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(back[i].entry, names[i].entry);
    EXPECT_EQ(back[i].space, names[i].space);
    EXPECT_EQ(back[i].name, names[i].name);
  }
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(UnpackNames(std::string_view(bytes).substr(0, size)).ok());
  EXPECT_FALSE(UnpackNames(bytes + "x").ok());
}

TEST(PackedRow, IsRefusedWhenALaterProgramAddedToIt) {
  base::Random random(1, "row");
  Packed packed(random);
  for (const int flag : {64, 128}) {
    std::string bytes = packed.bytes;
    bytes[0] = static_cast<char>(bytes[0] | flag);
    data::Rows rows;
    rows.width = packed.rows.width;
    rows.ClearRows();
    Slip slip;
    EXPECT_EQ(UnpackRow(bytes, rows, slip).error().code, Code::kInvalid);
  }
}

}  // namespace
}  // namespace freshet::deploy
