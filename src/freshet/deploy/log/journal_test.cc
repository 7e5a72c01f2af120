#include "deploy/log/journal.h"

#include "base/random.h"
#include "base/scratch_testing.h"
#include "deploy/id_window.h"
#include "deploy/log/journal_testing.h"

namespace freshet::deploy {
namespace {

// What a journal should hold.
struct Expected {
  std::vector<Kept> records;
  std::uint64_t observations = 0;
  std::vector<std::uint64_t> ids;

  void Check(const Journal& journal, base::Random& random) const {
    ASSERT_EQ(All(journal), records);
    ASSERT_EQ(journal.end_sequence(), records.size() + 1);
    ASSERT_EQ(journal.end(), observations);
    const std::uint64_t from = 1 + random.Below(records.size() + 2);
    ASSERT_EQ(
        All(journal, from),
        std::vector(records.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(from - 1, records.size())),
                    records.end()));
    std::vector<std::uint64_t> numbers;
    for (int i = 0; i < 20 && observations > 0; ++i) numbers.push_back(random.Below(observations));
    ASSERT_EQ(Labels(journal, numbers), numbers);
    const std::size_t most = 1 + random.Below(30);
    const auto recent = journal.RecentIds(most);
    ASSERT_TRUE(recent.ok());
    const std::size_t skip = ids.size() - std::min(ids.size(), most);
    ASSERT_EQ(recent.value(), std::vector(ids.begin() + static_cast<std::ptrdiff_t>(skip), ids.end()));
  }
};

TEST(Journal, HoldsWhatWasCommittedInOrderOverSegmentsAndRestarts) {
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "journal");
    Lab lab;
    JournalOptions options;
    options.segment_bytes = 50 + random.Below(1000);
    options.durability = static_cast<Durability>(random.Below(3));
    auto journal = lab.OpenJournal(options).value();
    Expected expected;
    for (int commit = 0; commit < 40; ++commit) {
      for (std::uint64_t count = random.Below(6); count > 0; --count) {
        const bool observation = random.Below(4) > 0;
        const std::string id = observation && random.Below(2) == 0 ? Str("id ", expected.records.size()) : "";
        const RecordKind kind = observation ? RecordKind::kObservation : RecordKind::kDrift;
        const std::string payload =
            observation ? PackedRow(expected.observations, id) : std::string(random.Below(40), 'x');
        const std::uint64_t hash = id.empty() ? 0 : IdWindow::HashOf(id);
        const std::uint64_t sequence = journal->Append(kind, payload, hash, 5);
        ASSERT_EQ(sequence, expected.records.size() + 1);
        expected.records.push_back({sequence, kind, payload});
        if (observation) ++expected.observations;
        if (hash != 0) expected.ids.push_back(hash);
      }
      ASSERT_TRUE(journal->Commit().ok());
      if (random.Below(3) == 0) {
        journal.reset();
        journal = lab.OpenJournal(options).value();
      }
      ASSERT_NO_FATAL_FAILURE(expected.Check(*journal, random));
      ASSERT_TRUE(journal->damages().empty());
    }
  }
}

TEST(Journal, ShowsNothingThatWasNotCommitted) {
  Lab lab;
  const auto journal = lab.OpenJournal().value();
  journal->Append(RecordKind::kObservation, PackedRow(0), 0, 0);
  EXPECT_EQ(journal->next_sequence(), 2u);
  EXPECT_EQ(journal->end_sequence(), 1u);
  EXPECT_EQ(journal->end(), 0u);
  EXPECT_TRUE(All(*journal).empty());
  EXPECT_TRUE(Labels(*journal, {0}).empty());
  ASSERT_TRUE(journal->Commit().ok());
  EXPECT_EQ(Labels(*journal, {0}), UpTo(1));
}

TEST(Journal, IsForOneProcessAtATime) {
  Lab lab;
  const auto journal = lab.OpenJournal().value();
  EXPECT_EQ(lab.OpenJournal().error().code, Code::kBusy);
}

