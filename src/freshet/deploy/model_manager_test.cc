#include "deploy/model_manager.h"

#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

class ManagerOf : public testing::TestWithParam<int> {
 protected:
  ManagerOf() : trained(GetParam() == 0 ? world.Dense() : GetParam() == 1 ? world.Sparse() : world.Ratings()) {}
  std::unique_ptr<ModelManager> Make(int readers = 1) {
    auto manager = std::make_unique<ModelManager>(*trained.model, trained.description, optimize::OptimizerOptions(),
                                                  world.memory, readers, nullptr);
    EXPECT_TRUE(manager->Begin(nullptr).ok());
    return manager;
  }
  data::Rows Row(ModelManager& manager, std::uint64_t n) {
    std::vector<data::NewName> names;
    data::Rows row = World::Row(*trained.model, n, &names);
    data::AddNames(names, manager.description(), row);
    return row;
  }
  void Learn(ModelManager& manager, std::uint64_t first, std::uint64_t end) {
    std::vector<float> scores;
    for (std::uint64_t n = first; n < end; ++n) {
      data::Rows row = Row(manager, n);
      ASSERT_TRUE(manager.Update(row, scores).ok());
    }
  }
  static std::vector<double> Everything(const State& state) {
    std::vector<double> all;
    for (std::size_t b = 0; b < state.parameters.blocks(); ++b)
      for (const auto& values :
           {state.parameters.Gather(b), state.parameters.GatherBeside(b), state.optimizer->state().Gather(b)})
        all.insert(all.end(), values.begin(), values.end());
    for (const double value : state.moments.Save()) all.push_back(value);
    all.push_back(static_cast<double>(state.optimizer->step()));
    return all;
  }
  World world;
  model::TrainedModel trained;
};
INSTANTIATE_TEST_SUITE_P(EveryModel, ManagerOf, testing::Values(0, 1, 2));

TEST_P(ManagerOf, PredictsByWhatWasPublishedLast) {
  const auto manager = Make();
  Learn(*manager, 0, 30);
  model::Workspace workspace;
  std::vector<float> before, after, learning;
  data::Rows row = Row(*manager, 3);
  EXPECT_EQ(manager->Predict(0, row, workspace, before), 0u);
  EXPECT_TRUE(manager->dirty());
  ASSERT_TRUE(manager->Publish(30).value());
  EXPECT_FALSE(manager->dirty());
  row = Row(*manager, 3);
  EXPECT_EQ(manager->Predict(0, row, workspace, after), 30u);
  EXPECT_NE(before, after);
  row = Row(*manager, 3);
  ASSERT_TRUE(manager->Foresee(row, learning).ok());
  EXPECT_EQ(after, learning);
}

TEST_P(ManagerOf, ACopyTakenPieceByPieceIsThatOfTheMoment) {
  for (const std::uint64_t bytes : {1u, 100u, 1000u, 1'000'000u}) {
    SCOPED_TRACE(bytes);
    base::Random random(bytes, "pieces");
    const auto manager = Make();
    Learn(*manager, 0, 50);
    for (std::uint64_t n = 50, round = 0; round < 5; ++round) {
      for (bool complete = false; !complete;) {
        const std::uint64_t rows = random.Below(3);
        Learn(*manager, n, n + rows);
        n += rows;
        complete = manager->CopySome(bytes).value();
      }
      const auto copy = manager->Copy().value();
      ASSERT_EQ(Everything(*copy), Everything(manager->state()));
      const auto other = manager->Copy().value();  // at once
      ASSERT_EQ(Everything(*other), Everything(manager->state()));
    }
  }
}

TEST_P(ManagerOf, ACopyThatWasOvertakenIsMadeAnew) {
  const auto manager = Make();
  Learn(*manager, 0, 20);
  while (!manager->CopySome(1000).value()) continue;
  Learn(*manager, 20, 40);
  EXPECT_EQ(Everything(*manager->Copy().value()), Everything(manager->state()));
  while (!manager->CopySome(1000).value()) continue;
  manager->Fade(0.1);
  EXPECT_EQ(Everything(*manager->Copy().value()), Everything(manager->state()));
  (void)manager->CopySome(1).value();
  auto other = manager->NewState().value();
  ASSERT_TRUE(manager->TakeOver(std::move(other), {}, optimize::RowSets(trained.model->Blocks().size())).ok());
  EXPECT_EQ(Everything(*manager->Copy().value()), Everything(manager->state()));
}

TEST_P(ManagerOf, AnIterationIsTrainedApartAndTakesOver) {
  const auto manager = Make();
  MemoryLog log;
  for (std::uint64_t n = 0; n < 200; ++n) {
    std::string payload;
    PackRow(Row(*manager, n).batch(), 0, {}, payload);
    log.Append(RecordKind::kObservation, payload, 0, 0);
  }
  Learn(*manager, 0, 200);
  ASSERT_TRUE(manager->Publish(1).value());
  const auto error = [&] {
    data::Rows rows;
    rows.width = trained.model->config().dense ? trained.model->config().features : 0;
    rows.ClearRows();
    EXPECT_TRUE(log.Read(UpTo(200), rows).ok());
    return manager->ErrorRate(0, rows);
  };
  const double before = error();
  LocalRuntime runtime;
  const auto numbers = UpTo(200);
  const WorkReport report = manager->UpdateIteration(runtime, log, {.numbers = numbers, .passes = 10}, 2).value();
  EXPECT_EQ(report.rows, 2000u);
  EXPECT_EQ(manager->Read(0)->version, 2u);
  EXPECT_LE(error(), before);
}

TEST_P(ManagerOf, WithoutReadersPublishesNothing) {
  const auto manager = Make(0);
  Learn(*manager, 0, 10);
  EXPECT_FALSE(manager->dirty());
  EXPECT_TRUE(manager->Publish(1).value());
}

}  // namespace
}  // namespace freshet::deploy
