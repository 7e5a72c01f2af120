// Data sets that join a journal's history.

#include <atomic>
#include <thread>

#include "base/random.h"
#include "deploy/log/journal.h"
#include "deploy/log/journal_testing.h"

namespace freshet::deploy {
namespace {

// Rows first … end-1 as a data set; returns its path.
std::string WriteDataset(Lab& lab, std::uint64_t first, std::uint64_t end) {
  const std::string path = Str("/set", first, "-", end);
  const auto writer = DatasetWriter::Create(lab.files, path).value();
  data::Rows rows;
  rows.ClearRows();
  Slip slip;
  for (std::uint64_t n = first; n < end; ++n) EXPECT_TRUE(UnpackRow(PackedRow(n), rows, slip).ok());
  EXPECT_TRUE(writer->Append(rows.batch()).ok());
  EXPECT_EQ(writer->Close().value(), end - first);
  return path;
}

// A deployment's way to use a journal: a record names each data set, and after a restart all are told again.
class Sets {
 public:
  explicit Sets(Lab& lab, JournalOptions options) : lab_(lab), options_(options) { Open(); }
  Journal& journal() { return *journal_; }
  void Open() {
    journal_.reset();
    journal_ = lab_.OpenJournal(options_).value();
    for (const auto& [path, first, rows] : sets_) ASSERT_TRUE(journal_->Adopt(path, first, rows).ok());
  }
  void Observe() {
    journal_->Append(RecordKind::kObservation, PackedRow(journal_->next_number()), 0, 0);
    ASSERT_TRUE(journal_->Commit().ok());
  }
  void Join(std::uint64_t rows) {
    const std::uint64_t first = journal_->next_number();
    const std::string path = WriteDataset(lab_, first, first + rows);
    journal_->Append(RecordKind::kDataset, "{}", 0, 0);
    ASSERT_TRUE(journal_->Commit().ok());
    ASSERT_TRUE(journal_->Adopt(path, first, rows).ok());
    if (rows > 0) sets_.emplace_back(path, first, rows);
  }
  void Check() {
    const std::uint64_t end = journal_->next_number();
    ASSERT_EQ(journal_->end(), end);
    ASSERT_EQ(Labels(*journal_, UpTo(end + 2)), UpTo(end));
  }

 private:
  Lab& lab_;
  const JournalOptions options_;
  std::unique_ptr<Journal> journal_;
  std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>> sets_;
};

TEST(JournalDatasets, HaveTheNumbersBetweenTheObservationsAroundThem) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "sets");
    Lab lab;
    JournalOptions options;
    options.segment_bytes = 100 + random.Below(400);
    Sets sets(lab, options);
    for (int step = 0; step < 30; ++step) {
      switch (random.Below(6)) {
        case 0:
          ASSERT_NO_FATAL_FAILURE(sets.Join(random.Below(4)));
          break;
        case 1:
          ASSERT_NO_FATAL_FAILURE(sets.Open());
          break;
        default:
          ASSERT_NO_FATAL_FAILURE(sets.Observe());
      }
      ASSERT_NO_FATAL_FAILURE(sets.Check());
    }
  }
}

TEST(JournalDatasets, JoinAlsoWhileTheDiskIsFull) {
  Lab lab;
  JournalOptions options;
  const auto journal = lab.OpenJournal(options).value();
  for (std::uint64_t n = 0; n < 3; ++n) journal->Append(RecordKind::kObservation, PackedRow(n), 0, 0);
  ASSERT_TRUE(journal->Commit().ok());
  const std::string path = WriteDataset(lab, 3, 8);
  lab.files.FailAt(1, true);
  EXPECT_TRUE(journal->Adopt(path, 3, 5).ok());
  journal->Append(RecordKind::kObservation, PackedRow(8), 0, 0);
  EXPECT_FALSE(journal->Commit().ok());
  EXPECT_EQ(Labels(*journal, UpTo(9)), UpTo(8));
  lab.files.FailAt(0);
  journal->Append(RecordKind::kObservation, PackedRow(8), 0, 0);
  EXPECT_TRUE(journal->Commit().ok());
  EXPECT_EQ(Labels(*journal, UpTo(9)), UpTo(9));
}

TEST(JournalDatasets, AreRefusedWhenTheyAreNotWhatWasRegistered) {
  Lab lab;
  const auto journal = lab.OpenJournal().value();
  const std::string path = WriteDataset(lab, 0, 5);
  EXPECT_EQ(journal->Adopt(path, 0, 6).error().code, Code::kCorrupt);
  EXPECT_EQ(journal->Adopt(path + "x", 0, 6).error().code, Code::kNotFound);
  EXPECT_EQ(journal->end(), 0u);
  EXPECT_TRUE(journal->Adopt(path, 0, 5).ok());
}

TEST(JournalThreads, ReadersSeeWholeRowsWhileItGrowsAndForgets) {
  constexpr std::uint64_t kRows = 20'000;
  Lab lab;
  JournalOptions options;
  options.durability = Durability::kNone;
  options.segment_bytes = 2000;
  options.retain_bytes = 20'000;
  const auto journal = lab.OpenJournal(options).value();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> rows_read{0};
  for (std::uint64_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      base::Random random(t, "reader");
      do {
        const std::uint64_t first = journal->first(), end = journal->end();
        std::vector<std::uint64_t> numbers;
        for (int i = 0; i < 10 && end > first; ++i) numbers.push_back(first + random.Below(end - first));
        const auto labels = Labels(*journal, numbers);
        for (std::size_t i = 0, n = 0; i < labels.size(); ++i, ++n) {
          while (n < numbers.size() && numbers[n] != labels[i]) ++n;  // those forgotten meanwhile are left out
          if (n == numbers.size()) ADD_FAILURE() << "row " << labels[i] << " where none was asked for";
        }
        rows_read += labels.size();
      } while (!stop);
    });
  threads.emplace_back([&] {
    do {
      EXPECT_TRUE(journal->Retain(journal->end_sequence(), 0).ok());
      EXPECT_TRUE(journal->Sync().ok());
      std::uint64_t last = 0;
      EXPECT_TRUE(journal
                      ->Scan(journal->end_sequence() / 2,
                             [&](const Record& record) -> Result<void> {
                               if (last != 0 && record.sequence <= last) ADD_FAILURE() << "out of order";
                               last = record.sequence;
                               return {};
                             })
                      .ok());
    } while (!stop);
  });
  for (std::uint64_t n = 0; n < kRows; ++n) {
    journal->Append(RecordKind::kObservation, PackedRow(n), 0, 0);
    if (n % 7 == 0) {
      ASSERT_TRUE(journal->Commit().ok());
    }
  }
  ASSERT_TRUE(journal->Commit().ok());
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(rows_read, 0u);
  EXPECT_TRUE(journal->damages().empty());
  EXPECT_EQ(Labels(*journal, UpTo(kRows)), UpTo(kRows, journal->first()));
}

}  // namespace
}  // namespace freshet::deploy
