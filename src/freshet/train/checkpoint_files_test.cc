#include "train/checkpoint_files.h"

#include <gtest/gtest.h>

#include <set>

#include "base/scratch_testing.h"

namespace freshet::train {
namespace {

using When = CheckpointFiles::When;

class CheckpointFilesTest : public testing::Test {
 protected:
  void Make(const std::set<std::string>& names) {
    for (const std::string& name : names) scratch_.Write(name, "");
  }
  CheckpointFiles Of(int rank, int workers, const std::string& name = "run") {
    return {files_, scratch_ / name, rank, workers};
  }
  std::set<std::string> Left() {
    const auto names = scratch_.Names();
    return {names.begin(), names.end()};
  }

  base::ScratchDirectory scratch_;
  base::PosixFiles files_;
};

TEST_F(CheckpointFilesTest, RankZeroOwnsThePlainNameAndAPartLikeAllOthers) {
  EXPECT_EQ(PathOfRank("rows", 0), "rows");
  EXPECT_EQ(PathOfRank("rows", 3), "rows.rank3");
  EXPECT_EQ(Of(0, 2).Part(40), scratch_ / "run.rank0.save40");
  EXPECT_EQ(Of(1, 2).Part(40), scratch_ / "run.rank1.save40");
}

TEST_F(CheckpointFilesTest, AWorkerRemovesItsOwnPartsOfOtherSteps) {
  Make({"run", "run.rank0.save4", "run.rank1.save4", "run.rank1.save5", "run.rank1.save50", "run.rank1"});
  Of(1, 2).RemoveLeftovers(5, When::kSaved);
  EXPECT_EQ(Left(), (std::set<std::string>{"run", "run.rank0.save4", "run.rank1.save5", "run.rank1"}));
}

TEST_F(CheckpointFilesTest, DraftsGoWhenARunStartsAndNotWhileItWrites) {
  const std::set<std::string> all = {"run", "run.77.draft", "run.rank1.save5.77.draft"};
  Make(all);
  Of(0, 2).RemoveLeftovers(5, When::kSaved);
  EXPECT_EQ(Left(), all);
  Of(0, 2).RemoveLeftovers(5, When::kStart);
  EXPECT_EQ(Left(), (std::set<std::string>{"run", "run.rank1.save5.77.draft"}));
  Of(1, 2).RemoveLeftovers(5, When::kStart);
  EXPECT_EQ(Left(), (std::set<std::string>{"run"}));
}

TEST_F(CheckpointFilesTest, PartsOfALargerGroupStayUntilTheCheckpointIsNoLongerTheirs) {
  Make({"run", "run.rank2.save4", "run.rank2.save5"});
  Of(1, 2).RemoveLeftovers(5, When::kSaved);
  EXPECT_EQ(Left(), (std::set<std::string>{"run", "run.rank2.save4", "run.rank2.save5"}));  // not its own
  Of(0, 2).RemoveLeftovers(5, When::kStart);
  EXPECT_EQ(Left(), (std::set<std::string>{"run", "run.rank2.save5"}));
  Of(0, 2).RemoveLeftovers(5, When::kSaved);
  EXPECT_EQ(Left(), (std::set<std::string>{"run"}));
}

TEST_F(CheckpointFilesTest, FilesOfOtherRunsStay) {
  const std::set<std::string> others = {"ran.rank0.save4", "run2.rank0.save4", "run.rank0.rows"};
  Make(others);
  Of(0, 0, "r?n").RemoveLeftovers(5, When::kStart);
  Of(0, 0).RemoveLeftovers(5, When::kStart);
  EXPECT_EQ(Left(), others);
}

}  // namespace
}  // namespace freshet::train
