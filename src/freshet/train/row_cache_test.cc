#include "train/row_cache.h"

#include <gtest/gtest.h>

#include "base/scratch_testing.h"
#include "data/drive.h"
#include "data/generate.h"
#include "data/reader.h"

namespace freshet::train {
namespace {

class RowCacheTest : public testing::Test {
 protected:
  RowCacheTest() {
    data::ReaderOptions reading;
    reading.paths = {scratch_ / "rows"};
    reading.chunk_bytes = 500;
    EXPECT_TRUE(base::WriteAtomic(files_, reading.paths[0], [](base::OutputFile& file) {
                  return data::Generate({.kind = "sea", .rows = 200}, file);
                }).ok());
    source_ = data::Reader::Open({files_, clock_, log_, executor_, faults_}, reading, {}, description_).value();
    labels_ = LabelsOf(*source_);
    EXPECT_EQ(labels_.size(), 200u);
  }

  std::vector<float> LabelsOf(data::RowSource& rows) {
    std::vector<float> labels;
    EXPECT_TRUE(rows.Seek({}).ok());
    EXPECT_TRUE(data::DriveInOrder(executor_, rows, [&](data::Rows& block) -> Result<void> {
                  labels.insert(labels.end(), block.labels.span().begin(), block.labels.span().end());
                  return {};
                }).ok());
    return labels;
  }
  Result<void> Fill(RowCache& cache, int most_blocks = 1000) {
    return cache.Fill(executor_, *source_, description_, [&] { return most_blocks-- > 0; });
  }

  base::ScratchDirectory scratch_, spare_;
  base::PosixFiles files_;
  base::SystemClock clock_;
  base::Log log_{clock_, [](std::string_view) {}};
  base::InlineExecutor executor_;
  base::Faults faults_;
  data::Description description_;
  std::unique_ptr<data::RowSource> source_;
  std::vector<float> labels_;
};

TEST_F(RowCacheTest, HasAllRowsWhetherFilledOnTheWayOrInAPassOfItsOwn) {
  RowCache on_the_way(files_, scratch_ / "a", spare_.path()), at_once(files_, scratch_ / "b", spare_.path());
  ASSERT_TRUE(on_the_way.Begin().ok());
  ASSERT_TRUE(source_->Seek({}).ok());
  ASSERT_TRUE(data::DriveInOrder(executor_, *source_, [&](data::Rows& rows) { return on_the_way.Add(rows); }).ok());
  EXPECT_EQ(on_the_way.rows(), nullptr);
  ASSERT_TRUE(on_the_way.End(description_).ok());
  ASSERT_TRUE(Fill(at_once).ok());
  for (const RowCache* cache : {&on_the_way, &at_once}) {
    ASSERT_NE(cache->rows(), nullptr);
    EXPECT_EQ(LabelsOf(*cache->rows()), labels_);
  }
}

TEST_F(RowCacheTest, StaysEmptyWhenNobodyBegan) {
  RowCache cache(files_, "", spare_.path());
  data::Rows rows;
  EXPECT_TRUE(cache.Add(rows).ok());
  EXPECT_TRUE(cache.End(description_).ok());
  EXPECT_EQ(cache.rows(), nullptr);
  EXPECT_TRUE(spare_.Names().empty());
}

TEST_F(RowCacheTest, AFileWithoutANameGoesWithItAndOneWithANameStaysForTheNextRun) {
  {
    RowCache nameless(files_, "", spare_.path()), named(files_, scratch_ / "kept", spare_.path());
    ASSERT_TRUE(Fill(nameless).ok());
    ASSERT_TRUE(Fill(named).ok());
    EXPECT_EQ(spare_.Names().size(), 1u);
  }
  EXPECT_TRUE(spare_.Names().empty());
  RowCache next(files_, scratch_ / "kept", spare_.path());
  next.Reopen();
  ASSERT_NE(next.rows(), nullptr);
  EXPECT_EQ(LabelsOf(*next.rows()), labels_);
  ASSERT_TRUE(next.Drop().ok());
  EXPECT_EQ(next.rows(), nullptr);
  EXPECT_FALSE(files_.Exists(scratch_ / "kept"));
}

TEST_F(RowCacheTest, IsNotReopenedWhenItIsMissingOrDamaged) {
  RowCache cache(files_, scratch_ / "kept", spare_.path());
  cache.Reopen();
  EXPECT_EQ(cache.rows(), nullptr);
  scratch_.Write("kept", "no cache at all");
  cache.Reopen();
  EXPECT_EQ(cache.rows(), nullptr);
}

TEST_F(RowCacheTest, FillingThatIsStoppedLeavesNothing) {
  RowCache cache(files_, scratch_ / "kept", spare_.path());
  const auto filled = Fill(cache, 2);
  ASSERT_FALSE(filled.ok());
  EXPECT_EQ(filled.error().code, Code::kStopped);
  EXPECT_EQ(cache.rows(), nullptr);
  EXPECT_EQ(scratch_.Names(), std::vector<std::string>{"rows"});
}

}  // namespace
}  // namespace freshet::train
