// Syncs that fail, and what is on the disk when the power goes.

#include "base/random.h"
#include "deploy/deployment_testing.h"
#include "deploy/log/journal.h"
#include "deploy/log/journal_testing.h"

namespace freshet::deploy {
namespace {

// A disk whose syncs can fail as those of Linux do: what a failed one should have written is never written by a later
// one, unless it is written to the file again. PowerFails leaves what was synced.
class ForgetfulDisk final : public base::Files {
 public:
  explicit ForgetfulDisk(MemoryDisk& disk) : disk_(disk) {}
  bool syncs_fail = false, writes_fail = false;

  void PowerFails() {
    for (auto& [path, file] : files_) {
      if (!disk_.Exists(path)) continue;
      std::string bytes = disk_.Read(path);
      std::size_t end = 0;
      for (std::size_t i = 0; i < bytes.size(); ++i)
        if (file->bytes[i] != Byte::kSynced)
          bytes[i] = '\0';
        else
          end = i + 1;
      disk_.Write(path, bytes.substr(0, end));
      file->bytes.resize(end);
    }
  }

  Result<std::unique_ptr<base::InputFile>> OpenRead(const std::string& path) override { return disk_.OpenRead(path); }
  Result<std::unique_ptr<base::OutputFile>> Create(const std::string& path) override {
    if (writes_fail) return Error{Code::kIo, Str(path, ": no space is left")};
    return disk_.Create(path);
  }
  Result<std::unique_ptr<base::AppendFile>> OpenAppend(const std::string& path) override {
    if (writes_fail) return Error{Code::kIo, Str(path, ": no space is left")};
    auto& file = files_[path];
    if (file == nullptr || !disk_.Exists(path)) file = std::make_shared<File>();
    if (disk_.Exists(path)) file->bytes.resize(disk_.Read(path).size());
    return std::unique_ptr<base::AppendFile>(std::make_unique<Appended>(*this, TRY(disk_.OpenAppend(path)), file));
  }
  Result<void> Rename(const std::string& from, const std::string& to) override {
    TRY(disk_.Rename(from, to));
    if (const auto found = files_.find(from); found != files_.end()) {
      files_[to] = found->second;
      files_.erase(from);
    }
    return {};
  }
  Result<void> Remove(const std::string& path) override { return disk_.Remove(path); }
  Result<void> MakeDirectory(const std::string& path) override { return disk_.MakeDirectory(path); }
  Result<void> SyncDirectoryOf(const std::string& path) override { return disk_.SyncDirectoryOf(path); }
  Result<std::unique_ptr<base::FileLock>> Lock(const std::string& path) override { return disk_.Lock(path); }
  bool Exists(const std::string& path) const override { return disk_.Exists(path); }
  bool IsDevice(const std::string& path) const override { return disk_.IsDevice(path); }
  Result<std::vector<std::string>> Glob(const std::string& pattern) const override { return disk_.Glob(pattern); }

 private:
  enum class Byte : char { kDirty, kSynced, kLost };
  struct File {
    std::vector<Byte> bytes;
  };
  struct Appended final : base::AppendFile {
    Appended(ForgetfulDisk& d, std::unique_ptr<base::AppendFile> r, std::shared_ptr<File> f)
        : disk(d), real(std::move(r)), file(std::move(f)) {}
    Result<void> Append(std::span<const std::byte> bytes) override {
      if (disk.writes_fail) return Error{Code::kIo, "no space is left"};
      TRY(real->Append(bytes));
      file->bytes.resize(file->bytes.size() + bytes.size(), Byte::kDirty);
      return {};
    }
    Result<void> Sync() override {
      for (Byte& byte : file->bytes)
        if (byte == Byte::kDirty) byte = disk.syncs_fail ? Byte::kLost : Byte::kSynced;
      if (disk.syncs_fail) return Error{Code::kIo, "cannot sync: Input/output error"};
      return {};
    }
    Result<void> Truncate(std::uint64_t size) override {
      TRY(real->Truncate(size));
      file->bytes.resize(size);
      return {};
    }
    ForgetfulDisk& disk;
    const std::unique_ptr<base::AppendFile> real;
    const std::shared_ptr<File> file;
  };

