#include "base/random.h"
#include "deploy/log/journal_testing.h"
#include "deploy/log/record_log.h"

namespace freshet::deploy {
namespace {

TEST(MemoryLog, HoldsWhatAJournalWould) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "log");
    Lab lab;
    MemoryLog memory;
    const auto journal = lab.OpenJournal().value();
    std::uint64_t observations = 0;
    for (int i = 0; i < 50; ++i) {
      const bool observation = random.Below(3) > 0;
      const RecordKind kind = observation ? RecordKind::kObservation : RecordKind::kPin;
      const std::string payload = observation ? PackedRow(observations++) : "{}";
      ASSERT_EQ(memory.Append(kind, payload, 0, 0), journal->Append(kind, payload, 0, 0));
    }
    ASSERT_TRUE(memory.Commit().ok());
    ASSERT_TRUE(journal->Commit().ok());
    const std::uint64_t from = random.Below(60);
    EXPECT_EQ(All(memory, from), All(*journal, from));
    EXPECT_EQ(memory.end_sequence(), journal->end_sequence());
    EXPECT_EQ(memory.next_number(), journal->next_number());
    EXPECT_EQ(memory.end(), journal->end());
    const std::uint64_t first = 1 + random.Below(40), last = first + random.Below(20);
    memory.Discard(first, last);
    journal->Discard(first, last);
    EXPECT_EQ(Labels(memory, UpTo(observations + 2)), Labels(*journal, UpTo(observations + 2)));
  }
}

TEST(MemoryLog, TakesNoDataSets) {
  MemoryLog memory;
  EXPECT_EQ(memory.Adopt("/set", 0, 1).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace freshet::deploy
