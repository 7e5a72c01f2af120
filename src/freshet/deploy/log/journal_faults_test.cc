// Disks that fail, and processes that are killed, while a journal writes.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/scratch_testing.h"
#include "deploy/log/journal.h"
#include "deploy/log/journal_testing.h"

namespace freshet::deploy {
namespace {

constexpr Durability kDurabilities[] = {Durability::kAlways, Durability::kEverySec, Durability::kNone};

// Commits records in batches and remembers those that the journal took.
struct Client {
  std::vector<Kept> kept;
  std::uint64_t observations = 0, refused = 0;

  void Commit(Journal& journal, int count) {
    std::vector<Kept> batch;
    std::uint64_t number = observations;
    for (int i = 0; i < count; ++i) {
      const bool observation = i != 1;
      const RecordKind kind = observation ? RecordKind::kObservation : RecordKind::kDrift;
      const std::string payload = observation ? PackedRow(number++) : "{}";
      batch.push_back({journal.Append(kind, payload, 0, 0), kind, payload});
    }
    if (!journal.Commit().ok()) {
      ++refused;
      return;
    }
    kept.insert(kept.end(), batch.begin(), batch.end());
    observations = number;
  }
  void Check(const Journal& journal) const {
    ASSERT_EQ(All(journal), kept);
    ASSERT_EQ(journal.next_sequence(), kept.size() + 1);
    ASSERT_EQ(journal.next_number(), observations);
    ASSERT_EQ(Labels(journal, UpTo(observations + 3)), UpTo(observations));
    ASSERT_TRUE(journal.damages().empty());
  }
};

TEST(JournalFaults, WhateverOperationFailsItHoldsExactlyWhatItTook) {
  for (const Durability durability : kDurabilities)
    for (const bool for_ever : {false, true})
      for (int nth = 1;; ++nth) {
        SCOPED_TRACE(
            Str("durability ", static_cast<int>(durability), for_ever ? ", for ever" : "", ", operation ", nth));
        Lab lab;
        JournalOptions options;
        options.durability = durability;
        options.segment_bytes = 150;
        auto journal = lab.OpenJournal(options).value();
        Client client;
        client.Commit(*journal, 2);
        lab.files.FailAt(nth, for_ever);
        for (int i = 0; i < 5; ++i) client.Commit(*journal, 1 + i % 3);
        const bool done = lab.files.failures() == 0;
        lab.files.FailAt(0);
        ASSERT_EQ(done, client.refused == 0);
        ASSERT_NO_FATAL_FAILURE(client.Check(*journal));
        journal.reset();  // the process dies while the disk is full …
        journal = lab.OpenJournal(options).value();
        ASSERT_NO_FATAL_FAILURE(client.Check(*journal));
        const std::uint64_t refused = client.refused;
        for (int i = 0; i < 5; ++i) client.Commit(*journal, 1 + i % 3);
        ASSERT_EQ(client.refused, refused);
        ASSERT_NO_FATAL_FAILURE(client.Check(*journal));
        if (done) break;
      }
}

TEST(JournalFaults, GoesOnWithoutARestartOnceTheDiskIsBack) {
  for (const Durability durability : kDurabilities)
    for (int nth = 1; nth < 12; ++nth) {
      SCOPED_TRACE(Str("durability ", static_cast<int>(durability), ", operation ", nth));
      Lab lab;
      JournalOptions options;
      options.durability = durability;
      options.segment_bytes = 100;
      auto journal = lab.OpenJournal(options).value();
      Client client;
      for (int round = 0; round < 3; ++round) {
        lab.files.FailAt(nth, true);
        for (int i = 0; i < 3; ++i) client.Commit(*journal, 2);
        lab.files.FailAt(0);
        const std::uint64_t refused = client.refused;
        for (int i = 0; i < 3; ++i) client.Commit(*journal, 2);
        ASSERT_EQ(client.refused, refused);
        ASSERT_NO_FATAL_FAILURE(client.Check(*journal));
      }
      journal.reset();
      ASSERT_NO_FATAL_FAILURE(client.Check(*lab.OpenJournal(options).value()));
    }
}

TEST(JournalFaults, TakesNothingMoreUntilHalfARecordIsCutOff) {
  Lab lab;
  JournalOptions options;
  auto journal = lab.OpenJournal(options).value();
  Client client;
  client.Commit(*journal, 3);
  lab.disk.cuts_fail = true;
  ASSERT_TRUE(lab.faults.Arm("journal.written:1:error").ok());
  client.Commit(*journal, 3);  // written, refused, and not to be cut off
  client.Commit(*journal, 1);
  EXPECT_EQ(client.refused, 2u);
  ASSERT_NO_FATAL_FAILURE(client.Check(*journal));
  lab.disk.cuts_fail = false;
  client.Commit(*journal, 3);
  EXPECT_EQ(client.refused, 2u);
  ASSERT_NO_FATAL_FAILURE(client.Check(*journal));
  journal.reset();
  ASSERT_NO_FATAL_FAILURE(client.Check(*lab.OpenJournal(options).value()));
}

// A child process commits until it is killed at the nth commit; it tells of each that the journal took.
std::uint64_t CommitInAChildUntilKilled(const base::Env& env, const JournalOptions& options, int nth) {
  int pipe_ends[2];
  CHECK(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    auto journal = Journal::Open(env, options);
    if (!journal.ok() || !env.faults.Arm(Str("journal.written:", nth, ":kill")).ok()) _exit(1);
    for (std::uint64_t n = 0; n < 100; ++n) {
      journal.value()->Append(RecordKind::kObservation, PackedRow(n), 0, 0);
      if (journal.value()->Commit().ok() && write(pipe_ends[1], "k", 1) != 1) _exit(2);
    }
    _exit(3);
  }
  close(pipe_ends[1]);
  std::uint64_t taken = 0;
  char byte = 0;
  while (read(pipe_ends[0], &byte, 1) == 1) ++taken;
  close(pipe_ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  return taken;
}

TEST(JournalFaults, LosesNothingThatItTookWhenTheProcessIsKilled) {
  for (const Durability durability : kDurabilities)
    for (const int nth : {1, 2, 7, 30}) {
      SCOPED_TRACE(Str("durability ", static_cast<int>(durability), ", commit ", nth));
      base::ScratchDirectory scratch;
      base::PosixFiles files;
      Lab lab;
      const base::Env env{files, lab.clock, lab.log, lab.executor, lab.faults};
      JournalOptions options;
      options.directory = scratch / "journal";
      options.durability = durability;
      options.segment_bytes = 200;
      const std::uint64_t taken = CommitInAChildUntilKilled(env, options, nth);
      EXPECT_EQ(taken, static_cast<std::uint64_t>(nth - 1));
      const auto journal = Journal::Open(env, options).value();
      EXPECT_TRUE(journal->damages().empty());
      const auto there = Labels(*journal, UpTo(journal->end()));
      EXPECT_EQ(there, UpTo(taken + 1));  // and what was written when it was killed
    }
}

}  // namespace
}  // namespace freshet::deploy
