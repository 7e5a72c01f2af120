#include "deploy/state.h"

#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

std::vector<double> Everything(const State& state) {
  std::vector<double> all;
  const auto add = [&](const std::vector<float>& values) { all.insert(all.end(), values.begin(), values.end()); };
  for (std::size_t b = 0; b < state.parameters.blocks(); ++b) {
    add(state.parameters.Gather(b));
    add(state.parameters.GatherBeside(b));
    add(state.optimizer->state().Gather(b));
  }
  for (const double value : state.moments.Save()) all.push_back(value);
  for (const double value : {state.target.mean(), state.target.deviation(), state.target.squares()})
    all.push_back(value);
  all.push_back(static_cast<double>(state.optimizer->step()));
  return all;
}

// Every kind of model with every optimizer.
class EveryState : public testing::TestWithParam<std::tuple<int, std::string>> {
 protected:
  EveryState()
      : trained(std::get<0>(GetParam()) == 0   ? world.Dense()
                : std::get<0>(GetParam()) == 1 ? world.Sparse()
                : std::get<0>(GetParam()) == 2 ? world.Ratings()
                                               : world.Prices()) {
    options.kind = std::get<1>(GetParam());
    options.schedule.rate = 0.05;
    options.schedule.kind = "inverse";
  }
  std::unique_ptr<State> Make() {
    auto state = State::Make(*trained.model, options, world.memory,
                             trained.description.standardise ? trained.description.moments : data::Moments())
                     .value();
    state->target = trained.description.target;
    return state;
  }
  // Rows first … end-1 in one arena.
  data::Rows Rows(std::uint64_t first, std::uint64_t end) {
    data::Rows rows;
    rows.width = trained.model->config().dense ? trained.model->config().features : 0;
    rows.ClearRows();
    for (std::uint64_t n = first; n < end; ++n) {
      std::vector<data::NewName> names;
      data::Rows row = World::Row(*trained.model, n, &names);
      data::AddNames(names, trained.description, row);
      rows.AppendRow(row.batch(), 0);
    }
    return rows;
  }
  void Learn(State& state, std::uint64_t first, std::uint64_t end) {
    data::Rows rows = Rows(first, end);
    ASSERT_TRUE(state.Learn(*trained.model, rows, scores).ok());
  }
  World world;
  model::TrainedModel trained;
  optimize::OptimizerOptions options;
  std::vector<float> scores;
};
INSTANTIATE_TEST_SUITE_P(All, EveryState,
                         testing::Combine(testing::Range(0, 4), testing::ValuesIn(optimize::Optimizer::Kinds())));

TEST_P(EveryState, LearnsTheSameHoweverRowsAreBatched) {
  const auto together = Make(), apart = Make();
  ASSERT_NO_FATAL_FAILURE(Learn(*together, 0, 60));
  base::Random random(3, "batches");
  for (std::uint64_t n = 0; n < 60;) {
    const std::uint64_t end = std::min<std::uint64_t>(60, n + 1 + random.Below(9));
    ASSERT_NO_FATAL_FAILURE(Learn(*apart, n, end));
    n = end;
  }
  EXPECT_EQ(Everything(*apart), Everything(*together));
}

TEST_P(EveryState, ACopyGoesOnAsTheOriginalDoes) {
  const auto original = Make(), copy = Make();
  ASSERT_NO_FATAL_FAILURE(Learn(*original, 0, 30));
  for (int round = 0; round < 3; ++round) {  // the second time there is memory already
    ASSERT_TRUE(copy->CanTake(*original));
    ASSERT_TRUE(copy->CopyFrom(*original).ok());
    ASSERT_EQ(Everything(*copy), Everything(*original));
    const std::uint64_t next = 30 + 10 * static_cast<std::uint64_t>(round);
    ASSERT_NO_FATAL_FAILURE(Learn(*original, next, next + 10));
    ASSERT_NE(Everything(*copy), Everything(*original));
    ASSERT_NO_FATAL_FAILURE(Learn(*copy, next, next + 10));
    ASSERT_EQ(Everything(*copy), Everything(*original));
  }
}

TEST_P(EveryState, RepeatingRowsChangesWeightsAtItsOwnRateAndNoMoments) {
  const auto state = Make(), still = Make(), other = Make();
  for (State* const each : {state.get(), still.get(), other.get()}) ASSERT_NO_FATAL_FAILURE(Learn(*each, 0, 30));
  const auto weights = state->parameters.Checksum();
  const auto moments = state->moments.Save();
  const double rate = state->optimizer->rate();
  const auto repeat = [&](State& each, double scale) {
    data::Rows rows = Rows(0, 30);
    ASSERT_TRUE(each.Repeat(*trained.model, rows, scale, scores).ok());
  };
  repeat(*state, 1);
  repeat(*other, 0.1);
  EXPECT_NE(state->parameters.Checksum(), weights);
  EXPECT_NE(state->parameters.Checksum(), other->parameters.Checksum());
  EXPECT_EQ(state->moments.Save(), moments);
  EXPECT_LE(state->optimizer->rate(), rate);  // afterwards it is as the schedule says
  EXPECT_EQ(state->optimizer->rate(), other->optimizer->rate());
}

TEST(State, CannotTakeOneWithFewerRows) {
  World world;
  const auto trained = world.Sparse();
  const auto small = State::Make(*trained.model, {}, world.memory, {}).value();
  const auto large = State::Make(*trained.model, {}, world.memory, {}).value();
  std::vector<float> scores;
  data::Rows rows = World::Row(*trained.model, 1);
  ASSERT_TRUE(large->Learn(*trained.model, rows, scores).ok());
  EXPECT_TRUE(small->CanTake(*large));
  EXPECT_FALSE(large->CanTake(*small));
}

}  // namespace
}  // namespace freshet::deploy
