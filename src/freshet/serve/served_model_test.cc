#include "serve/served_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "deploy/deployment_testing.h"

namespace freshet::serve {
namespace {

using Json = nlohmann::json;
using std::chrono::seconds;

class AServedModel : public testing::Test {
 protected:
  AServedModel()
      : model("m", world.Open(world.Options("state"), world.Dense()).value(), world.clock, metrics),
        deployment(model.deployment()) {}

  Moment NextSecond() {
    world.clock.Advance(seconds(1));
    return model.Tick();
  }

  deploy::World world;
  base::Metrics metrics;
  ServedModel model;
  deploy::Deployment& deployment;
};

TEST_F(AServedModel, CountsRowsOfPredictionsASecondAndTheSlowestRequests) {
  for (int request = 0; request < 99; ++request) model.ObservePrediction(4, 0.0015);
  Moment moment = NextSecond();
  EXPECT_DOUBLE_EQ(moment.predictions_per_second, 4 * 99);
  EXPECT_DOUBLE_EQ(moment.p99_seconds, 0.002);
  for (int request = 0; request < 10; ++request) model.ObservePrediction(1, request < 9 ? 0.0015 : 0.04);
  moment = NextSecond();
  EXPECT_DOUBLE_EQ(moment.predictions_per_second, 10);
  EXPECT_DOUBLE_EQ(moment.p99_seconds, 0.05);
  moment = NextSecond();
  EXPECT_EQ(moment.predictions_per_second, 0);
  EXPECT_EQ(moment.p99_seconds, 0);
}

TEST_F(AServedModel, TellsTheErrorBetweenTwoMoments) {
  deploy::World::SendMany(deployment, 0, 100);
  const Moment first = NextSecond();
  deploy::World::SendMany(deployment, 100, 60);
  const Moment second = NextSecond();
  EXPECT_EQ(first.rows, 100);
  EXPECT_EQ(second.rows, 160);
  const double between = second.mean_error * second.rows - first.mean_error * first.rows;
  EXPECT_NEAR(between, std::round(between), 1e-6) << "so many of the 60 rows were wrong";
  EXPECT_GE(between, -1e-6);
  EXPECT_LE(between, 60);
}

TEST_F(AServedModel, RemembersTenMinutes) {
  EXPECT_TRUE(Json::parse(model.StatsJson()).at("moment").is_null());
  for (int second = 0; second < 700; ++second) NextSecond();
  const Json history = Json::parse(model.HistoryJson());
  ASSERT_EQ(history.size(), 600u);
  EXPECT_EQ(history.front().at("t"), 101);
  EXPECT_EQ(history.back().at("t"), 700);
  EXPECT_EQ(Json::parse(model.StatsJson()).at("moment"), history.back());
}

TEST_F(AServedModel, ShowsThatItWasRolledBack) {
  deploy::World::SendMany(deployment, 0, 120);
  EXPECT_EQ(NextSecond().roll_backs, 0u);
  std::string answer;
  deployment.PostRollBack(0, {}, false, [&](Result<std::string> result) { answer = result.value(); });
  deployment.Settle();
  EXPECT_EQ(Json::parse(answer).at("version"), "0");
  const Moment moment = NextSecond();
  EXPECT_EQ(moment.roll_backs, 1u);
  const Json versions = Json::parse(model.VersionsJson());
  EXPECT_EQ(versions.at("versions").back().at("origin"), "roll-back");
  EXPECT_EQ(versions.at("versions").back().at("version"), Str(moment.kept));
  EXPECT_EQ(versions.at("current"), Json::parse(model.StatsJson()).at("version"));
}

}  // namespace
}  // namespace freshet::serve
