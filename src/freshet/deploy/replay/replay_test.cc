#include "deploy/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/random.h"
#include "base/thread_pool.h"
#include "deploy/deployment_testing.h"
#include "deploy/replay/tune.h"

namespace freshet::deploy {
namespace {

// Dense rows whose label is the sign of a plane that turns over in the middle of the feed.
Feed TurningPlane(std::size_t rows, bool turns = true) {
  Feed feed;
  feed.rows.width = 3;
  feed.rows.ClearRows();
  base::Random random(3, "plane");
  for (std::size_t r = 0; r < rows; ++r) {
    float sum = 0;
    for (int f = 0; f < 3; ++f) {
      const auto x = static_cast<float>(random.Normal());
      feed.rows.dense.Append(x + 5.0f);
      sum += x;
    }
    feed.rows.labels.Append((sum > 0) != (turns && r > rows / 2) ? 1.0f : 0.0f);
  }
  feed.description = World().Dense().description;
  feed.most_label = 1;
  return feed;
}

// Ratings of users with tastes for items with the same, at random times.
Feed Ratings(std::size_t rows, bool timed = true) {
  Feed feed;
  feed.rows.ClearRows();
  base::Random random(4, "ratings");
  for (std::size_t r = 0; r < rows; ++r) {
    const auto user = static_cast<std::uint32_t>(random.Below(40)), item = static_cast<std::uint32_t>(random.Below(60));
    feed.rows.labels.Append(static_cast<float>(1 + user % 3 + item % 3));
    const std::uint32_t entries[] = {user, item};
    const float values[] = {1, 1};
    feed.rows.indices.Append(std::span(entries));
    feed.rows.values.Append(std::span(values));
    feed.rows.offsets.Append(static_cast<std::uint32_t>(feed.rows.indices.size()));
    if (timed) feed.rows.times.Append(static_cast<std::int64_t>(random.Below(rows / 2)));
  }
  feed.description = World().Ratings().description;
  feed.least_label = 1, feed.most_label = 5;
  return feed;
}

ReplayOptions OptionsFor(const Feed& feed) {
  ReplayOptions options;
  World world;
  options.model = feed.ratings() ? world.Ratings().model->config() : world.Dense().model->config();
  options.deployment.optimizer.kind = feed.ratings() ? "adaptive" : "adagrad";
  options.deployment.optimizer.schedule.rate = 0.1;
  options.deployment.schedule.max_buffer_size = 100;
  options.deployment.retrain_epochs = options.initial_epochs = 3;
  options.course.test_rows = feed.ratings() ? feed.size() / 20 : 0;
  return options;
}

const ReplayRun& RunOf(const ReplayReport& report, Method method) {
  return *std::find_if(report.runs.begin(), report.runs.end(), [&](const auto& run) { return run.method == method; });
}

// Everything of a report that does not depend on the clock.
std::vector<double> Outcome(const ReplayReport& report) {
  std::vector<double> all;
  for (const ReplayRun& run : report.runs) {
    all.insert(all.end(), {static_cast<double>(run.method), static_cast<double>(run.seed), run.mean_error,
                           run.final_error, static_cast<double>(run.steps), static_cast<double>(run.iterations)});
    for (const ReplayPoint& point : run.curve) all.insert(all.end(), {point.error, point.mean});
  }
  return all;
}

TEST(Course, ArrivalsComeByTimeAndTiesAsTheyStand) {
  const Feed feed = Ratings(500);
  const Course course = Course::Make(feed, {Order::kAuto, 0, 0.1, 1}).value();
  data::Rows rows;
  rows.ClearRows();
  for (std::size_t arrival = 0; arrival < course.size(); ++arrival) course.Append(arrival, rows);
  std::vector<std::pair<std::int64_t, float>> expected;
  for (std::size_t r = 0; r < feed.size(); ++r) expected.emplace_back(feed.rows.times[r], feed.rows.labels[r]);
  std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t r = 0; r < feed.size(); ++r) {
    ASSERT_EQ(rows.times[r], expected[r].first);
    ASSERT_EQ(rows.labels[r], expected[r].second);
  }
}

TEST(Course, UsersAreNumberedAsTheyAreFirstTrainedOnAndTestRowsNeverBringOne) {
  const Feed feed = Ratings(300);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const Course course = Course::Make(feed, {Order::kAuto, 100, 0.1, seed}).value();
    std::uint32_t next[2] = {0, 0};
    std::size_t tested = 0;
    std::set<std::uint32_t> known[2], met_in_tests[2];
    for (std::size_t arrival = 0; arrival < course.size(); ++arrival) {
      data::Rows rows;
      rows.ClearRows();
      course.Append(arrival, rows);
      tested += course.tested(arrival);
      for (int side = 0; side < 2; ++side) {
        const std::uint32_t number = rows.indices[static_cast<std::size_t>(side)];
        if (course.tested(arrival)) {
          met_in_tests[side].insert(number);
        } else {
          ASSERT_LE(number, next[side]);
          next[side] = std::max(next[side], number + 1);
          known[side].insert(number);
        }
      }
    }
    EXPECT_EQ(tested, 100u);
    for (int side = 0; side < 2; ++side)
      for (const std::uint32_t number : met_in_tests[side])
        EXPECT_TRUE(number == data::kUnseen || known[side].contains(number));
  }
}

