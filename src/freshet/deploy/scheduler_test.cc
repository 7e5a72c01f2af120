#include "deploy/scheduler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "base/random.h"

namespace freshet::deploy {
namespace {

using namespace std::chrono_literals;

// A scheduler and a world in which iterations take 20 ms and time passes only when told to.
struct World {
  explicit World(SchedulerOptions options) : scheduler(options) {}

  Reason Decide() { return scheduler.Decide(situation); }
  // One iteration, if the scheduler wants one.
  Reason Step(double training_loss) {
    const Reason reason = Decide();
    if (reason != Reason::kNone) Iterate(training_loss);
    return reason;
  }
  void Iterate(double training_loss) {
    scheduler.OnStart(situation.now);
    situation.now += 20ms;
    situation.drift = false;
    situation.buffered = 0;
    scheduler.OnFinish(situation.now, training_loss, visits);
  }
  void Observe(std::uint64_t rows) {
    situation.buffered += rows;
    situation.learned += rows;
    situation.history += rows;
  }
  // Runs until nothing more is wanted; how many iterations that took.
  int IterateUntilNoneIsWanted(double training_loss, int most = 100) {
    int iterations = 0;
    while (iterations < most && Step(training_loss) != Reason::kNone) ++iterations;
    return iterations;
  }

