#include "deploy/log/segment.h"

#include <cstring>

#include "base/random.h"
#include "deploy/log/journal_testing.h"

namespace freshet::deploy {
namespace {

struct Scanned {
  std::vector<std::uint64_t> sequences;
  std::vector<Damage> damages;
  std::uint64_t end = 0;
};
Scanned ScanAll(const Segment& segment, std::uint64_t from = 0, std::uint64_t to = 0) {
  Scanned scanned;
  scanned.end = segment
                    .Scan(
                        from, to,
                        [&](const Record& record, std::uint64_t) -> Result<void> {
                          scanned.sequences.push_back(record.sequence);
                          return {};
                        },
                        &scanned.damages)
                    .value();
  return scanned;
}

// A segment of records 5 … 14 with payloads of these bytes each.
std::string Bytes(std::size_t payload_bytes = 10) {
  std::string bytes = SegmentHead{5, 3}.Encode();
  for (std::uint64_t sequence = 5; sequence < 15; ++sequence)
    AppendRecord(bytes, sequence, RecordKind::kDrift, std::string(payload_bytes, 'p'));
  return bytes;
}
std::unique_ptr<Segment> Opened(Lab& lab, const std::string& bytes) {
  lab.disk.Write("/s", bytes);
  return Segment::Open(lab.files, "/s").value();
}

TEST(SegmentHead, IsRefusedWhenAnyBitOfItIsFlipped) {
  const std::string bytes = SegmentHead{5, 3}.Encode();
  ASSERT_EQ(bytes.size(), SegmentHead::kBytes);
  const SegmentHead head = SegmentHead::Decode(bytes, "s").value();
  EXPECT_EQ(head.first_sequence, 5u);
  EXPECT_EQ(head.first_number, 3u);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto decoded = SegmentHead::Decode(flipped, "s");
    if (bit == 64) continue;  // version 0
    EXPECT_FALSE(decoded.ok()) << bit;
  }
  EXPECT_FALSE(SegmentHead::Decode(bytes.substr(0, 31), "s").ok());
}

TEST(Segment, VisitsItsRecordsInOrder) {
  Lab lab;
  const auto segment = Opened(lab, Bytes());
  Scanned all = ScanAll(*segment);
  EXPECT_EQ(all.sequences, UpTo(15, 5));
  EXPECT_EQ(all.end, Bytes().size());
  EXPECT_TRUE(all.damages.empty());
  const std::uint64_t third = SegmentHead::kBytes + 2 * (kRecordHeader + 10);
  EXPECT_EQ(ScanAll(*segment, 0, third).sequences, UpTo(7, 5));
  EXPECT_EQ(ScanAll(*segment, third).sequences, UpTo(15, 7));
}

TEST(Segment, StopsWhenItsVisitorFails) {
  Lab lab;
  int visits = 0;
  const auto result = Opened(lab, Bytes())
                          ->Scan(
                              0, 0,
                              [&](const Record&, std::uint64_t) -> Result<void> {
                                if (++visits == 3) return Error{Code::kStopped, "enough"};
                                return {};
                              },
                              nullptr);
  EXPECT_EQ(result.error().code, Code::kStopped);
  EXPECT_EQ(visits, 3);
}

TEST(Segment, PassesOverGarbageAndSaysWhatIsMissing) {
  base::Random random(1, "garbage");
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    Lab lab;
    std::string bytes = Bytes();
    const std::size_t record = kRecordHeader + 10;
    const std::uint64_t first = random.Below(9), count = 1 + random.Below(9 - first);
    for (std::size_t at = 0; at < count * record; ++at)
      bytes[SegmentHead::kBytes + first * record + at] = static_cast<char>(random.Below(4));
    const Scanned all = ScanAll(*Opened(lab, bytes));
    auto expected = UpTo(15, 5);
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(first),
                   expected.begin() + static_cast<std::ptrdiff_t>(first + count));
    ASSERT_EQ(all.sequences, expected);
    ASSERT_EQ(all.damages.size(), 1u);
    ASSERT_EQ(all.damages[0].offset, SegmentHead::kBytes + first * record);
    ASSERT_EQ(all.damages[0].bytes, count * record);
    ASSERT_EQ(all.damages[0].first_lost, 5 + first);
    ASSERT_EQ(all.damages[0].lost, count);
  }
}