TEST(Course, RefusesWhatCannotBeReplayed) {
  const Feed untimed = Ratings(100, false), few = Ratings(5);
  EXPECT_EQ(Course::Make(untimed, {Order::kTime, 0, 0.1, 1}).error().code, Code::kInvalid);
  EXPECT_EQ(Course::Make(untimed, {Order::kFile, 100, 0.1, 1}).error().code, Code::kInvalid);
  EXPECT_EQ(Course::Make(untimed, {Order::kFile, 0, 1, 1}).error().code, Code::kInvalid);
  EXPECT_EQ(Course::Make(few, {Order::kFile, 0, 0.1, 1}).error().code, Code::kBadInput);
}

TEST(Replay, IsTheSameEveryTimeAndForAnyNumberOfThreads) {
  for (const bool ratings : {false, true}) {
    const Feed feed = ratings ? Ratings(1200) : TurningPlane(1200);
    ReplayOptions options = OptionsFor(feed);
    options.seeds = 2;
    World world;
    const auto alone = Outcome(Replay(world.env, options, feed).value());
    base::ThreadPool pool(3);
    const base::Env env{world.files, world.clock, world.log, pool, world.faults};
    EXPECT_EQ(alone, Outcome(Replay(env, options, feed).value()));
    options.seed = 5;
    EXPECT_NE(alone, Outcome(Replay(world.env, options, feed).value()));
  }
}

TEST(Replay, CountsTheStepsOfTrainingAndNotThoseOfArrivals) {
  const Feed feed = TurningPlane(1000, false);
  ReplayOptions options = OptionsFor(feed);
  options.deployment.drift = "none";
  options.deployment.retrain_rows = 300;
  options.deployment.data.rate.rate = 0;
  World world;
  const ReplayReport report = Replay(world.env, options, feed).value();
  EXPECT_EQ(report.initial, 100u);
  EXPECT_EQ(RunOf(report, Method::kBaseline).steps, 300u);
  EXPECT_EQ(RunOf(report, Method::kBaselinePlus).steps, 300u);
  EXPECT_EQ(RunOf(report, Method::kVelox).steps, 300u + 3 * (400u + 700u + 1000u));
  EXPECT_EQ(RunOf(report, Method::kVelox).iterations, 3u);
  EXPECT_EQ(RunOf(report, Method::kContinuous).steps, 300u + 900u);
  EXPECT_EQ(RunOf(report, Method::kContinuous).iterations, 9u);
  EXPECT_EQ(RunOf(report, Method::kStatic).steps, 3000u);
}

TEST(Replay, RefusesAModelThatIsNeverWrong) {
  ReplayOptions options = OptionsFor(TurningPlane(10));
  ASSERT_TRUE(options.Validate().ok());
  options.model.kind = "kmeans";
  EXPECT_EQ(options.Validate().error().text, "kmeans has no labels to be wrong about; replay needs a model that has");
}

TEST(Replay, RetrainsFiveTimesUnlessTold) {
  const Feed feed = TurningPlane(1000, false);
  ReplayOptions options = OptionsFor(feed);
  options.methods = {Method::kVelox};
  World world;
  const ReplayReport report = Replay(world.env, options, feed).value();
  EXPECT_EQ(report.retrain_rows, 151u);  // a sixth would come when nothing is left to predict
  EXPECT_EQ(report.runs[0].iterations, 5u);
}

TEST(Replay, WhoLearnsFollowsATurnAndWhoDoesNotStaysWrong) {
  const Feed feed = TurningPlane(4000);
  World world;
  const ReplayReport report = Replay(world.env, OptionsFor(feed), feed).value();
  EXPECT_GT(RunOf(report, Method::kBaseline).final_error, 0.9);
  EXPECT_LT(RunOf(report, Method::kBaselinePlus).final_error, RunOf(report, Method::kBaseline).final_error / 2);
  EXPECT_LT(RunOf(report, Method::kContinuous).final_error, 0.3);
  // Means are over the arrivals, all of them: half of these were wrong.
  EXPECT_NEAR(RunOf(report, Method::kBaseline).mean_error, 0.55, 0.05);
}

