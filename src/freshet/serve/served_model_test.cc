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
      : model("m", world.Open(world.Options("state"), world.Dense(), {.readers = 1}).value(), world.clock, metrics),
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
  EXPECT_DOUBLE_EQ(*moment.predictions_per_second, 4 * 99);
  EXPECT_DOUBLE_EQ(*moment.p99_seconds, 0.002);
  for (int request = 0; request < 10; ++request) model.ObservePrediction(1, request < 9 ? 0.0015 : 0.04);
  moment = NextSecond();
  EXPECT_DOUBLE_EQ(*moment.predictions_per_second, 10);
  EXPECT_DOUBLE_EQ(*moment.p99_seconds, 0.05);
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

TEST_F(AServedModel, RemembersTenMinutesBySecondsAndTheHoursBefore) {
  EXPECT_TRUE(Json::parse(model.StatsJson()).at("moment").is_null());
  for (int second = 0; second < 20'000; ++second) {
    if (second % 100 == 0) deploy::World::SendMany(deployment, static_cast<std::uint64_t>(second), 1);
    NextSecond();
  }
  const Json history = Json::parse(model.HistoryJson());
  EXPECT_EQ(history.back().at("t"), 20'000);
  EXPECT_EQ(history[history.size() - 600].at("t"), 20'000 - 599);
  EXPECT_GT(history.size(), 600u + 70);
  EXPECT_LT(history.size(), 600u + 150);
  EXPECT_LT(history.front().at("t"), 1300);
  EXPECT_TRUE(history.front().at("p99_seconds").is_null()) << "nobody wrote that down";
  for (std::size_t i = 1; i < history.size(); ++i) {
    EXPECT_GT(history[i].at("t"), history[i - 1].at("t"));
    EXPECT_GE(history[i].at("rows"), history[i - 1].at("rows"));
  }
  EXPECT_EQ(Json::parse(model.StatsJson()).at("moment"), history.back());
}

TEST_F(AServedModel, CountsFeedbackApartFromRowsThatCameWithTheirLabels) {
  model.ObserveLearned({.accepted = 8, .duplicates = 2});
  model.ObserveFeedback({.accepted = 3, .duplicates = 1, .expired = 4});
  const std::string text = metrics.Text();
  for (const char* const line : {"freshet_learn_rows_total{model=\"m\",result=\"accepted\"} 8\n",
                                 "freshet_learn_rows_total{model=\"m\",result=\"duplicate\"} 2\n",
                                 "freshet_feedback_total{model=\"m\",result=\"accepted\"} 3\n",
                                 "freshet_feedback_total{model=\"m\",result=\"duplicate\"} 1\n",
                                 "freshet_feedback_total{model=\"m\",result=\"expired\"} 4\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST_F(AServedModel, CallsWhatOnlyGrowsACounter) {
  deploy::World::SendMany(deployment, 0, 120);
  NextSecond();
  const std::string text = metrics.Text();
  for (const char* const name : {"freshet_iterations_total", "freshet_drifts_total"})
    EXPECT_NE(text.find(Str("# TYPE ", name, " counter\n")), std::string::npos) << name;
  EXPECT_NE(text.find("freshet_iterations_total{model=\"m\"} 2\n"), std::string::npos) << text;
}

TEST_F(AServedModel, TellsLogLossAreaCalibrationAndEveryClassByWindow) {
  EXPECT_FALSE(Json::parse(model.StatsJson()).at("quality").contains("figures"));
  deploy::World::SendMany(deployment, 0, 300);
  const Moment moment = NextSecond();
  const Json figures = Json::parse(model.StatsJson()).at("quality").at("figures");
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].at("window"), 1000);
  EXPECT_EQ(figures[1].at("window"), 100'000);
  EXPECT_EQ(figures[0].at("auc"), *moment.auc);
  EXPECT_EQ(figures[0].at("log_loss"), *moment.log_loss);
  EXPECT_GT(figures[0].at("auc"), 0.8);
  EXPECT_LT(figures[0].at("calibration_error"), 0.3);
  ASSERT_EQ(figures[0].at("classes").size(), 2u);
  EXPECT_EQ(figures[0].at("classes")[1].at("class"), "1");
  EXPECT_GT(figures[0].at("classes")[1].at("recall"), 0.7);
  const std::string text = metrics.Text();
  for (const char* const piece :
       {"freshet_quality{model=\"m\",window=\"last_thousand\",metric=\"auc\"} 0.",
        "freshet_class_quality{model=\"m\",window=\"last_hundred_thousand\",class=\"1\",metric=\"recall\"} 0."})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << "\n" << text;
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