  MemoryDisk& disk_;
  std::map<std::string, std::shared_ptr<File>> files_;
};

class FailingSync : public testing::Test {
 protected:
  void Open() {
    journal_.reset();
    auto opened = Journal::Open(env_, options_);
    ASSERT_TRUE(opened.ok()) << opened.error().text;
    journal_ = std::move(opened).value();
  }
  bool Commit(int rows = 1) {
    std::vector<Kept> batch;
    for (int i = 0; i < rows; ++i) {
      const std::string payload = PackedRow(kept_.size() + batch.size());
      batch.push_back({journal_->Append(RecordKind::kObservation, payload, 0, 0), RecordKind::kObservation, payload});
    }
    const bool taken = journal_->Commit().ok();
    if (taken) kept_.insert(kept_.end(), batch.begin(), batch.end());
    return taken;
  }
  bool Sync() {
    const std::size_t count = kept_.size();
    const bool synced = journal_->Sync().ok();
    if (synced) synced_ = count;
    return synced;
  }
  void ExpectAll() {
    ASSERT_EQ(All(*journal_), kept_);
    ASSERT_EQ(Labels(*journal_, UpTo(kept_.size() + 2)), UpTo(kept_.size()));
    ASSERT_EQ(journal_->next_sequence(), kept_.size() + 1);
  }

