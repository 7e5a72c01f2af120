// Recovered, rebuilt and never stopped: all the same, bit for bit.

#include "deploy/deployment.h"
#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

template <class T>
const T& OneOf(base::Random& random, const std::vector<T>& choices) {
  return choices[random.Below(choices.size())];
}

// A deployment of any kind there is.
struct Kind {
  int model;
  DeploymentOptions options;

  Kind(World& world, base::Random& random) : model(static_cast<int>(random.Below(4))), options(world.Options("a")) {
    options.method = OneOf<Method>(random, {Method::kBaseline, Method::kBaselinePlus, Method::kVelox, Method::kVelox,
                                            Method::kContinuous, Method::kContinuous, Method::kContinuous});
    options.optimizer.kind = OneOf(random, optimize::Optimizer::Kinds());
    options.optimizer.schedule.rate = 0.05;
    options.schedule.max_buffer_size = 5 + random.Below(40);
    options.data.sampler.kind = OneOf(random, Sampler::Kinds());
    options.data.sampler.reservoir_rows = 20;
    options.data.sampler.window_rows = 30;
    options.data.rate.rate = 0.05 + 0.2 * random.Uniform();
    options.data.rate.adaptive = random.Below(2) == 0;
    options.data.buffer_share = random.Below(2) == 0 ? 1 : 0.5;
    options.data.per_arrival = random.Below(2) == 0 ? 0 : 1.5;
    options.drift = OneOf(random, DriftDetector::Kinds());
    options.drift_keep = random.Below(2) == 0 ? 1 : 0.1;
    options.drift_forget = random.Below(2) == 0;
    options.iteration_scale = random.Below(2) == 0 ? 1 : 0.3;
    options.retrain_rows = 20 + random.Below(60);
    options.retrain_epochs = 2;
    options.version_rows = random.Below(2) == 0 ? 0 : 5 + random.Below(60);
    options.versions_kept = 1 + random.Below(4);
    options.journal.segment_bytes = 500 + random.Below(10'000);
  }
  model::TrainedModel Start(World& world) const {
    return model == 0 ? world.Dense() : model == 1 ? world.Sparse() : model == 2 ? world.Ratings() : world.Prices();
  }
  std::string Text() const {
    return Str("model ", model, ", ", Name(options.method), ", ", options.optimizer.kind, ", ",
               options.data.sampler.kind, ", ", options.drift);
  }
};

// Rows of a stream whose labels turn round from time to time, so that there is drift to find.
Result<LearnReply> SendDrifting(Deployment& deployment, std::uint64_t n, const std::string& id = "") {
  std::optional<Result<LearnReply>> reply;
  std::vector<data::NewName> names;
  data::Rows rows = World::Row(deployment.model(), n, &names);
  if (n / 100 % 2 == 1)
    rows.labels[0] = deployment.model().config().loss == "squared" ? 6 - rows.labels[0] : 1 - rows.labels[0];
  deployment.PostLearn(std::move(rows), std::move(names), id.empty() ? std::vector<std::string>() : std::vector{id},
                       [&](Result<LearnReply> answer) { reply = std::move(answer); });
  deployment.Settle();
  return std::move(*reply);
}

// What users do to a deployment besides sending rows, one thing a step. The same whether it was stopped before or not.
void Step(World& world, Deployment& deployment, base::Random& random, std::uint64_t step) {
  const auto ok = [](const Result<std::string>& result) { EXPECT_TRUE(result.ok()) << result.error().text; };
  const auto versions = deployment.versions()->list();
  const std::uint64_t version = versions[random.Below(versions.size())].id;
  switch (step < 5 ? 59 : random.Below(60)) {
    case 0:
      deployment.PostPin(version, random.Below(3) > 0, ok);
      break;
    case 1:
      deployment.PostRollBack(version, {}, random.Below(2) == 0, ok);
      break;
    case 2: {
      const std::uint64_t from = 1 + random.Below(deployment.stats().sequence);
      const std::uint64_t to = from + random.Below(deployment.stats().sequence + 1 - from);
      deployment.PostRollBack(version, {.sequences = Ranges({{from, to}})}, random.Below(2) == 0, ok);
      break;
    }
    case 3:
      if (deployment.options().method >= Method::kVelox) deployment.PostIterate(ok);
      break;
    case 4: {
      std::string text;
      for (std::uint64_t r = 0; r < 1 + random.Below(10); ++r)
        text += deployment.model().config().kind == "factorization"
                    ? Str("u", random.Below(50), "::i", random.Below(50), "::", 1 + random.Below(5), "\n")
                : deployment.model().config().dense
                    ? Str(random.Normal(), ",", random.Normal(), ",", random.Normal(), ",", random.Below(2), "\n")
                    : Str(random.Below(2) == 0 ? "-1" : "1", " ", 1 + random.Below(50), ":1\n");
      if (deployment.model().config().dense) text = "x1,x2,x3,label\n" + text;
      const std::string path = Str("/in", step, ".txt");
      world.disk.Write(path, text);
      deployment.PostDataset(path, ok);
      break;
    }
    case 5:
    case 6: {
      std::vector<data::NewName> names;
      data::Rows rows = World::Row(deployment.model(), step + 1000, &names);
      deployment.PostPrediction(Str("p", step), std::move(rows), std::move(names), {0.25f});
      deployment.Settle();
      const float label = deployment.model().config().loss == "squared" ? 3 : 1;
      deployment.PostFeedback(Str("p", step), {label},
                              [](const Result<LearnReply>& reply) { EXPECT_EQ(reply.value().accepted, 1u); });
      break;
    }
    default:
      EXPECT_TRUE(SendDrifting(deployment, step).ok());
  }
  deployment.Settle();
}

constexpr std::uint64_t kSteps = 250;

TEST(DeploymentRecovery, RecoveredOrRebuiltItIsAsIfItHadNeverStopped) {
  std::uint64_t iterations = 0, drifts = 0, roll_backs = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    World whole, broken;
    base::Random choice(seed, "kind"), same(seed, "kind");
    const Kind kind(whole, choice);
    SCOPED_TRACE(Str("seed ", seed, ": ", kind.Text()));
    base::Random steps(seed, "steps"), stops(seed, "stops");
    const auto never_stopped = whole.Open(kind.options, kind.Start(whole)).value();
    auto stopped = broken.Open(kind.options, kind.Start(broken)).value();
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      base::Random again = steps;
      Step(whole, *never_stopped, steps, step);
      Step(broken, *stopped, again, step);
      if (stops.Below(40) != 0) continue;
      stopped.reset();  // no Close: as after kill -9
      auto opened = broken.Open(kind.options, kind.Start(broken));
      ASSERT_TRUE(opened.ok()) << opened.error().text;
      stopped = std::move(opened).value();
      stopped->Settle();
      ASSERT_EQ(World::Fingerprint(*stopped), World::Fingerprint(*never_stopped)) << "after step " << step;
    }
    ASSERT_EQ(World::Fingerprint(*stopped), World::Fingerprint(*never_stopped));
    ASSERT_FALSE(whole.Said("ERROR")) << Join(whole.lines, "\n");
    ASSERT_FALSE(broken.Said("ERROR")) << Join(broken.lines, "\n");
    const Stats stats = never_stopped->stats();
    iterations += stats.iterations, drifts += stats.drifts, roll_backs += stats.roll_backs;