TEST(Replay, PrequentialErrorsAreThoseOfAPlainLoop) {
  const Feed feed = TurningPlane(600, false);
  ReplayOptions options = OptionsFor(feed);
  options.methods = {Method::kBaselinePlus};
  World world;
  const ReplayReport report = Replay(world.env, options, feed).value();

  const auto model = model::Model::Make(options.model).value();
  const Course course = Course::Make(feed, {Order::kFile, 0, 0.1, 1}).value();
  data::Moments moments(3);
  data::Rows rows;
  rows.width = 3;
  rows.ClearRows();
  for (std::size_t arrival = 0; arrival < 60; ++arrival) {
    course.Append(arrival, rows);
    moments.Observe(&rows.dense[arrival * 3]);
  }
  const auto state = State::Make(*model, options.deployment.optimizer, world.memory, moments).value();
  auto numbers = course.Trained(0, 60);
  base::Random random(1, "initial training");
  for (std::size_t left = numbers.size(); left > 1; --left) std::swap(numbers[left - 1], numbers[random.Below(left)]);
  LocalRuntime runtime;
  ASSERT_TRUE(runtime.Run(*model, *state, course, {numbers, 3, 1, 1, nullptr}).ok());
  double wrong = 0;
  std::vector<float> scores;
  for (std::size_t arrival = 60; arrival < 600; ++arrival) {
    rows.ClearRows();
    course.Append(arrival, rows);
    ASSERT_TRUE(state->Learn(*model, rows, scores).ok());
    wrong += (scores[0] > 0) != (rows.labels[0] > 0.5f);
  }
  EXPECT_DOUBLE_EQ(report.runs[0].mean_error, wrong / 540);
}

TEST(Replay, AMoreOftenTestedModelHasTheSameFinalError) {
  const Feed feed = Ratings(2000);
  ReplayOptions options = OptionsFor(feed);
  World world;
  const ReplayReport every = Replay(world.env, options, feed).value();
  options.test_every = 10;
  const ReplayReport seldom = Replay(world.env, options, feed).value();
  for (std::size_t i = 0; i < every.runs.size(); ++i) {
    EXPECT_EQ(every.runs[i].final_error, seldom.runs[i].final_error);
    EXPECT_NEAR(every.runs[i].mean_error, seldom.runs[i].mean_error, 0.05);
  }
  // There is something to learn, and learning goes on helps.
  EXPECT_LT(RunOf(every, Method::kContinuous).mean_error, RunOf(every, Method::kBaseline).mean_error);
}

TEST(Replay, SumsUpSeedBySeed) {
  ReplayReport report;
  const auto add = [&](Method method, std::uint64_t seed, double error, std::uint64_t steps) {
    ReplayRun& run = report.runs.emplace_back();
    run.method = method, run.seed = seed, run.mean_error = error, run.steps = steps;
  };
  add(Method::kVelox, 1, 0.2, 100), add(Method::kContinuous, 1, 0.1, 10);
  add(Method::kVelox, 2, 0.4, 200), add(Method::kContinuous, 2, 0.4, 40);
  const auto summaries = Summarise(report);
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_NEAR(summaries[1].mean_error.mean, 0.25, 1e-12);
  EXPECT_NEAR(summaries[1].mean_error.deviation, 0.3 / std::sqrt(2.0), 1e-12);
  EXPECT_NEAR(summaries[1].error_to_velox->mean, 0.75, 1e-12);
  EXPECT_NEAR(summaries[1].steps_to_velox->mean, 0.15, 1e-12);
  EXPECT_NEAR(summaries[0].error_to_velox->mean, 1, 1e-12);
}

TEST(Tune, FindsARateWhenTheGivenOneIsFarOffAndIsTheSameEveryTime) {
  for (const bool ratings : {false, true}) {
    const Feed feed = ratings ? Ratings(3000) : TurningPlane(3000, false);
    ReplayOptions options = OptionsFor(feed);
    options.deployment.optimizer.schedule.rate = 0.001;
    const Tuning tuning = Tune(options, feed).value(), again = Tune(options, feed).value();
    EXPECT_GT(tuning.rate, 0.01);
    EXPECT_EQ(tuning.rate, again.rate);
    EXPECT_EQ(tuning.loss, again.loss);
    EXPECT_GE(tuning.initial_epochs, 1);
    EXPECT_LE(tuning.initial_epochs, 20);
    options.deployment.optimizer.schedule.rate = tuning.rate;
    options.deployment.optimizer.l2 = tuning.l2;
    World world;
    const ReplayReport tuned = Replay(world.env, options, feed).value();
    options.deployment.optimizer.schedule.rate = 0.001;
    const ReplayReport given = Replay(world.env, options, feed).value();
    EXPECT_LT(RunOf(tuned, Method::kBaselinePlus).mean_error, RunOf(given, Method::kBaselinePlus).mean_error);
  }
}

TEST(Tune, SeesNothingBeyondTheInitialPart) {
  Feed feed = TurningPlane(2000, false);
  const ReplayOptions options = OptionsFor(feed);
  const Tuning before = Tune(options, feed).value();
  for (std::size_t r = 200; r < 2000; ++r) feed.rows.labels[r] = 1 - feed.rows.labels[r];
  EXPECT_EQ(Tune(options, feed).value().loss, before.loss);
}

TEST(Replay, StopsWhenAsked) {
  const Feed feed = TurningPlane(500);
  ReplayOptions options = OptionsFor(feed);
  std::atomic<bool> stop{false};
  options.stop = &stop;
  options.progress = [&](const ReplayProgress&) { stop = true; };
  World world;
  EXPECT_EQ(Replay(world.env, options, feed).error().code, Code::kStopped);
}

}  // namespace
}  // namespace freshet::deploy