TEST(Segment, BelievesNoRecordOfAnEarlierLifeOfTheDisk) {
  Lab lab;
  std::string bytes = SegmentHead{5, 3}.Encode();
  AppendRecord(bytes, 5, RecordKind::kDrift, "a");
  AppendRecord(bytes, 3, RecordKind::kDrift, "old");
  AppendRecord(bytes, 900, RecordKind::kDrift, "from somewhere else");  // there was no room for so many between
  AppendRecord(bytes, 6, RecordKind::kDrift, "b");
  const Scanned all = ScanAll(*Opened(lab, bytes));
  EXPECT_EQ(all.sequences, UpTo(7, 5));
  EXPECT_EQ(all.damages.size(), 1u);
}

TEST(Segment, IsScannedInLittleTimeAndMemoryWhateverSizesItClaims) {
  Lab lab;
  std::string bytes = SegmentHead{5, 3}.Encode();
  std::string header(kRecordHeader, '\0');
  const std::uint32_t size = kMostPayload, kind = 1;
  std::memcpy(header.data() + 4, &size, 4);
  std::memcpy(header.data() + 16, &kind, 4);
  for (std::uint64_t sequence = 5; sequence < 3000; ++sequence) {
    std::memcpy(header.data() + 8, &sequence, 8);
    bytes += header;
  }
  const auto segment = Opened(lab, bytes);
  lab.disk.bytes_read = 0;
  const Scanned all = ScanAll(*segment);
  EXPECT_TRUE(all.sequences.empty());
  EXPECT_LT(lab.disk.bytes_read, 20 * bytes.size());
}

TEST(Segment, ReadsRecordsLargerThanItsWindow) {
  Lab lab;
  const std::string bytes = Bytes(3 << 20);
  const auto segment = Opened(lab, bytes);
  EXPECT_EQ(ScanAll(*segment).sequences, UpTo(15, 5));
  std::string room;
  EXPECT_EQ(segment->ReadAt(SegmentHead::kBytes, room).value().payload.size(), 3u << 20);
}

TEST(Segment, ReadsOneRecordWhereThereIsOne) {
  Lab lab;
  const auto segment = Opened(lab, Bytes());
  std::string room;
  for (std::uint64_t n = 0; n < 10; ++n)
    EXPECT_EQ(segment->ReadAt(SegmentHead::kBytes + n * (kRecordHeader + 10), room).value().sequence, 5 + n);
  for (const std::uint64_t offset : {0, 1, 33, 331, 332, 100'000})
    EXPECT_EQ(segment->ReadAt(offset, room).error().code, Code::kCorrupt) << offset;
}

TEST(SegmentIndex, ComesBackAsItWasOrIsRefused) {
  Lab lab;
  const SegmentIndex index{15, 332, 77, {32, 62, 0, 122}, {1, ~0ull}};
  ASSERT_TRUE(index.Write(lab.files, "/s.index").ok());
  const SegmentIndex back = SegmentIndex::Read(lab.files, "/s.index").value();
  EXPECT_EQ(back.end_sequence, 15u);
  EXPECT_EQ(back.bytes, 332u);
  EXPECT_EQ(back.last_time, 77);
  EXPECT_EQ(back.offsets, index.offsets);
  EXPECT_EQ(back.ids, index.ids);
  const std::string bytes = lab.disk.Read("/s.index");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    lab.disk.Write("/s.index", bytes.substr(0, size));
    EXPECT_EQ(SegmentIndex::Read(lab.files, "/s.index").error().code, Code::kCorrupt) << size;
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (at >= 8 && at < 12) continue;  // the version
    std::string flipped = bytes;
    flipped[at] ^= 0x10;
    lab.disk.Write("/s.index", flipped);
    EXPECT_EQ(SegmentIndex::Read(lab.files, "/s.index").error().code, Code::kCorrupt) << at;
  }
  ASSERT_TRUE(SegmentIndex().Write(lab.files, "/empty.index").ok());
  EXPECT_TRUE(SegmentIndex::Read(lab.files, "/empty.index").value().offsets.empty());
  EXPECT_EQ(SegmentIndex::Read(lab.files, "/none.index").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace freshet::deploy
