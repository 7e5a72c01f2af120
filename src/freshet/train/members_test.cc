// What a trainer asks of members that are no ordinary workers.

#include "strategy/alone.h"
#include "train/bench_testing.h"

namespace freshet::train {
namespace {

// One that has no rows: it takes part in some steps of others, then all are at the end.
class Server final : public strategy::Strategy {
 public:
  struct Calls {
    int dry = 0, settled = 0;
  };
  explicit Server(Calls& calls) : calls_(calls) {}
  int rank() const override { return 1; }
  int size() const override { return 2; }
  bool has_rows() const override { return false; }
  bool reads_all() const override { return false; }
  std::size_t piece() const override { return 1; }
  Result<std::optional<double>> Step(const data::Batch&, const data::Batch&, std::span<float>) override {
    ADD_FAILURE() << "it has no rows";
    return std::optional<double>();
  }
  Result<bool> StepDry() override { return ++calls_.dry % 4 == 0; }
  Result<void> Settle() override {
    ++calls_.settled;
    return {};
  }
  void Ask(bool, bool) override {}
  bool stop_agreed() const override { return false; }
  bool save_agreed() const override { return false; }
  void Forget() override {}
  void SetProgress(double) override {}

 private:
  Calls& calls_;
};

// One that learns, but sees no scores.
class Stage final : public strategy::Strategy {
 public:
  explicit Stage(const strategy::Learner& learner) : learner_(learner) {
    inside_ = strategy::Alone::Make({.batch = 8}, learner).value();
  }
  bool alone() const override { return true; }
  bool has_scores() const override { return false; }
  std::size_t piece() const override { return inside_->piece(); }
  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override {
    EXPECT_TRUE(scores.empty());
    std::vector<float> hidden(mine.rows * learner_.model.scores());
    return inside_->Step(piece, mine, hidden);
  }
  void Ask(bool stop, bool save) override { inside_->Ask(stop, save); }
  bool stop_agreed() const override { return inside_->stop_agreed(); }
  bool save_agreed() const override { return inside_->save_agreed(); }
  void Forget() override { inside_->Forget(); }
  void SetProgress(double progress) override { inside_->SetProgress(progress); }

 private:
  const strategy::Learner learner_;
  std::unique_ptr<strategy::Alone> inside_;
};

class MembersTest : public testing::Test {
 protected:
  Plan Sea() {
    Plan plan;
    plan.path = bench_.Generate({.kind = "sea", .rows = 500});
    plan.train.epochs = 2;
    plan.train.batch = 8;
    return plan;
  }
  Bench bench_;
};

TEST_F(MembersTest, WhoHasNoRowsTakesPartInTheStepsOfTheOthers) {
  Plan plan = Sea();
  Server::Calls calls;
  plan.own_strategy = [&](const strategy::Learner&) { return std::make_unique<Server>(calls); };
  const BenchOutcome outcome = bench_.Run(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.error->text;
  EXPECT_EQ(outcome.report->rows, 0u);
  EXPECT_EQ(outcome.report->epochs, 2);
  EXPECT_EQ(calls.dry, 8);  // four in each epoch
  EXPECT_EQ(calls.settled, 2);
}

TEST_F(MembersTest, WhoSeesNoScoresLearnsAllTheSame) {
  const Plan alone = Sea();
  Plan plan = alone;
  plan.own_strategy = [](const strategy::Learner& learner) { return std::make_unique<Stage>(learner); };
  const BenchOutcome with = bench_.Run(alone), without = bench_.Run(plan);
  ASSERT_TRUE(without.ok()) << without.error->text;
  EXPECT_EQ(without.weights, with.weights);
  EXPECT_EQ(without.report->rows, with.report->rows);
  EXPECT_EQ(without.report->last_epoch.rows(), 0u);
}

}  // namespace
}  // namespace freshet::train