    stopped.reset();
    broken.KeepOnlyTheFirstVersion(kind.options.directory);
    auto rebuilt = broken.Open(kind.options, kind.Start(broken));
    ASSERT_TRUE(rebuilt.ok()) << rebuilt.error().text;
    rebuilt.value()->Settle();
    ASSERT_EQ(World::Fingerprint(*rebuilt.value()), World::Fingerprint(*never_stopped));
    if (kind.options.method >= Method::kBaselinePlus) {
      ASSERT_EQ(World::Remembered(*rebuilt.value()), World::Remembered(*never_stopped));
    }
  }
  EXPECT_GT(iterations, 100u);
  EXPECT_GT(drifts, 10u);
  EXPECT_GT(roll_backs, 50u);
}

// Here iterations, versions and data sets are under way while rows come and while the process dies.
TEST(DeploymentRecovery, IsRightWhereverTheWriterAndTheTrainerStandWhenTheProcessDies) {
  std::uint64_t in_training = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    World world;
    base::Random random(seed, "pace");
    const Kind kind(world, random);
    SCOPED_TRACE(Str("seed ", seed, ": ", kind.Text()));
    auto deployment = world.Open(kind.options, kind.Start(world)).value();
    const auto ignore = [](const auto&) {};
    for (std::uint64_t step = 0; step < 600; ++step) {
      const auto versions = deployment->versions()->list();
      const std::uint64_t version = versions[random.Below(versions.size())].id;
      const std::uint64_t what = random.Below(200);
      std::vector<data::NewName> names;
      if (what == 0) {
        deployment->PostRollBack(version, {}, random.Below(2) == 0, ignore);
      } else if (what == 1) {
        deployment->PostPin(version, random.Below(2) == 0, ignore);
      } else if (what == 2) {
        deployment->PostIterate(ignore);
      } else if (what == 3 && kind.model == 2) {
        const std::string path = Str("/in", step);
        world.disk.Write(path, Str("new", step, "::i1::3\nu1::new", step, "::4\n"));
        deployment->PostDataset(path, [](const Result<std::string>& result) { EXPECT_TRUE(result.ok()); });
      } else if (what < 100) {
        data::Rows rows = World::Row(deployment->model(), step, &names);
        deployment->PostLearn(std::move(rows), std::move(names), {}, ignore);
      } else if (what < 180) {
        (void)deployment->Turn();
      } else if (what < 198) {
        (void)deployment->background().RunOne();
      } else {
        (void)deployment->Turn();  // so that statistics are those of now
        in_training += deployment->stats().training ? 1 : 0;
        const auto expected = World::Fingerprint(*deployment);
        deployment.reset();
        if (random.Below(4) == 0) world.KeepOnlyTheFirstVersion(kind.options.directory);
        auto opened = world.Open(kind.options, kind.Start(world));
        ASSERT_TRUE(opened.ok()) << opened.error().text;
        deployment = std::move(opened).value();
        ASSERT_EQ(World::Fingerprint(*deployment), expected) << "step " << step;
      }
    }
    ASSERT_FALSE(world.Said("ERROR")) << Join(world.lines, "\n");
  }
  EXPECT_GT(in_training, 20u);
}

