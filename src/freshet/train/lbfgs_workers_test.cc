// L-BFGS by several workers: the model of one worker, on all of them.

#include "base/random.h"
#include "fabric/threads/threads_testing.h"
#include "model/rows_testing.h"
#include "train/bench_testing.h"

namespace freshet::train {
namespace {

class LbfgsWorkersTest : public testing::Test {
 protected:
  static constexpr int kRows = 180;  // few enough for moments to be exact after every row, however they are found

  Plan Rows(const std::string& kind, const std::string& loss) {
    Plan plan;
    plan.by_lbfgs = true;
    plan.train.epochs = 8;
    plan.optimizer.kind = "sgd";  // as in a job: what remembers nothing beside the rows
    plan.optimizer.l2 = 0.01;
    plan.model.loss = loss;
    plan.input.task = model::FindLoss(loss).value()->task();
    if (loss == "softmax") {
      plan.path = Classes();
      plan.input.label = "kind";
    } else if (loss == "squared") {
      plan.path = Prices();
    } else {
      plan.path =
          kind == "sparse" ? Sparse() : bench_.Generate({.kind = "sea", .rows = kRows, .drift_rows = 10'000}, "sea");
    }
    return plan;
  }
  // Rows that name new features as they go, so that who reads only some knows but some.
  std::string Sparse() {
    base::Random random(5, "rows");
    std::string text;
    for (int row = 0; row < 300; ++row) {
      int sum = 0;
      std::string entries;
      for (int j = 1; j <= row / 4 + 5; ++j)
        if (random.Below(8) == 0) {
          entries += Str(" ", j, ":1");
          sum += j % 2 == 0 ? 1 : -1;
        }
      text += Str(sum + static_cast<int>(random.Below(3)) > 1 ? "+1" : "-1", entries, "\n");
    }
    return bench_.scratch.Write("sparse.svm", text);
  }
  std::string Classes() {
    base::Random random(6, "rows");
    std::string text = "x,y,kind\n";
    for (int row = 0; row < kRows; ++row) {
      const auto kind = random.Below(3);
      text += Str(random.Normal() + (kind == 0 ? 2 : 0), ",", random.Normal() + (kind == 1 ? 2 : 0), ",k", kind, "\n");
    }
    return bench_.scratch.Write("classes.csv", text);
  }
  std::string Prices() {
    base::Random random(7, "rows");
    std::string text = "x,y,price\n";
    for (int row = 0; row < kRows; ++row) {
      const double x = random.Normal(), y = 5 + 3 * random.Normal();
      text += Str(x, ",", y, ",", 1000 + 200 * x - 30 * y + 10 * random.Normal(), "\n");
    }
    return bench_.scratch.Write("prices.csv", text);
  }

  std::vector<BenchOutcome> Together(int workers, const Plan& plan) {
    std::vector<BenchOutcome> outcomes(static_cast<std::size_t>(workers));
    fabric::RunMembers(workers, [&](fabric::Fabric& fabric) {
      outcomes[static_cast<std::size_t>(fabric.rank())] = bench_.RunAs(fabric, plan);
    });
    return outcomes;
  }

  Bench bench_;
};

TEST_F(LbfgsWorkersTest, AnyNumberFindsTheModelOfOneWhateverTheyHoldOfItAndWhoeverHasTheRows) {
  struct Case {
    std::string kind, loss;
  };
  for (const Case& one : {Case{"dense", "logistic"}, Case{"sparse", "logistic"}, Case{"sparse", "hinge"},
                          Case{"dense", "squared"}, Case{"dense", "softmax"}}) {
    Plan plan = Rows(one.kind, one.loss);
    const BenchOutcome alone = bench_.Run(plan);
    ASSERT_TRUE(alone.ok()) << alone.error->text;
    for (const int workers : {1, 2, 3, 5})
      for (const bool whole : {true, false})
        for (const std::string strategy : {"allreduce", "server"}) {
          SCOPED_TRACE(
              Str(one.kind, " ", one.loss, ", ", workers, " by ", strategy, whole ? "" : " of their own rows"));
          plan.strategy.kind = strategy;
          plan.strategy.whole = whole;
          const auto outcomes = Together(workers, plan);
          for (const BenchOutcome& each : outcomes) ExpectSame(each, outcomes[0]);
          if (testing::Test::HasFailure()) return;
          const Report& report = *outcomes[0].report;
          EXPECT_EQ(report.last_epoch.rows(), alone.report->last_epoch.rows());
          EXPECT_EQ(report.rows, alone.report->rows);
          EXPECT_NEAR(report.last_epoch.loss(), alone.report->last_epoch.loss(),
                      1e-5 * alone.report->last_epoch.loss());
          ASSERT_EQ(outcomes[0].weights.size(), alone.weights.size());
          float most = 0;
          for (const auto& block : alone.weights)
            for (const float weight : block) most = std::max(most, std::abs(weight));
          for (std::size_t b = 0; b < alone.weights.size(); ++b) {
            ASSERT_EQ(outcomes[0].weights[b].size(), alone.weights[b].size());
            for (std::size_t i = 0; i < alone.weights[b].size(); ++i)
              EXPECT_NEAR(outcomes[0].weights[b][i], alone.weights[b][i], 1e-4f * most);
          }
        }
  }
  EXPECT_EQ(bench_.scratch.Names().size(), 4u);  // the inputs: what was kept is gone
}

TEST_F(LbfgsWorkersTest, FactorizationMachinesAreOneModelOnAllWorkers) {
  Plan plan = Rows("sparse", "logistic");
  plan.model.kind = "fm";
  plan.model.factors = 4;
  plan.input.joint_ids = true;
  const BenchOutcome alone = bench_.Run(plan);
  ASSERT_TRUE(alone.ok()) << alone.error->text;
  for (const bool whole : {true, false})
    for (const std::string strategy : {"allreduce", "server"}) {
      SCOPED_TRACE(Str(strategy, whole ? "" : " of their own rows"));
      plan.strategy.kind = strategy;
      plan.strategy.whole = whole;
      const auto outcomes = Together(3, plan);
      for (const BenchOutcome& each : outcomes) ExpectSame(each, outcomes[0]);
      EXPECT_NEAR(outcomes[0].report->last_epoch.loss(), alone.report->last_epoch.loss(), 1e-3);
    }
}

TEST_F(LbfgsWorkersTest, MoreWorkersThanRowsFindTheSame) {
  Plan plan = Rows("sparse", "logistic");
  plan.path = bench_.scratch.Write("few", "+1 1:1\n-1 2:1\n+1 1:1 3:1\n");
  const BenchOutcome alone = bench_.Run(plan);
  for (const bool whole : {true, false})
    for (const std::string strategy : {"allreduce", "server"}) {
      plan.strategy.kind = strategy;
      plan.strategy.whole = whole;
      const auto outcomes = Together(5, plan);
      for (const BenchOutcome& each : outcomes) ExpectSame(each, outcomes[0]);
      EXPECT_NEAR(outcomes[0].report->last_epoch.loss(), alone.report->last_epoch.loss(), 1e-5);
    }
}

TEST_F(LbfgsWorkersTest, WhatStopsOneStopsAllWhereverTheyAre) {
  for (const bool whole : {true, false})
    for (const std::string strategy : {"allreduce", "server"})
      for (const int stop_at : {1, 2, 5}) {
        SCOPED_TRACE(Str(strategy, whole ? ", " : " of their own rows, ", stop_at));
        Plan plan = Rows("sparse", "logistic");
        plan.strategy.kind = strategy;
        plan.strategy.whole = whole;
        plan.stop_at = stop_at;  // rank 0 alone is told
        for (const BenchOutcome& each : Together(3, plan)) {
          ASSERT_FALSE(each.ok());
          EXPECT_EQ(each.code(), Code::kStopped) << each.error->text;
        }
      }
}

// One block of rows; who is told stops while it is read.
class OneBlock final : public data::RowSource {
 public:
  OneBlock(const data::Rows& rows, std::atomic<bool>* stop) : rows_(rows), stop_(stop) {}
  Result<bool> Next(data::Rows& rows) override {
    if (read_.exchange(true)) return false;
    if (stop_ != nullptr) *stop_ = true;
    rows.Clear();
    for (std::size_t r = 0; r < rows_.size(); ++r) rows.AppendRow(rows_.batch(), r);
    return true;
  }
  Result<void> Finish(data::Rows&) override { return {}; }
  Result<void> Seek(const data::Position&) override { return {}; }
  std::optional<double> Fraction(const data::Position&) const override { return std::nullopt; }

 private:
  const data::Rows& rows_;
  std::atomic<bool>* const stop_;
  std::atomic<bool> read_ = false;
};

TEST_F(LbfgsWorkersTest, WhoIsStoppedWhileReadingStopsAllBeforeTheFirstStep) {
  data::Rows rows;
  for (std::uint32_t r = 0; r < 10; ++r) {
    model::AddSparse(rows, static_cast<float>(r % 2), {{r, 1.0f}});
    rows.samples.Append(r);
  }
  fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
    fabric::Collectives collectives(fabric);
    strategy::FullBatch together({}, {&collectives, bench_.clock});
    base::Log log(bench_.clock, [](std::string_view) {});
    base::InlineExecutor executor;
    const base::Env env{bench_.files, bench_.clock, log, executor, bench_.faults};
    const auto model = model::Model::Make({}).value();
    optimize::HeapMemory memory;
    auto parameters = model->NewParameters(memory).value();
    data::Description description;
    std::atomic<bool> stop = false;
    TrainOptions options;
    options.scratch_directory = bench_.scratch.path();
    options.stop = &stop;
    OneBlock source(rows, fabric.rank() == 1 ? &stop : nullptr);
    const auto report = TrainByLbfgs(env, options, *model, parameters, description, source, 0, together);
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().code, Code::kStopped) << report.error().text;
    EXPECT_EQ(together.times().steps, 0u);
  });
  EXPECT_TRUE(bench_.scratch.Names().empty());
}

TEST_F(LbfgsWorkersTest, WhatOneCannotReadEndsAllWithThatCause) {
  Plan plan = Rows("sparse", "logistic");
  std::string text;
  for (int row = 0; row < 400; ++row) text += row % 2 == 0 ? "+1 1:1 2:1\n" : "-1 1:1 3:1\n";
  plan.path = bench_.scratch.Write("bad", text + "+1 2:x\n");
  plan.strategy.whole = false;
  int bad = 0;
  for (const BenchOutcome& each : Together(3, plan)) {
    ASSERT_FALSE(each.ok());
    bad += each.code() == Code::kBadInput ? 1 : 0;
  }
  EXPECT_GE(bad, 1);
}

}  // namespace
}  // namespace freshet::train
