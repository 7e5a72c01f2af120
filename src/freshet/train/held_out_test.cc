#include "train/held_out.h"

#include <gtest/gtest.h>

#include "base/scratch_testing.h"
#include "base/thread_pool.h"
#include "data/drive.h"
#include "data/generate.h"
#include "data/reader.h"

namespace freshet::train {
namespace {

// Ratings in a file, a model of them that knows nothing yet, and a fifth of the ratings held out.
class HeldOutTest : public testing::Test {
 protected:
  HeldOutTest() {
    data::ReaderOptions reading;
    reading.paths = {scratch_ / "rows"};
    reading.chunk_bytes = 500;
    EXPECT_TRUE(base::WriteAtomic(files_, reading.paths[0], [](base::OutputFile& file) {
                  return data::Generate({.kind = "ratings", .rows = 1000, .users = 30, .items = 20}, file);
                }).ok());
    source_ = data::Reader::Open(env_, reading, {}, description_).value();
    model::ModelConfig config;
    config.kind = "factorization";
    config.loss = "squared";
    config.factors = 4;
    model_ = std::move(model::Model::Make(config)).value();
    parameters_ = model_->NewParameters(memory_).value();
    EXPECT_TRUE(data::DriveInOrder(pool_, *source_, [&](data::Rows& rows) {
                  return model_->Prepare(*parameters_, rows.batch());
                }).ok());
    which_.fraction = 0.2;
  }

  HeldOut Make() { return {env_, which_, *model_, *parameters_, description_}; }
  Evaluation Sums() { return SumsFor(*model_, description_); }
  // How many are held out, as somebody who trains comes across them from `first` on.
  std::uint64_t ReadFrom(HeldOut& held, std::uint64_t first) {
    std::uint64_t count = 0;
    EXPECT_TRUE(source_->Seek({}).ok());
    held.BeginRatings(first == 0);
    EXPECT_TRUE(data::DriveInOrder(pool_, *source_, [&](data::Rows& rows) -> Result<void> {
                  const data::Batch batch = rows.batch();
                  for (std::size_t r = 0; r < batch.rows; ++r)
                    if (batch.samples[r] >= first && held.KeepRating(batch, r)) ++count;
                  return {};
                }).ok());
    return count;
  }

  base::ScratchDirectory scratch_;
  base::PosixFiles files_;
  base::SystemClock clock_;
  base::Log log_{clock_, [](std::string_view) {}};
  base::ThreadPool pool_{2};
  base::Faults faults_;
  const base::Env env_{files_, clock_, log_, pool_, faults_};
  data::Description description_;
  optimize::HeapMemory memory_;
  std::unique_ptr<data::RowSource> source_;
  std::unique_ptr<model::Model> model_;
  std::optional<optimize::Parameters> parameters_;
  HoldOut which_;
  const HeldOut::GoesOn always_ = [] { return true; };
};

TEST_F(HeldOutTest, RatingsAndRowsAreJudgedAlike) {
  Evaluation by_rows = Sums(), by_ratings = Sums();
  ASSERT_TRUE(Make().PredictRows(*source_, description_.features, always_, by_rows).ok());
  ASSERT_TRUE(Make().PredictRatings(*source_, always_, by_ratings).ok());
  EXPECT_GT(by_rows.rows(), 150u);
  EXPECT_LT(by_rows.rows(), 250u);
  EXPECT_EQ(by_ratings.rows(), by_rows.rows());
  EXPECT_NEAR(by_ratings.loss(), by_rows.loss(), 1e-9 * by_rows.loss());
}

TEST_F(HeldOutTest, RatingsThatWereNotAllKeptAreReadAgain) {
  HeldOut whole = Make(), resumed = Make();
  const std::uint64_t all = ReadFrom(whole, 0), rest = ReadFrom(resumed, 500);
  EXPECT_LT(rest, all);
  for (HeldOut* held : {&whole, &resumed}) {
    Evaluation sums = Sums();
    ASSERT_TRUE(held->PredictRatings(*source_, always_, sums).ok());
    EXPECT_EQ(sums.rows(), all);
  }
}

TEST_F(HeldOutTest, StopsWhenToldTo) {
  int asked = 0;
  const HeldOut::GoesOn twice = [&] { return ++asked <= 2; };
  Evaluation sums = Sums();
  const auto rows = Make().PredictRows(*source_, description_.features, twice, sums);
  ASSERT_FALSE(rows.ok());
  EXPECT_EQ(rows.error().code, Code::kStopped);
  asked = 2;
  const auto ratings = Make().PredictRatings(*source_, twice, sums);
  ASSERT_FALSE(ratings.ok());
  EXPECT_EQ(ratings.error().code, Code::kStopped);
}

}  // namespace
}  // namespace freshet::train
