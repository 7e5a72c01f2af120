// Deployments whose files were damaged, lost, mixed up, or written by a later program.

#include "base/option.h"
#include "data/tensor_file.h"
#include "deploy/deployment.h"
#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

class DamagedDeployment : public testing::Test {
 protected:
  DamagedDeployment() {
    options_.method = Method::kBaselinePlus;
    options_.version_rows = 25;
  }
  std::unique_ptr<Deployment> Open() {
    auto opened = world_.Open(options_, world_.Dense());
    EXPECT_TRUE(opened.ok()) << opened.error().text;
    return opened.ok() ? std::move(opened).value() : nullptr;
  }
  // 60 rows, a data set of 20, and 40 rows more, with versions in between.
  void Fill() {
    const auto deployment = Open();
    world_.SendMany(*deployment, 0, 60);
    std::string text = "x1,x2,x3,label\n";
    for (int r = 0; r < 20; ++r) text += Str(r, ",", r % 3, ",1,", r % 2, "\n");
    world_.disk.Write("/set.csv", text);
    bool joined = false;
    deployment->PostDataset("/set.csv", [&](const auto& result) { joined = result.ok(); });
    deployment->Settle();
    ASSERT_TRUE(joined);
    world_.SendMany(*deployment, 60, 40);
    expected_ = World::Fingerprint(*deployment);
  }
  std::string DatasetPath() const { return world_.disk.Glob("/a/datasets/*.rows").value().at(0); }
  void Change(const std::string& path, std::size_t byte) {
    std::string bytes = world_.disk.Read(path);
    bytes[byte] ^= 1;
    world_.disk.Write(path, bytes);
  }
  std::uint64_t RowsLeft(Deployment& deployment) const {
    data::Rows rows;
    rows.width = 3;
    rows.ClearRows();
    EXPECT_TRUE(deployment.log().Read(UpTo(200), rows).ok());
    return rows.size();
  }

  World world_;
  DeploymentOptions options_ = world_.Options("a");
  std::vector<double> expected_;
};

TEST_F(DamagedDeployment, ADataSetThatIsDamagedOrGoneIsPassedOverNamedAndCounted) {
  ASSERT_NO_FATAL_FAILURE(Fill());
  const auto files = world_.disk.Snapshot();
  for (const bool from_the_log : {false, true})
    for (const char* const how : {"a bit of its head", "its magic", "gone", "empty"}) {
      SCOPED_TRACE(Str(how, from_the_log ? ", from the log" : ", from a version"));
      world_.disk.Restore(files);
      world_.lines.clear();
      if (from_the_log) world_.KeepOnlyTheFirstVersion("/a");
      const std::string path = DatasetPath();
      if (how == std::string("gone"))
        ASSERT_TRUE(world_.disk.Remove(path).ok());
      else if (how == std::string("empty"))
        world_.disk.Write(path, "");
      else
        Change(path, how == std::string("its magic") ? 3 : 20);
      auto deployment = Open();
      ASSERT_NE(deployment, nullptr);
      EXPECT_EQ(World::Fingerprint(*deployment), expected_);
      EXPECT_EQ(deployment->stats().damaged_places, 1u);
      EXPECT_TRUE(world_.Said(path));
      EXPECT_EQ(RowsLeft(*deployment), 100u);
      world_.SendMany(*deployment, 100, 5);
      deployment.reset();
      deployment = Open();
      ASSERT_NE(deployment, nullptr);
      EXPECT_EQ(deployment->stats().learned, 105u);
      EXPECT_EQ(RowsLeft(*deployment), 105u);
    }
}

TEST_F(DamagedDeployment, DamagedRowsOfADataSetAreCountedOnce) {
  ASSERT_NO_FATAL_FAILURE(Fill());
  const std::string path = DatasetPath();
  const std::size_t row = (world_.disk.Read(path).size() - SegmentHead::kSaltedBytes) / 20;
  for (const std::size_t n : {3, 7}) Change(path, SegmentHead::kSaltedBytes + n * row + 30);
  const auto deployment = Open();
  EXPECT_EQ(RowsLeft(*deployment), 118u);
  EXPECT_EQ(RowsLeft(*deployment), 118u);
  world_.SendMany(*deployment, 100, 1);
  EXPECT_EQ(deployment->stats().damaged_places, 2u);
  EXPECT_TRUE(world_.Said(path));
}