TEST(Journal, SaysWhyADirectoryCannotBeUsed) {
  Lab lab;
  JournalOptions options;
  lab.disk.Write("/file", "");
  options.directory = "/file/journal";
  const auto journal = lab.OpenJournal(options);
  EXPECT_EQ(journal.error().code, Code::kIo);
  EXPECT_NE(journal.error().text.find(options.directory), std::string::npos) << journal.error().text;
}

TEST(Journal, MayHaveADirectoryWhoseNameLooksLikeAPattern) {
  for (const char* const name : {"a[b]c", "what?", "all*", "back\\slash", "[", "*"}) {
    SCOPED_TRACE(name);
    Lab lab;
    base::ScratchDirectory scratch;
    base::PosixFiles files;
    const base::Env env{files, lab.clock, lab.log, lab.executor, lab.faults};
    JournalOptions options;
    options.directory = scratch / name;
    options.durability = Durability::kNone;
    for (std::uint64_t n = 0; n < 3; ++n) {
      const auto journal = Journal::Open(env, options).value();
      ASSERT_EQ(journal->end(), n);
      journal->Append(RecordKind::kObservation, PackedRow(n), 0, 0);
      ASSERT_TRUE(journal->Commit().ok());
    }
    EXPECT_EQ(Labels(*Journal::Open(env, options).value(), UpTo(3)), UpTo(3));
  }
}

// A journal of `segments` segments with 10 observations each.
JournalOptions FillSegments(Lab& lab, std::uint64_t segments) {
  JournalOptions options;
  options.segment_bytes = 1;  // each commit has a segment of its own
  options.durability = Durability::kNone;
  const auto journal = lab.OpenJournal(options).value();
  for (std::uint64_t n = 0; n < segments * 10; ++n) {
    const std::string id = Str("id", n);
    journal->Append(RecordKind::kObservation, PackedRow(n, id, static_cast<std::int64_t>(n)), IdWindow::HashOf(id),
                    static_cast<std::int64_t>(n));
    if (n % 10 == 9) {
      EXPECT_TRUE(journal->Commit().ok());
    }
  }
  return options;
}

TEST(Journal, ReadsOnlyTheRowsThatASampleNames) {
  Lab lab;
  const JournalOptions options = FillSegments(lab, 100);
  lab.disk.bytes_read = 0;
  const auto journal = lab.OpenJournal(options).value();
  EXPECT_LT(lab.disk.bytes_read, journal->bytes() / 2);  // heads, indexes and the last segment
  base::Random random(1, "sample");
  std::vector<std::uint64_t> sample;
  for (int i = 0; i < 50; ++i) sample.push_back(random.Below(1000));
  lab.disk.reads = 0;
  EXPECT_EQ(Labels(*journal, sample), sample);
  EXPECT_LE(lab.disk.reads, 2 * sample.size());
}

TEST(Journal, DropsOldSegmentsBySizeButNeverWhatIsNeededOrTheLast) {
  Lab lab;
  JournalOptions options = FillSegments(lab, 10);
  options.retain_bytes = 1;
  auto journal = lab.OpenJournal(options).value();
  EXPECT_EQ(journal->Retain(1, 0).value(), 0);
  EXPECT_EQ(journal->Retain(40, 0).value(), 3);  // record 40 is the last of the fourth
  EXPECT_EQ(journal->first(), 30u);
  EXPECT_EQ(journal->first_sequence(), 31u);
  EXPECT_EQ(Labels(*journal, UpTo(100)), UpTo(100, 30));
  EXPECT_EQ(journal->Retain(1000, 0).value(), 6);
  EXPECT_EQ(Labels(*journal, UpTo(100)), UpTo(100, 90));
  journal.reset();
  journal = lab.OpenJournal(options).value();
  EXPECT_TRUE(journal->damages().empty());
  EXPECT_EQ(journal->next_sequence(), 101u);
  EXPECT_EQ(Labels(*journal, UpTo(100)), UpTo(100, 90));
  EXPECT_EQ(All(*journal).size(), 10u);
}

