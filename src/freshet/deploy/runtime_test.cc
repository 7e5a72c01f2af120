#include "deploy/runtime.h"

#include <cmath>

#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

// A history of rows of a linear model.
class RuntimeTest : public testing::Test {
 protected:
  RuntimeTest() {
    for (std::uint64_t n = 0; n < 3000; ++n) {
      std::string payload;
      PackRow(World::Row(*trained.model, n).batch(), 0, {}, payload);
      log.Append(RecordKind::kObservation, payload, 0, 0);
    }
  }
  std::unique_ptr<State> Make() { return State::Make(*trained.model, options, world.memory, {}).value(); }
  World world;
  const model::TrainedModel trained = world.Sparse();
  optimize::OptimizerOptions options;
  MemoryLog log;
  LocalRuntime runtime;
};

TEST_F(RuntimeTest, LearnsTheRowsInTheirOrder) {
  const std::vector<std::uint64_t> numbers = {5, 2, 2999, 2, 1100};
  const auto state = Make(), expected = Make();
  const WorkReport report = runtime.Run(*trained.model, *state, log, {.numbers = numbers, .scale = 0.5}).value();
  std::vector<float> scores;
  double loss = 0;
  for (const std::uint64_t number : numbers) {
    data::Rows row = World::Row(*trained.model, number);
    loss += expected->Repeat(*trained.model, row, 0.5, scores).value();
  }
  EXPECT_EQ(state->parameters.Checksum(), expected->parameters.Checksum());
  EXPECT_EQ(report.rows, 5u);
  EXPECT_DOUBLE_EQ(report.loss, loss / 5);
}

TEST_F(RuntimeTest, VisitsEveryRowInEveryPassAndOftenerIsBetter) {
  const auto numbers = UpTo(3000);
  const auto once = Make(), often = Make(), again = Make();
  const WorkReport one = runtime.Run(*trained.model, *once, log, {.numbers = numbers}).value();
  const WorkReport five =
      runtime.Run(*trained.model, *often, log, {.numbers = numbers, .passes = 5, .seed = 7}).value();
  EXPECT_EQ(one.rows, 3000u);
  EXPECT_EQ(five.rows, 15'000u);
  EXPECT_LT(five.loss, one.loss);
  ASSERT_TRUE(runtime.Run(*trained.model, *again, log, {.numbers = numbers, .passes = 5, .seed = 7}).ok());
  EXPECT_EQ(again->parameters.Checksum(), often->parameters.Checksum());
}

TEST_F(RuntimeTest, TakesNoNumbersAndNumbersOfNothing) {
  const auto state = Make();
  EXPECT_EQ(runtime.Run(*trained.model, *state, log, {}).value().rows, 0u);
  const std::vector<std::uint64_t> numbers = {1, 99'999, 2};
  EXPECT_EQ(runtime.Run(*trained.model, *state, log, {.numbers = numbers}).value().rows, 2u);
}

TEST_F(RuntimeTest, StopsWhenItIsTold) {
  const auto state = Make();
  const auto numbers = UpTo(3000);
  const std::atomic<bool> stop{true};
  EXPECT_EQ(runtime.Run(*trained.model, *state, log, {.numbers = numbers, .stop = &stop}).error().code, Code::kStopped);
}

TEST_F(RuntimeTest, SaysWhenTheLossIsNoLongerFinite) {
  const auto state = Make();
  const auto numbers = UpTo(10);
  ASSERT_TRUE(runtime.Run(*trained.model, *state, log, {.numbers = numbers}).ok());
  state->parameters.Row(0, 0)[0] = std::nanf("");
  EXPECT_EQ(runtime.Run(*trained.model, *state, log, {.numbers = numbers}).error().code, Code::kDiverged);
}

}  // namespace
}  // namespace freshet::deploy