  Scheduler scheduler;
  Situation situation{.now = 5s};
  std::uint64_t visits = 1;  // rows of an iteration: a pass, unless told otherwise
};

TEST(Scheduler, RunsAnIterationWhenTheBufferIsFull) {
  World world({.max_buffer_size = 3});
  world.Observe(2);
  EXPECT_EQ(world.Decide(), Reason::kNone);
  world.Observe(1);
  EXPECT_EQ(world.Step(0.5), Reason::kBufferFull);
  EXPECT_EQ(world.Decide(), Reason::kNone);
  world.Observe(10);
  EXPECT_EQ(world.Step(0.5), Reason::kBufferFull);
}

TEST(Scheduler, RunsAnIterationEveryPeriodFromStartToStart) {
  World world({.max_buffer_size = 0, .period = 1s});
  world.Observe(1);
  EXPECT_EQ(world.Decide(), Reason::kNone);
  world.situation.now += 999ms;
  EXPECT_EQ(world.Decide(), Reason::kNone);
  world.situation.now += 1ms;
  EXPECT_EQ(world.Step(0.5), Reason::kPeriod);  // takes 20 ms
  world.situation.now += 979ms;
  EXPECT_EQ(world.Decide(), Reason::kNone);
  world.situation.now += 1ms;
  EXPECT_EQ(world.Step(0.4), Reason::kPeriod);
}

TEST(Scheduler, RunsAnIterationOnDriftEvenIfItWasFoundWhileOneRan) {
  World world({});
  world.Observe(1);
  world.situation.drift = true;
  EXPECT_EQ(world.Decide(), Reason::kDrift);
  world.scheduler.OnStart(world.situation.now);
  EXPECT_EQ(world.Decide(), Reason::kNone);  // told again, while it runs
  world.situation.drift = false;
  world.scheduler.OnFinish(world.situation.now, 0.5, 1);
  EXPECT_EQ(world.Step(0.5), Reason::kDrift);
  EXPECT_EQ(world.Decide(), Reason::kNone);
}

TEST(Scheduler, RunsAnIterationWhenAskedEvenIfConverged) {
  World world({.max_buffer_size = 0, .when_idle = true});
  world.Observe(1);
  world.IterateUntilNoneIsWanted(0.5);
  ASSERT_TRUE(world.scheduler.converged());
  world.scheduler.Ask();
  EXPECT_EQ(world.Step(0.5), Reason::kAsked);
  EXPECT_EQ(world.Decide(), Reason::kNone);
}

TEST(Scheduler, NeverStartsASecondIterationWhileOneRuns) {
  World world({.max_buffer_size = 1, .period = 1ms, .when_idle = true});
  world.Observe(5);
  world.scheduler.Ask();
  EXPECT_EQ(world.Decide(), Reason::kAsked);
  world.scheduler.OnStart(world.situation.now);
  world.situation.now += 10s;
  world.situation.drift = true;
  EXPECT_EQ(world.Decide(), Reason::kNone);
}

TEST(Scheduler, WantsNothingBeforeThereAreRows) {
  World world({.max_buffer_size = 1, .period = 1ms, .when_idle = true});
  world.situation.drift = true;
  world.scheduler.Ask();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(world.Decide(), Reason::kNone);
    world.situation.now += 1s;
  }
  EXPECT_EQ(world.scheduler.StateText(), "waiting for the first data");
  world.situation.history = 100;  // a data set was registered
  EXPECT_EQ(world.Decide(), Reason::kAsked);
}

TEST(Scheduler, RunsIterationsBackToBackWhileNobodyAsksForPredictions) {
  World world({.max_buffer_size = 0, .when_idle = true});
  world.Observe(1);
  world.situation.p99_seconds = 9;  // of long ago
  for (int i = 0; i < 50; ++i) EXPECT_EQ(world.Step(std::pow(0.9, i)), Reason::kIdle);
  EXPECT_EQ(world.scheduler.gap(), 0s);
}

TEST(Scheduler, SpacesIdleIterationsOutWhilePredictionsAreSlowAndBringsThemTogetherAgain) {
  World world({.max_buffer_size = 0, .when_idle = true, .p99_target_seconds = 0.010});
  double loss = 1;
  world.situation.predictions_per_second = 1000;
  const auto next_gap = [&](double p99_seconds) {
    world.Observe(1);
    world.situation.now += world.scheduler.gap();
    EXPECT_EQ(world.Step(loss *= 0.9), Reason::kIdle);
    world.situation.p99_seconds = p99_seconds;
    const auto before = world.scheduler.gap();
    for (int i = 0; i < 10; ++i) world.Decide();  // asking often changes nothing
    if (world.scheduler.gap() > before) {
      EXPECT_EQ(world.Decide(), Reason::kNone);
    }
    return world.scheduler.gap();
  };
  EXPECT_EQ(next_gap(0.011), 20ms);  // as long as the iteration took
  EXPECT_EQ(next_gap(0.011), 40ms);
  EXPECT_EQ(next_gap(0.500), 80ms);
  EXPECT_EQ(next_gap(0.007), 80ms);  // neither slow nor fast
  EXPECT_EQ(next_gap(0.004), 40ms);
  for (int i = 0; i < 20; ++i) next_gap(0.020);
  EXPECT_EQ(world.scheduler.gap(), 1min);
  for (int i = 0; i < 16; ++i) next_gap(0.001);
  EXPECT_EQ(world.scheduler.gap(), 0s);
}

TEST(Scheduler, DoesNotGoOnWaitingOnceNobodyAsksForPredictions) {
  World world({.max_buffer_size = 0, .when_idle = true});
  world.situation.predictions_per_second = 1000;
  world.situation.p99_seconds = 1;
  double loss = 1;
  for (int i = 0; i < 12; ++i) {
    world.Observe(1);
    EXPECT_EQ(world.Step(loss *= 0.9), Reason::kIdle);
    EXPECT_EQ(world.Decide(), Reason::kNone);
    world.situation.now += world.scheduler.gap();
  }
  world.situation.now -= 1s;
  EXPECT_EQ(world.Decide(), Reason::kNone);
  ASSERT_GE(world.scheduler.gap(), 10s);
  world.situation.predictions_per_second = 0;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(world.Step(loss *= 0.9), Reason::kIdle);
}

TEST(Scheduler, RunsAnIterationForADataSetThatNoneHasVisited) {
  World world({.max_buffer_size = 1000});
  world.situation.history = world.situation.unvisited = 20;
  EXPECT_EQ(world.Decide(), Reason::kDataset);
  EXPECT_EQ(world.scheduler.StateText(), "about to train: a data set has joined");
  world.Iterate(0.5);
  world.situation.unvisited = 0;
  EXPECT_EQ(world.Decide(), Reason::kNone);
}

TEST(Scheduler, JudgesByWholePassesOverWhatThereIsToDrawFrom) {
  World world({.max_buffer_size = 0, .when_idle = true, .stagnation = 0.01, .patience = 2});
  world.Observe(100);
  world.situation.drawable = 100;
  world.visits = 25;
  // A sweep whose quarters are differently hard: each pass is better than the last, and some iterations look worse.
  double level = 1;
  for (int pass = 0; pass < 20; ++pass, level *= 0.9)
    for (const double hardness : {0.5, 2.0, 1.0, 1.5}) EXPECT_EQ(world.Step(level * hardness), Reason::kIdle) << pass;
  EXPECT_EQ(world.IterateUntilNoneIsWanted(level), 2 * 4 + 4);  // one more sets the mark
}

TEST(Scheduler, DoesNotLetSlowPredictionsDelayAFullBuffer) {
  World world({.max_buffer_size = 2, .when_idle = true});
  world.situation.predictions_per_second = 1000;
  world.situation.p99_seconds = 1;
  for (int i = 0; i < 10; ++i) {
    world.Observe(2);
    EXPECT_EQ(world.Step(0.5), Reason::kBufferFull);
  }
}

TEST(Scheduler, StopsWhenTheLossStagnatesUntilNewDataComes) {
  World world({.max_buffer_size = 0, .period = 1ms, .when_idle = true, .stagnation = 0.01, .patience = 3});
  world.Observe(1);
  EXPECT_EQ(world.IterateUntilNoneIsWanted(0.5), 1 + 3);  // the first sets the mark
  EXPECT_TRUE(world.scheduler.converged());
  world.situation.now += 1h;
  EXPECT_EQ(world.Decide(), Reason::kNone);
  EXPECT_EQ(world.scheduler.StateText(), "waiting for data: 3 passes brought no improvement");
  world.Observe(1);
  EXPECT_EQ(world.Decide(), Reason::kPeriod);
  EXPECT_FALSE(world.scheduler.converged());
  EXPECT_EQ(world.IterateUntilNoneIsWanted(0.6), 1 + 3);  // new data, new mark
}

TEST(Scheduler, GoesOnAsLongAsTheLossFallsByMoreThanStagnation) {
  World world({.max_buffer_size = 0, .when_idle = true, .stagnation = 0.01, .patience = 3});
  world.Observe(1);
  double loss = 1;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(world.Step(loss *= 0.98), Reason::kIdle);
  int more = 0;
  while (more < 50 && world.Step(loss *= 0.998) != Reason::kNone) ++more;
  EXPECT_EQ(more, 3);  // patience did not last until small steps had made a large one
}

TEST(Scheduler, GoesOnWhileTheErrorOfTheServingModelFallsThoughTheLossDoesNot) {
  World world({.max_buffer_size = 0, .when_idle = true, .patience = 3});
  world.Observe(1);
  world.situation.error = 0.5;
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(world.Step(0.7), Reason::kIdle);
    world.situation.error *= 0.98;
  }
  EXPECT_EQ(world.IterateUntilNoneIsWanted(0.7), 3);
}