TEST(Journal, DropsSegmentsByAge) {
  Lab lab;
  JournalOptions options = FillSegments(lab, 10);  // row n came at second n
  options.retain_seconds = 40;
  const auto journal = lab.OpenJournal(options).value();
  EXPECT_EQ(journal->Retain(1000, 49).value(), 0);
  EXPECT_EQ(journal->Retain(1000, 50).value(), 1);  // the newest of the first segment is 9: 41 seconds ago
  EXPECT_EQ(journal->Retain(35, 1000).value(), 2);
  EXPECT_EQ(journal->first(), 30u);
  EXPECT_EQ(journal->Retain(1000, 1000).value(), 6);
}

TEST(Journal, KnowsWhereRecordsFromATimeOnCanBe) {
  Lab lab;
  JournalOptions options;
  options.segment_bytes = 1;
  auto journal = lab.OpenJournal(options).value();
  const auto commit = [&](RecordKind kind, std::int64_t time) {
    journal->Append(kind, kind == RecordKind::kDrift ? "{}" : PackedRow(0, "a", time), 0, time);
    ASSERT_TRUE(journal->Commit().ok());
  };
  commit(RecordKind::kObservation, 10);
  commit(RecordKind::kObservation, 20);
  commit(RecordKind::kPrediction, 30);
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    EXPECT_EQ(journal->SequenceSince(5), 1u);
    EXPECT_EQ(journal->SequenceSince(11), 2u);
    EXPECT_EQ(journal->SequenceSince(21), 3u);  // predictions count
    journal.reset();
    if (round == 1)  // made anew, they say the same
      for (const std::string& path : lab.Segments()) (void)lab.disk.Remove(path + ".index");
    journal = lab.OpenJournal(options).value();
  }
}

TEST(Journal, LeavesOutDiscardedRows) {
  Lab lab;
  const JournalOptions options = FillSegments(lab, 3);
  const auto journal = lab.OpenJournal(options).value();
  journal->Discard(6, 25);  // sequences are one more than numbers
  std::vector<std::uint64_t> expected = UpTo(5);
  for (const std::uint64_t n : UpTo(30, 25)) expected.push_back(n);
  EXPECT_EQ(Labels(*journal, UpTo(30)), expected);
  EXPECT_EQ(All(*journal).size(), 30u);  // they stay in the log
}

TEST(Journal, GoesOnAfterWhatOthersRememberOfAnEndThatWasLost) {
  Lab lab;
  JournalOptions options;
  auto journal = lab.OpenJournal(options).value();
  const auto commit = [&](std::uint64_t n) {
    journal->Append(RecordKind::kObservation, PackedRow(n), 0, 0);
    ASSERT_TRUE(journal->Commit().ok());
  };
  for (std::uint64_t n = 0; n < 5; ++n) commit(n);
  journal->SkipTo(3, 2);  // behind it: nothing happens
  EXPECT_EQ(journal->next_sequence(), 6u);
  journal->SkipTo(11, 8);
  EXPECT_EQ(journal->next_sequence(), 11u);
  for (std::uint64_t n = 8; n < 12; ++n) commit(n);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(journal->next_sequence(), 15u);
    EXPECT_EQ(journal->next_number(), 12u);
    std::vector<std::uint64_t> expected = UpTo(5);
    for (const std::uint64_t n : UpTo(12, 8)) expected.push_back(n);
    EXPECT_EQ(Labels(*journal, UpTo(12)), expected);
    journal.reset();
    journal = lab.OpenJournal(options).value();
  }
  ASSERT_EQ(journal->damages().size(), 1u);  // it says that records are missing
  EXPECT_EQ(journal->damages()[0].first_lost, 6u);
  EXPECT_EQ(journal->damages()[0].lost, 5u);
}

}  // namespace
}  // namespace freshet::deploy