  Lab lab_;
  ForgetfulDisk disk_{lab_.disk};
  base::Env env_{disk_, lab_.clock, lab_.log, lab_.executor, lab_.faults};
  JournalOptions options_{.directory = "/journal"};
  std::unique_ptr<Journal> journal_;
  std::vector<Kept> kept_;
  std::size_t synced_ = 0;  // of those kept
};

TEST_F(FailingSync, WhatASyncThatFailedShouldHaveWrittenIsOnTheDiskAfterTheNextThatSucceeds) {
  for (const bool first_of_its_segment : {false, true}) {
    SCOPED_TRACE(first_of_its_segment);
    lab_.disk.Restore({});
    kept_.clear();
    Open();
    if (!first_of_its_segment) {
      ASSERT_TRUE(Commit(3));
      ASSERT_TRUE(Sync());
    }
    ASSERT_TRUE(Commit(2));
    ASSERT_TRUE(Commit(2));
    disk_.syncs_fail = true;
    EXPECT_FALSE(Sync());
    EXPECT_TRUE(journal_->read_only());
    EXPECT_FALSE(Sync());
    EXPECT_FALSE(Commit());  // nothing more is taken
    disk_.syncs_fail = false;
    ASSERT_TRUE(Commit());
    EXPECT_FALSE(journal_->read_only());
    ASSERT_TRUE(Sync());
    ASSERT_NO_FATAL_FAILURE(ExpectAll());
    journal_.reset();
    disk_.PowerFails();
    Open();
    ASSERT_NO_FATAL_FAILURE(ExpectAll());
    EXPECT_TRUE(journal_->damages().empty());
  }
}

TEST_F(FailingSync, ARepairNeedsNoNewRecord) {
  Open();
  ASSERT_TRUE(Commit(4));
  disk_.syncs_fail = true;
  EXPECT_FALSE(Sync());
  EXPECT_FALSE(journal_->Repair().ok());
  disk_.syncs_fail = false;
  EXPECT_TRUE(journal_->read_only());
  EXPECT_TRUE(journal_->Repair().ok());
  EXPECT_FALSE(journal_->read_only());
  journal_.reset();
  disk_.PowerFails();
  Open();
  ASSERT_NO_FATAL_FAILURE(ExpectAll());
}

TEST_F(FailingSync, NothingIsLostByAProcessThatEndsWhileItWritesAgain) {
  Open();
  ASSERT_TRUE(Commit(4));
  disk_.syncs_fail = true;
  EXPECT_FALSE(Sync());
  disk_.syncs_fail = false;
  ASSERT_TRUE(lab_.faults.Arm("journal.written_again:1:error").ok());
  EXPECT_FALSE(Commit());
  EXPECT_EQ(lab_.disk.Glob("/journal/*.draft").value().size(), 1u);
  Open();
  EXPECT_FALSE(lab_.disk.Glob("/journal/*.draft").ok());
  ASSERT_NO_FATAL_FAILURE(ExpectAll());
}

TEST_F(FailingSync, AnEndThatAnEarlierProcessWroteAndThatCannotBeSyncedNeedsARestart) {
  Open();
  ASSERT_TRUE(Commit(3));
  Open();
  disk_.syncs_fail = true;
  EXPECT_FALSE(Commit());
  disk_.syncs_fail = false;
  EXPECT_TRUE(journal_->read_only());
  EXPECT_FALSE(Commit());  // another sync that succeeds would prove nothing
  Open();
  EXPECT_FALSE(journal_->read_only());
  EXPECT_TRUE(Commit());
  ASSERT_NO_FATAL_FAILURE(ExpectAll());
}

// Whatever fails and however it ends: a killed process loses nothing that was taken, and a power failure nothing that
// was synced.
TEST_F(FailingSync, NothingSyncedIsLostAndNothingTakenIsLostWithoutAPowerFailure) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "sync");
    lab_.disk.Restore({});
    kept_.clear();
    synced_ = 0;
    options_.segment_bytes = 100 + random.Below(600);
    options_.durability = random.Below(3) == 0 ? Durability::kAlways : Durability::kEverySec;
    disk_.syncs_fail = disk_.writes_fail = false;
    Open();
    for (int step = 0; step < 60; ++step) {
      switch (random.Below(10)) {
        case 0:
          disk_.syncs_fail = random.Below(2) == 0;
          break;
        case 1:
          disk_.writes_fail = random.Below(3) == 0;
          break;
        case 2:
          Sync();
          break;
        case 3:
          if (journal_->read_only() || random.Below(3) != 0) break;
          disk_.writes_fail = false;
          ASSERT_NO_FATAL_FAILURE(Open());  // it was killed
          ASSERT_NO_FATAL_FAILURE(ExpectAll());
          break;
        default:
          if (Commit(1 + static_cast<int>(random.Below(3))) && options_.durability == Durability::kAlways)
            synced_ = kept_.size();
      }
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAll());
    journal_.reset();
    disk_.PowerFails();
    disk_.syncs_fail = disk_.writes_fail = false;
    Open();
    const auto found = All(*journal_);
    ASSERT_GE(found.size(), synced_);
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], kept_[i]);
  }
}

TEST(DeploymentSync, IsReadOnlyFromASyncThatFailedUntilAllIsWrittenAgain) {
  World world;
  ForgetfulDisk disk(world.disk);
  const base::Env env{disk, world.clock, world.log, world.executor, world.faults};
  const DeploymentOptions options = world.Options("a");
  const auto deployment =
      Deployment::Open(env, options, world.runtime, world.memory, world.Dense(), {.readers = 1}).value();
  world.SendMany(*deployment, 0, 10);
  disk.syncs_fail = true;
  deployment->Sync();
  EXPECT_TRUE(deployment->stats().read_only);
  EXPECT_NE(deployment->stats().problem, "");
  EXPECT_EQ(World::Send(*deployment, 10).error().code, Code::kIo);
  EXPECT_EQ(deployment->Read(0)->version, 10u);  // it goes on answering
  disk.syncs_fail = false;
  deployment->Sync();  // a second later
  deployment->Settle();
  EXPECT_FALSE(deployment->stats().read_only);
  EXPECT_EQ(deployment->stats().problem, "");
  EXPECT_TRUE(World::Send(*deployment, 10).ok());
  EXPECT_EQ(deployment->stats().learned, 11u);
}

}  // namespace
}  // namespace freshet::deploy
