// Journals whose files were damaged, cut or lost.

#include "deploy/id_window.h"
#include "deploy/log/journal.h"
#include "deploy/log/journal_testing.h"

namespace freshet::deploy {
namespace {

// A journal of three segments with three observations each, the last of them not finished.
class DamagedJournal : public testing::Test {
 protected:
  static constexpr std::uint64_t kRows = 9;

  void SetUp() override {
    options_.segment_bytes = 150;
    options_.durability = Durability::kNone;
    {
      const auto journal = lab_.OpenJournal(options_).value();
      for (std::uint64_t n = 0; n < kRows; ++n) {
        Append(*journal, n);
        ASSERT_TRUE(journal->Commit().ok());
      }
      records_ = All(*journal);
    }
    paths_ = lab_.Segments();
    ASSERT_EQ(paths_.size(), 3u);
    files_ = lab_.disk.Snapshot();
    ASSERT_EQ(files_.size(), 5u);  // the last has no index yet
  }
  static void Append(Journal& journal, std::uint64_t n) {
    const std::string id = Str("id", n);
    journal.Append(RecordKind::kObservation, PackedRow(n, id, 1), IdWindow::HashOf(id), 1);
  }
  // As it was before the damage.
  void Restore() {
    lab_.disk.Restore(files_);
    lab_.lines.clear();
  }
  // What can be read is right, what cannot is reported, and the journal goes on with sequences that nobody had.
  void CheckHarmless() {
    auto journal = lab_.OpenJournal(options_);
    ASSERT_TRUE(journal.ok()) << journal.error().text;
    const auto found = All(*journal.value());
    for (const Kept& record : found) ASSERT_EQ(record, records_[record.sequence - 1]);
    for (std::uint64_t n = 0; n < kRows; ++n) {
      const auto labels = Labels(*journal.value(), {n});
      ASSERT_TRUE(labels.empty() || labels == std::vector{n});
      const bool there =
          std::any_of(found.begin(), found.end(), [&](const Kept& record) { return record.sequence == n + 1; });
      ASSERT_EQ(there, !labels.empty()) << n;
    }
    const bool lost = found.size() < kRows;
    ASSERT_EQ(lost, !journal.value()->damages().empty() || lab_.Said("journal cut"));

    const std::uint64_t next = journal.value()->next_sequence();
    ASSERT_GT(next, found.empty() ? 0 : found.back().sequence);
    Append(*journal.value(), 77);
    ASSERT_TRUE(journal.value()->Commit().ok());
    journal.value().reset();
    const auto after = All(*lab_.OpenJournal(options_).value());
    ASSERT_EQ(after.size(), found.size() + 1);
    ASSERT_EQ(after.back(), (Kept{next, RecordKind::kObservation, PackedRow(77, "id77", 1)}));
  }

  Lab lab_;
  JournalOptions options_;
  std::vector<Kept> records_;
  std::vector<std::string> paths_;
  MemoryDisk::Contents files_;
};

TEST_F(DamagedJournal, SurvivesAFlippedBitAnywhere) {
  for (const auto& [path, bytes] : files_) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      SCOPED_TRACE(Str(path, " byte ", at));
      Restore();
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
      lab_.disk.Write(path, flipped);
      ASSERT_NO_FATAL_FAILURE(CheckHarmless());
    }
  }
}

TEST_F(DamagedJournal, IsCutWhereACrashLeftHalfARecord) {
  const std::string whole = lab_.disk.Read(paths_.back());
  const std::size_t last = whole.size() - (kRecordHeader + records_.back().payload.size());
  for (std::size_t size = last; size < whole.size(); ++size) {
    SCOPED_TRACE(Str(size, " bytes"));
    Restore();
    lab_.disk.Write(paths_.back(), whole.substr(0, size));
    {
      const auto journal = lab_.OpenJournal(options_).value();
      ASSERT_EQ(All(*journal), std::vector(records_.begin(), records_.end() - 1));
      ASSERT_TRUE(journal->damages().empty());
      ASSERT_EQ(Labels(*journal, UpTo(kRows)), UpTo(kRows - 1));
      Append(*journal, kRows - 1);
      ASSERT_TRUE(journal->Commit().ok());
    }
    ASSERT_EQ(All(*lab_.OpenJournal(options_).value()), records_);
  }
}

TEST_F(DamagedJournal, ForgetsASegmentThatACrashWasBeginning) {
  const std::string path = "/journal/00000000000000000010.log";
  const std::string head = SegmentHead{10, 9}.Encode();
  for (std::size_t size = 0; size <= head.size(); ++size) {
    SCOPED_TRACE(size);
    Restore();
    lab_.disk.Write(path, head.substr(0, size));
    {
      const auto journal = lab_.OpenJournal(options_).value();
      ASSERT_TRUE(journal->damages().empty());
      ASSERT_EQ(All(*journal), records_);
      Append(*journal, 9);
      ASSERT_TRUE(journal->Commit().ok());
    }
    const auto journal = lab_.OpenJournal(options_).value();
    ASSERT_EQ(All(*journal).size(), 10u);
    ASSERT_EQ(Labels(*journal, UpTo(10)), UpTo(10));
  }
}

TEST_F(DamagedJournal, SurvivesTheLossOfAnyFile) {
  for (const auto& [path, bytes] : files_) {
    SCOPED_TRACE(path);
    Restore();
    (void)lab_.disk.Remove(path);
    if (path == paths_.front() || path == paths_.back()) {  // nothing in the others tells that it ever was
      const auto journal = lab_.OpenJournal(options_).value();
      EXPECT_EQ(All(*journal).size(), 6u);
    } else {
      ASSERT_NO_FATAL_FAILURE(CheckHarmless());
    }
  }
}

TEST_F(DamagedJournal, NeitherReadsNorOverwritesASegmentWithADamagedHead) {
  for (const std::string& path : paths_) {
    SCOPED_TRACE(path);
    Restore();
    std::string bytes = lab_.disk.Read(path);
    bytes[3] ^= 1;
    lab_.disk.Write(path, bytes);
    ASSERT_NO_FATAL_FAILURE(CheckHarmless());
    EXPECT_EQ(lab_.disk.Read(path), bytes);
    EXPECT_EQ(All(*lab_.OpenJournal(options_).value()).size(), 7u);
  }
}

TEST_F(DamagedJournal, ReportsDamageThatReadingFindsLater) {
  std::string bytes = lab_.disk.Read(paths_[1]);
  bytes[SegmentHead::kBytes + kRecordHeader] ^= 1;
  lab_.disk.Write(paths_[1], bytes);
  const auto journal = lab_.OpenJournal(options_).value();
  EXPECT_TRUE(journal->damages().empty());  // the index was enough to open it
  EXPECT_EQ(All(*journal).size(), kRows - 1);
  EXPECT_EQ(All(*journal).size(), kRows - 1);
  ASSERT_EQ(journal->damages().size(), 1u);
  EXPECT_EQ(journal->damages()[0].first_lost, 4u);
  EXPECT_EQ(journal->damages()[0].lost, 1u);
}

TEST_F(DamagedJournal, MakesALostIndexAnew) {
  (void)lab_.disk.Remove(paths_[0] + ".index");
  lab_.disk.Write(paths_[1] + ".index", "nonsense");
  { EXPECT_TRUE(lab_.OpenJournal(options_).ok()); }
  EXPECT_EQ(lab_.disk.Read(paths_[0] + ".index"), files_.at(paths_[0] + ".index"));
  EXPECT_EQ(lab_.disk.Read(paths_[1] + ".index"), files_.at(paths_[1] + ".index"));
}

}  // namespace
}  // namespace freshet::deploy