TEST(Scheduler, CountsAFailedIterationAsOneWithoutImprovement) {
  World world({.max_buffer_size = 0, .when_idle = true, .patience = 4});
  world.Observe(1);
  EXPECT_EQ(world.IterateUntilNoneIsWanted(std::nan("")), 4);
}

TEST(Scheduler, ConvergesUnderNoiseFromTheSample) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "noise");
    World world({.max_buffer_size = 0, .when_idle = true});
    world.Observe(1);
    int iterations = 0;
    while (iterations < 1000 && world.Step(0.5 + 0.02 * random.Normal()) != Reason::kNone) ++iterations;
    EXPECT_LT(iterations, 1000);
  }
}

TEST(Scheduler, SaysInASentenceWhatItIsWaitingFor) {
  World world({.max_buffer_size = 500, .when_idle = true});
  world.Observe(120);
  EXPECT_EQ(world.Decide(), Reason::kIdle);
  EXPECT_EQ(world.scheduler.StateText(), "about to train: predictions leave room");
  world.scheduler.OnStart(world.situation.now);
  EXPECT_EQ(world.scheduler.StateText(), "training: predictions leave room");
  world.scheduler.OnFinish(world.situation.now += 250ms, 0.5, 1);
  world.situation.predictions_per_second = 10;
  world.situation.p99_seconds = 0.0125;
  world.Decide();
  EXPECT_EQ(world.scheduler.StateText(),
            "waiting 0.250 s after each iteration to leave room for predictions (p99 12.5 ms, wanted below 10.0 ms)");

  World by_size({.max_buffer_size = 500});
  by_size.Observe(120);
  by_size.Decide();
  EXPECT_EQ(by_size.scheduler.StateText(), "waiting for data: 120 of 500 rows are in the buffer");
}

TEST(Scheduler, RemembersOverARestartThatItHadConverged) {
  const SchedulerOptions options{.max_buffer_size = 0, .when_idle = true};
  World world(options);
  world.Observe(7);
  world.IterateUntilNoneIsWanted(0.5);
  World again(options);
  ASSERT_TRUE(again.scheduler.Load(world.scheduler.Save()));
  again.situation = world.situation;
  again.situation.now = 0s;  // another clock
  EXPECT_TRUE(again.scheduler.converged());
  EXPECT_EQ(again.Decide(), Reason::kNone);
  again.Observe(1);
  EXPECT_EQ(again.Decide(), Reason::kIdle);
  EXPECT_EQ(again.scheduler.Save(), [&] {
    world.Observe(1);
    world.Decide();
    return world.scheduler.Save();
  }());
}

TEST(Scheduler, RefusesAStateThatIsNotItsOwnAndOptionsThatMakeNoSense) {
  Scheduler scheduler({});
  const std::vector<double> state = scheduler.Save();
  ASSERT_TRUE(scheduler.Load(state));
  for (std::size_t i = 0; i < state.size(); ++i) {
    std::vector<double> wrong = state;
    wrong[i] = std::nan("");
    EXPECT_FALSE(scheduler.Load(wrong));
  }
  EXPECT_FALSE(scheduler.Load(std::span(state).first(3)));
  const auto options =
      SchedulerOptions{.period = -1s, .p99_target_seconds = 0, .stagnation = 2, .patience = 0}.Validate();
  ASSERT_FALSE(options.ok());
  for (const char* const part : {"period", "p99 target", "stagnation", "patience"})
    EXPECT_NE(options.error().text.find(part), std::string::npos) << options.error().text;
}

}  // namespace
}  // namespace freshet::deploy