TEST_F(DamagedDeployment, AVersionUnderAnothersNameIsTakenForDamaged) {
  ASSERT_NO_FATAL_FAILURE(Fill());
  const auto files = world_.disk.Snapshot();
  for (const char* const ending : {".model", ".model.vitals"}) {
    SCOPED_TRACE(ending);
    world_.disk.Restore(files);
    world_.lines.clear();
    const auto paths = world_.disk.Glob(Str("/a/versions/*", ending)).value();
    world_.disk.Write(paths.back(), world_.disk.Read(paths[paths.size() - 2]));
    const auto deployment = Open();
    ASSERT_NE(deployment, nullptr);
    EXPECT_EQ(World::Fingerprint(*deployment), expected_);
    EXPECT_TRUE(world_.Said("as its name says"));
    EXPECT_EQ(deployment->stats().damaged_places, 1u);
  }
}

TEST_F(DamagedDeployment, ADamagedVersionThatARollBackAsksForIsCountedAndNamed) {
  ASSERT_NO_FATAL_FAILURE(Fill());
  const auto deployment = Open();
  const auto versions = deployment->versions()->list();
  const std::uint64_t id = versions.at(1).id;
  const std::string path = deployment->versions()->PathOf(id);
  Change(path, world_.disk.Read(path).size() / 2);
  std::optional<Result<std::string>> reply;
  deployment->PostRollBack(id, {}, false, [&](Result<std::string> result) { reply = std::move(result); });
  deployment->Settle();
  ASSERT_TRUE(reply && !reply->ok());
  EXPECT_EQ(reply->error().code, Code::kCorrupt);
  EXPECT_EQ(deployment->stats().damaged_places, 1u);
  EXPECT_TRUE(world_.Said(path));
  EXPECT_FALSE(deployment->versions()->Find(id));
  EXPECT_EQ(World::Fingerprint(*deployment), expected_);
}

TEST_F(DamagedDeployment, ALostEndOfTheJournalIsAnErrorThatNamesItUntilItIsAccepted) {
  options_.journal.segment_bytes = 1500;
  ASSERT_NO_FATAL_FAILURE(Fill());
  const auto files = world_.disk.Snapshot();
  const auto segments = world_.disk.Glob("/a/journal/*.log").value();
  ASSERT_GT(segments.size(), 2u);
  for (const bool whole : {false, true}) {
    SCOPED_TRACE(whole ? "the last segments deleted" : "cut at a record");
    world_.disk.Restore(files);
    options_.accept_loss = false;
    const std::size_t left = segments.size() / 2;
    for (std::size_t s = left; s < segments.size(); ++s) ASSERT_TRUE(world_.disk.Remove(segments[s]).ok());
    const std::string& last = segments[left - 1];
    if (!whole) {
      (void)world_.disk.Remove(last + ".index");
      const std::string bytes = world_.disk.Read(last);
      const std::size_t record = kRecordHeader + 1 + 8 + 4 + 4 + 3 * 4;
      world_.disk.Write(last, bytes.substr(0, SegmentHead::kSaltedBytes + 3 * record));
    }
    const auto before = world_.disk.Snapshot();
    const auto refused = world_.Open(options_, world_.Dense());
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::kCorrupt);
    EXPECT_NE(refused.error().text.find("are missing"), std::string::npos) << refused.error().text;
    EXPECT_NE(refused.error().text.find(Option("accept-loss")), std::string::npos) << refused.error().text;

    options_.accept_loss = true;
    auto deployment = Open();
    ASSERT_NE(deployment, nullptr);
    world_.SendMany(*deployment, 200, 5);
    const auto after = World::Fingerprint(*deployment);
    deployment.reset();
    options_.accept_loss = false;  // once is enough
    deployment = Open();
    ASSERT_NE(deployment, nullptr);
    EXPECT_EQ(World::Fingerprint(*deployment), after);
  }
}

