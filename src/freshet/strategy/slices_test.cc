// Slices of wide layers: one worker of the whole batch, whoever computes which part of a layer.

#include "strategy/slices.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/option.h"
#include "model/network/slicing.h"
#include "strategy/ring/ring_testing.h"

namespace freshet::strategy {
namespace {

using ring::Made;
using ring::TrainAlone;
using ring::TrainRing;

// Rows with numbers, as a trainer hands them out: dropout goes by these, whoever computes a row.
Task NumberedTask(const std::string& name) {
  Task task = ring::RingTask(name);
  for (std::uint64_t row = 0; row < task.rows.size(); ++row) task.rows.samples.Append(row);
  return task;
}

StrategyOptions Options(std::uint64_t batch = 24) {
  StrategyOptions options;
  options.kind = "slices";
  options.slice_all = true;
  options.batch = batch;
  options.micro = 1;  // of the one worker they are compared with
  options.bucket_bytes = 64;
  return options;
}

double LossOf(const std::vector<Made>& runs) {
  double sum = 0;
  for (const Made& run : runs) sum += std::accumulate(run.losses.begin(), run.losses.end(), 0.0);
  return sum;
}

void ExpectSerial(const Task& task, int workers, const StrategyOptions& options,
                  const ring::Group& group = ring::OnThreads) {
  const auto batch = static_cast<std::size_t>(options.batch);
  const std::vector<std::size_t> sizes = {batch, batch - 1, 3};  // of which some workers have less, or none
  for (const std::size_t steps : {1, 8}) {
    SCOPED_TRACE(Str(steps, " steps of ", task.name, " by ", workers, " workers"));
    const Made alone = TrainAlone(task, options, sizes, steps);
    const std::vector<Made> runs = TrainRing(task, workers, options, sizes, steps, group);
    for (const Made& run : runs) {
      ASSERT_EQ(run.weights.size(), alone.weights.size());
      EXPECT_EQ(run.weights, runs[0].weights);
      EXPECT_EQ(run.state, runs[0].state);
    }
    if (steps == 1) {
      EXPECT_LE(Distance(alone.weights, runs[0].weights), 1e-5);
      if (!alone.state.empty()) {
        EXPECT_LE(Distance(alone.state, runs[0].state), 1e-5);
      }
    }
    const double loss = LossOf({alone});
    ASSERT_TRUE(std::isfinite(loss));
    EXPECT_NEAR(LossOf(runs), loss, (steps == 1 ? 1e-5 : 5e-3) * loss);
  }
}

class SlicesOf : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Networks, SlicesOf, testing::Values("perceptron", "branches", "normalised", "autoencoder"),
                         [](const auto& p) { return p.param; });

TEST_P(SlicesOf, AreOneWorkerOfTheWholeBatch) {
  const Task task = NumberedTask(GetParam());
  for (const int workers : {1, 2, 3, 4, 8}) ExpectSerial(task, workers, Options());
}

TEST_P(SlicesOf, MayBeComputedInParts) {
  StrategyOptions options = Options();
  options.accumulate = 3;
  if (GetParam() != "normalised") ExpectSerial(NumberedTask(GetParam()), 4, options);  // whose statistics are of parts
}

TEST_P(SlicesOf, InGroupsAreOneWorkerOfTheWholeBatch) {
  StrategyOptions options = Options();
  options.kind = "hybrid";
  options.batch_norm = "local";
  if (GetParam() == "normalised") return;  // whose statistics are then of each worker's rows
  for (const auto& [group, workers] : {std::pair{1, 2}, {2, 2}, {2, 4}, {3, 6}, {2, 8}}) {
    options.group = group;
    ExpectSerial(NumberedTask(GetParam()), workers, options);
  }
}

TEST_P(SlicesOf, GivesTheSameBytesTwiceAndInSimulatedTime) {
  const Task task = NumberedTask(GetParam());
  const auto first = TrainRing(task, 3, Options(), {24, 23, 2}, 8);
  EXPECT_EQ(TrainRing(task, 3, Options(), {24, 23, 2}, 8)[1].weights, first[1].weights);
  EXPECT_EQ(TrainRing(task, 3, Options(), {24, 23, 2}, 8, ring::InSimulatedTime)[1].weights, first[1].weights);
}

TEST(Slices, OfLeNetAreOneWorkerOfTheWholeBatch) {
  ExpectSerial(NumberedTask("lenet5"), 2, Options());  // what enters its dense layers comes from convolutions
}

TEST(Slices, WithoutOverlapAndByCodecsForTheRest) {
  StrategyOptions options = Options();
  options.overlap = false;
  ExpectSerial(NumberedTask("branches"), 3, options);
  options.codec = "fp16";
  const Made alone = TrainAlone(NumberedTask("branches"), options, {24}, 8);
  EXPECT_LE(Distance(alone.weights, TrainRing(NumberedTask("branches"), 3, options, {24}, 8)[0].weights), 5e-3);
}

// The perceptron's layers, 10 to 12 and 12 to 3, by three workers. Biases and what is whole are summed.
TEST(Slices, SendWhatGoesInAndOutOfThem) {
  using model::network::NumbersSent;
  using Cut = model::network::Slicing::Cut;
  static constexpr model::network::Wide kFirst{10, 12, false}, kSecond{12, 3};
  const Task task = NumberedTask("perceptron");
  const std::vector<std::size_t> sizes = {24};
  const auto sent = [&](StrategyOptions options, std::size_t steps) {
    std::uint64_t bytes = 0;
    options.overlap = false;
    for (const Made& run : TrainRing(task, 3, options, sizes, steps))
      bytes += run.times.bytes_sent + run.times.bytes_shared;
    return bytes;
  };
  // Of a step alone: what is told at the end is the same after any number of steps.
  const auto of_step = [&](const StrategyOptions& options) { return sent(options, 4) - sent(options, 3); };
  StrategyOptions plain = Options();
  plain.kind = "allreduce";
  const auto numbers = [&](Cut first, Cut second) {
    return NumbersSent(first, kFirst, 3, 24) + NumbersSent(second, kSecond, 3, 24);
  };
  // Each of two others is brought a third of ten numbers of a row or all ten, and so on.
  EXPECT_DOUBLE_EQ(numbers(Cut::kOutputs, Cut::kInputs), 16 * (10 + 4 + 4) + 16 * 2 * (4 + 3));
  EXPECT_LT(numbers(Cut::kOutputs, Cut::kInputs), numbers(Cut::kInputs, Cut::kInputs));
  EXPECT_LT(numbers(Cut::kOutputs, Cut::kInputs), numbers(Cut::kOutputs, Cut::kOutputs));
  const double more = 3 * sizeof(float) * (numbers(Cut::kOutputs, Cut::kInputs) - numbers(Cut::kWhole, Cut::kWhole));
  EXPECT_NEAR(static_cast<double>(of_step(Options())) - static_cast<double>(of_step(plain)), more, 0.1 * more);
}

TEST(Slices, AreOfLayersWhereLessTravels) {
  using model::network::CutIntoSlices;
  using Cut = model::network::Slicing::Cut;
  model::network::Graph graph({4000});
  const int wide = graph.Relu(graph.Dense(0, 1000, "wide"));
  const int out = graph.Dense(wide, 8, "scores");
  graph.AddHead(out);
  const auto facts = model::network::Infer(graph).value();
  const auto few = CutIntoSlices(graph, facts, 4, 4);
  EXPECT_EQ(few[1], Cut::kInputs);
  EXPECT_EQ(few[static_cast<std::size_t>(out)], Cut::kInputs);  // 1,032 numbers of four rows each, of 8,000
  const auto some = CutIntoSlices(graph, facts, 4, 256);
  EXPECT_EQ(some[1], Cut::kInputs);
  EXPECT_EQ(some[static_cast<std::size_t>(out)], Cut::kWhole);
  const auto many = CutIntoSlices(graph, facts, 4, 4096);
  EXPECT_EQ(many[1], Cut::kWhole);
  EXPECT_EQ(CutIntoSlices(graph, facts, 4, 4096, true)[1], Cut::kInputs);
  EXPECT_EQ(CutIntoSlices(graph, facts, 1, 4)[1], Cut::kWhole);
}

TEST(Slices, SayWhatTheyCannotDo) {
  const auto error = [](const Task& task, const StrategyOptions& options) {
    std::string text;
    fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
      TestLearner learner(task);
      fabric::Collectives collectives(fabric);
      const auto made = Strategy::Make(options, learner.World(collectives));
      ASSERT_FALSE(made.ok());
      if (fabric.rank() == 0) text = made.error().text;
    });
    return text;
  };
  EXPECT_EQ(error(MakeTask("linear", 50, 1), Options()), Str(Option("strategy"), " slices is for networks, not for ",
                                                             Option("model"), " linear; use ring or allreduce"));
  StrategyOptions options = Options(200);
  options.slice_all = false;
  EXPECT_EQ(
      error(NumberedTask("perceptron"), options),
      Str(Option("strategy"), " slices: with 200 rows in an update of 2 workers no fully connected layer is so wide ",
          "that less would travel; use allreduce, or ", Option("slice-all"), " to cut them all the same"));
  options = Options();
  options.whole = false;
  EXPECT_NE(error(NumberedTask("perceptron"), options).find("does not go with"), std::string::npos);
  options = Options();
  options.kind = "hybrid";
  options.group = 3;
  EXPECT_EQ(error(NumberedTask("perceptron"), options), Str(Option("group"), " 3 does not divide 2 workers"));
  options.group = 2;
  EXPECT_EQ(error(NumberedTask("normalised"), options),
            Str(Option("strategy"), " hybrid does not go with ", Option("batch-norm"),
                " together: groups compute apart; use local"));
  options.codec = "fp16";
  EXPECT_EQ(error(NumberedTask("perceptron"), options),
            Str(Option("strategy"), " hybrid does not go with ", Option("codec"), " fp16; leave it out"));
}

}  // namespace
}  // namespace freshet::strategy
