// What passes for a record, and which formats are read.

#include <cstring>

#include "base/crc32c.h"
#include "deploy/log/journal.h"
#include "deploy/log/journal_testing.h"

namespace freshet::deploy {
namespace {

constexpr std::uint64_t kSalt = 0x0123456789abcdef;

// An id that holds the bytes of a record, as a client without the salt can make them.
std::string PlantedId(std::uint64_t sequence) {
  std::string id;
  AppendRecord(id, sequence, RecordKind::kRollBack, R"({"version":0,"relearn":false})");
  return id;
}

TEST(JournalSalt, RecordsPlantedInAnIdAreNotFoundAfterDamage) {
  Lab lab;
  {
    const auto journal = lab.OpenJournal().value();
    for (std::uint64_t n = 0; n < 5; ++n)
      journal->Append(RecordKind::kObservation, PackedRow(n, PlantedId(n + 1)), 1 + n, 0);
    ASSERT_TRUE(journal->Commit().ok());
  }
  const std::string path = lab.Segments().at(0);
  std::string bytes = lab.disk.Read(path);
  const std::size_t record = kRecordHeader + PackedRow(0, PlantedId(1)).size();
  for (const std::uint64_t n : {1, 3}) bytes[SegmentHead::kSaltedBytes + n * record + 4] ^= 0x40;  // the size
  lab.disk.Write(path, bytes);
  const auto journal = lab.OpenJournal().value();
  std::vector<std::uint64_t> sequences;
  for (const Kept& kept : All(*journal)) {
    EXPECT_EQ(kept.kind, RecordKind::kObservation);
    sequences.push_back(kept.sequence);
  }
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{1, 3, 5}));
  EXPECT_EQ(journal->damaged_places(), 2u);
}

TEST(JournalSalt, ARecordIsNoneUnderAnotherSalt) {
  std::string bytes;
  AppendRecord(bytes, 7, RecordKind::kPin, "{}", kSalt);
  EXPECT_EQ(ParseRecord(bytes, kSalt)->sequence, 7u);
  EXPECT_FALSE(ParseRecord(bytes));
  EXPECT_FALSE(ParseRecord(bytes, kSalt ^ 1));                       // the checksum tells
  EXPECT_FALSE(ParseRecord(bytes, kSalt ^ std::uint64_t{1} << 63));  // the mark does
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(ParseRecord(flipped, kSalt)) << bit;
  }
}

TEST(JournalSalt, EveryJournalHasItsOwnAndKeepsIt) {
  const auto salts = [](Lab& lab) {
    std::vector<std::uint64_t> all;
    for (const std::string& path : lab.Segments())
      all.push_back(SegmentHead::Decode(lab.disk.Read(path), path).value().salt);
    return all;
  };
  Lab one, other;
  JournalOptions options;
  options.segment_bytes = 100;
  for (Lab* const lab : {&one, &other})
    for (int start = 0; start < 3; ++start) {
      const auto journal = lab->OpenJournal(options).value();
      for (std::uint64_t n = 0; n < 4; ++n) {
        journal->Append(RecordKind::kObservation, PackedRow(n), 0, 0);
        ASSERT_TRUE(journal->Commit().ok());
      }
    }
  ASSERT_GT(salts(one).size(), 3u);
  for (const std::uint64_t salt : salts(one)) EXPECT_EQ(salt, salts(one)[0]);
  EXPECT_NE(salts(one)[0], 0u);
  EXPECT_NE(salts(one)[0], salts(other)[0]);
}

TEST(JournalFormats, ASegmentOfAnEarlierProgramIsReadAndFinishedAsItIs) {
  Lab lab;
  std::string old = SegmentHead{1, 0}.Encode();
  ASSERT_EQ(old.size(), 32u);
  for (std::uint64_t n = 0; n < 3; ++n) AppendRecord(old, n + 1, RecordKind::kObservation, PackedRow(n));
  lab.disk.Write("/journal/00000000000000000001.log", old);
  for (std::uint64_t n = 3; n < 6; ++n) {
    const auto journal = lab.OpenJournal().value();
    EXPECT_EQ(Labels(*journal, UpTo(9)), UpTo(n));
    journal->Append(RecordKind::kObservation, PackedRow(n), 0, 0);
    ASSERT_TRUE(journal->Commit().ok());
  }
  EXPECT_EQ(lab.disk.Read("/journal/00000000000000000001.log"), old);
  EXPECT_EQ(lab.Segments().size(), 2u);
  const auto journal = lab.OpenJournal().value();
  EXPECT_EQ(All(*journal).size(), 6u);
  EXPECT_TRUE(journal->damages().empty());
}

// A head of this version with a checksum that fits, as a later program will write it.
std::string HeadOfVersion(std::uint32_t version) {
  std::string head = SegmentHead{1, 0, kSalt}.Encode();
  std::memcpy(head.data() + 8, &version, sizeof version);
  const std::uint32_t crc = base::Crc32cOf(std::span(head).subspan(16), base::Crc32cOf(std::span(head).subspan(8, 4)));
  std::memcpy(head.data() + 12, &crc, sizeof crc);
  return head;
}

TEST(JournalFormats, ANewerSegmentIsRefusedAndLeftAlone) {
  for (const std::uint32_t version : {3u, 4u, 1'000u}) {
    Lab lab;
    lab.disk.Write("/journal/00000000000000000001.log", HeadOfVersion(version) + "whatever stands there");
    const auto before = lab.disk.Snapshot();
    const auto opened = lab.OpenJournal();
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, Code::kInvalid);
    EXPECT_NE(opened.error().text.find(Str("version ", version)), std::string::npos) << opened.error().text;
    EXPECT_EQ(lab.disk.Snapshot(), before);
  }
  EXPECT_TRUE(SegmentHead::Decode(HeadOfVersion(2), "s").ok());
  EXPECT_EQ(SegmentHead::Decode(HeadOfVersion(0), "s").error().code, Code::kCorrupt);
}

TEST(JournalFormats, ARecordOfAKindThatIsNotKnownIsRefusedNotPassedOver) {
  for (const std::uint64_t salt : {std::uint64_t{0}, kSalt}) {
    Lab lab;
    std::string bytes = SegmentHead{1, 0, salt}.Encode();
    AppendRecord(bytes, 1, RecordKind::kObservation, PackedRow(0), salt);
    AppendRecord(bytes, 2, static_cast<RecordKind>(200), "{}", salt);
    AppendRecord(bytes, 3, RecordKind::kObservation, PackedRow(1), salt);
    lab.disk.Write("/journal/00000000000000000001.log", bytes);
    const auto opened = lab.OpenJournal();
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, Code::kInvalid);
    EXPECT_NE(opened.error().text.find("record 2 is of kind 200"), std::string::npos) << opened.error().text;
  }
}

TEST(JournalFormats, ASegmentUnderAnothersNameIsPassedOver) {
  Lab lab;
  JournalOptions options;
  options.segment_bytes = 100;
  {
    const auto journal = lab.OpenJournal(options).value();
    for (std::uint64_t n = 0; n < 4; ++n) {
      journal->Append(RecordKind::kObservation, PackedRow(n), 0, 0);
      ASSERT_TRUE(journal->Commit().ok());
    }
  }
  const auto paths = lab.Segments();
  ASSERT_EQ(paths.size(), 2u);
  lab.disk.Write("/journal/00000000000000000004.log", lab.disk.Read(paths[0]));
  const auto journal = lab.OpenJournal(options).value();
  EXPECT_EQ(All(*journal).size(), 4u);
  EXPECT_TRUE(lab.Said("not what its name says"));
}

}  // namespace
}  // namespace freshet::deploy