TEST_F(DamagedDeployment, FilesOfALaterProgramAreRefusedAndLeftAlone) {
  ASSERT_NO_FATAL_FAILURE(Fill());
  const auto files = world_.disk.Snapshot();
  // The same file with another text in its metadata.
  const auto rewrite = [&](const std::string& path, const std::string& key, const std::string& from,
                           const std::string& to) {
    const auto file = data::TensorFile::Read(world_.files, path).value();
    data::Metadata metadata = file.metadata();
    const std::size_t at = metadata.at(key).find(from);
    ASSERT_NE(at, std::string::npos);
    metadata[key].replace(at, from.size(), to);
    base::StringFile out;
    ASSERT_TRUE(data::WriteTensors(out, file.tensors(), metadata).ok());
    world_.disk.Write(path, out.text);
  };
  struct Case {
    std::string ending, key, from, to;
  };
  for (const Case& c : {Case{".model", "format", "freshet model 1", "freshet model 2"},
                        Case{".model", "input", "\"version\":1", "\"version\":99"},
                        Case{".model.vitals", "format", "freshet vitals 1", "freshet vitals 2"}}) {
    SCOPED_TRACE(Str(c.ending, " ", c.key));
    world_.disk.Restore(files);
    const std::string path = world_.disk.Glob(Str("/a/versions/*", c.ending)).value().back();
    ASSERT_NO_FATAL_FAILURE(rewrite(path, c.key, c.from, c.to));
    const auto before = world_.disk.Snapshot();
    const auto opened = world_.Open(options_, world_.Dense());
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, Code::kInvalid) << opened.error().text;
    EXPECT_NE(opened.error().text.find("use "), std::string::npos) << opened.error().text;
    EXPECT_EQ(world_.disk.Snapshot(), before);
  }
}

TEST_F(DamagedDeployment, ADataSetThatDoesNotJoinLeavesNoFile) {
  const auto files = [&] {
    std::vector<std::string> all;
    for (const auto& [path, bytes] : world_.disk.Snapshot())
      if (path.starts_with("/a/datasets/")) all.push_back(path);
    return all;
  };
  const auto deployment = Open();
  world_.disk.Write("/bad.csv", "x1,x2,x3,label\n1,2,3,1\n1,2,many,1\n");
  world_.disk.Write("/empty.csv", "x1,x2,x3,label\n");
  world_.disk.Write("/good.csv", "x1,x2,x3,label\n1,2,3,1\n1,2,4,0\n");
  const auto joins = [&](const std::string& path) {
    bool ok = false;
    deployment->PostDataset(path, [&](const auto& result) { ok = result.ok(); });
    deployment->Settle();
    return ok;
  };
  for (const char* const path : {"/bad.csv", "/empty.csv", "/nowhere.csv"}) {
    EXPECT_FALSE(joins(path));
    EXPECT_TRUE(files().empty()) << path;
  }
  for (int nth = 1;; ++nth) {
    SCOPED_TRACE(Str("operation ", nth));
    world_.files.FailAt(nth);
    const bool joined = joins("/good.csv");
    const bool done = world_.files.failures() == 0;
    world_.files.FailAt(0);
    if (joined) break;
    ASSERT_FALSE(done);
    ASSERT_TRUE(files().empty()) << files()[0];
  }
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(DamagedDeployment, WhatACrashLeftOfADataSetIsRemovedAtTheStart) {
  ASSERT_NO_FATAL_FAILURE(Fill());
  world_.disk.Write("/a/datasets/set-9-9.rows.draft", "half of it");
  ASSERT_NE(Open(), nullptr);
  EXPECT_FALSE(world_.disk.Exists("/a/datasets/set-9-9.rows.draft"));
  EXPECT_TRUE(world_.disk.Exists(DatasetPath()));
}

}  // namespace
}  // namespace freshet::deploy