TEST(DeploymentRecovery, ACrashAfterAnyChangeOfTheDiskLosesNothing) {
  constexpr std::uint64_t kRows = 130;
  const auto send_all = [](Deployment& deployment) {
    for (std::uint64_t n = 0; n < kRows; ++n) ASSERT_TRUE(SendDrifting(deployment, n, Str("id", n)).ok());
  };
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    World world;
    base::Random random(seed, "crash");
    const Kind kind(world, random);
    SCOPED_TRACE(Str("seed ", seed, ": ", kind.Text()));
    std::vector<double> expected;
    std::string remembered;
    {
      const auto deployment = world.Open(kind.options, kind.Start(world)).value();
      ASSERT_NO_FATAL_FAILURE(send_all(*deployment));
      expected = World::Fingerprint(*deployment);
      if (kind.options.method >= Method::kBaselinePlus) remembered = World::Remembered(*deployment);
    }
    for (int crash = 0; crash < 25; ++crash) {
      const int change = 1 + static_cast<int>(random.Below(crash < 5 ? 15 : 400));
      SCOPED_TRACE(Str("change ", change));
      world.disk.Restore({});
      world.disk.TakeImageAfter(change);
      {
        const auto deployment = world.Open(kind.options, kind.Start(world)).value();
        ASSERT_NO_FATAL_FAILURE(send_all(*deployment));
      }
      if (!world.disk.image()) continue;
      world.disk.Restore(*world.disk.image());
      auto recovered = world.Open(kind.options, kind.Start(world));
      ASSERT_TRUE(recovered.ok()) << recovered.error().text;
      recovered.value()->Settle();
      ASSERT_NO_FATAL_FAILURE(send_all(*recovered.value()));  // again: those that were kept are not learned twice
      ASSERT_EQ(World::Fingerprint(*recovered.value()), expected);
      if (!remembered.empty()) {
        ASSERT_EQ(World::Remembered(*recovered.value()), remembered);
      }
    }
  }
}

}  // namespace
}  // namespace freshet::deploy
