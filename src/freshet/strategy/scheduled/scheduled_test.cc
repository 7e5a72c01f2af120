// Descent by coordinates that are scheduled: it comes to where serial descent comes, sooner, by any number of members.

#include "strategy/scheduled/scheduled.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/random.h"
#include "fabric/sim/world.h"
#include "fabric/tcp/tcp_testing.h"
#include "fabric/threads/threads_testing.h"
#include "model/rows_testing.h"

namespace freshet::strategy::scheduled {
namespace {

using Options = Scheduled::Options;

// Rows whose features are correlated with their neighbours (by 0.9 with the next), of which few tell the label.
struct Set {
  data::Rows rows;
  std::string loss;
  std::size_t features;
  double l1, l2 = 0;

  Set(std::string which, std::size_t count, std::size_t width, double penalty, std::uint64_t seed = 1,
      bool sparse = false)
      : loss(std::move(which)), features(width), l1(penalty) {
    base::Random random(seed, "correlated rows");
    for (std::size_t r = 0; r < count; ++r) {
      std::vector<float> values(width);
      std::vector<std::pair<std::uint32_t, float>> entries;
      double before = random.Normal(), sum = 0.5;
      for (std::size_t j = 0; j < width; ++j) {
        before = 0.9 * before + std::sqrt(1 - 0.81) * random.Normal();
        if (sparse && random.Below(3) > 0) continue;
        values[j] = static_cast<float>(before);
        entries.emplace_back(static_cast<std::uint32_t>(j), values[j]);
        if (j % 17 == 3) sum += before * (j % 2 == 0 ? 2 : -1);
      }
      const double noisy = sum + 0.3 * random.Normal();
      const auto label = static_cast<float>(loss == "logistic" ? (noisy > 0 ? 1 : 0) : noisy);
      if (sparse)
        model::AddSparse(rows, label, entries);
      else
        model::AddDense(rows, label, values);
    }
  }
  const model::Loss& Loss() const { return *model::FindLoss(loss).value(); }
  std::vector<float> Zeros() const { return std::vector<float>(features + 1, 0.0f); }
  Options How(Share::Order order = Share::Order::kRecent, std::uint64_t coordinates = 16) const {
    return {.order = order, .coordinates = coordinates, .rho = 0.3, .l1 = l1, .l2 = l2, .seed = 1};
  }
};

// The least of the objective, by plain descent along one coordinate after another, many times over, in double.
double LeastByPlainDescent(const Set& set) {
  const data::Batch rows = set.rows.batch();
  std::vector<std::vector<double>> x(rows.rows, std::vector<double>(set.features + 1, 0));
  for (std::size_t r = 0; r < rows.rows; ++r) {
    for (std::size_t j = 0; j < set.features && !rows.sparse(); ++j) x[r][j] = rows.dense[r * rows.width + j];
    for (std::uint32_t e = rows.sparse() ? rows.offsets[r] : 0; rows.sparse() && e < rows.offsets[r + 1]; ++e)
      x[r][rows.indices[e]] = rows.values[e];
    x[r][set.features] = 1;
  }
  const bool logistic = set.loss == "logistic";
  const auto n = static_cast<double>(rows.rows);
  std::vector<double> w(set.features + 1, 0), scores(rows.rows, 0);
  const auto slope = [&](std::size_t r) {
    return logistic ? 1 / (1 + std::exp(-scores[r])) - static_cast<double>(rows.labels[r])
                    : scores[r] - static_cast<double>(rows.labels[r]);
  };
  for (int epoch = 0; epoch < 3000; ++epoch) {
    double most = 0;
    for (std::size_t j = 0; j < w.size(); ++j) {
      const bool bias = j == set.features;
      const double l1 = bias ? 0 : set.l1, l2 = bias ? 0 : set.l2;
      double gradient = l2 * w[j], square = 0;
      for (std::size_t r = 0; r < rows.rows; ++r) {
        gradient += slope(r) * x[r][j] / n;
        square += x[r][j] * x[r][j] / n;
      }
      const double curvature = square * (logistic ? 0.25 : 1) + l2;
      if (square == 0) continue;
      const double at = w[j] - gradient / curvature, size = std::max(std::abs(at) - l1 / curvature, 0.0);
      const double change = std::copysign(size, at) - w[j];
      w[j] += change;
      most = std::max(most, std::abs(change));
      for (std::size_t r = 0; r < rows.rows && change != 0; ++r) scores[r] += change * x[r][j];
    }
    if (most < 1e-10) break;
  }
  double objective = 0;
  for (std::size_t r = 0; r < rows.rows; ++r) {
    const double margin = (rows.labels[r] > 0 ? 1 : -1) * scores[r], error = scores[r] - rows.labels[r];
    objective +=
        (logistic ? std::log1p(std::exp(-std::abs(margin))) + std::max(0.0, -margin) : 0.5 * error * error) / n;
  }
  for (std::size_t j = 0; j < set.features; ++j) objective += set.l1 * std::abs(w[j]) + 0.5 * set.l2 * w[j] * w[j];
  return objective;
}

struct Made {
  std::vector<float> weights;
  double objective = 0;
  std::uint64_t updates = 0, put_off = 0;
  StepTimes times;
};
Made Descend(fabric::Fabric* fabric, const Set& set, const Options& options, int rounds) {
  const base::SystemClock clock;
  std::optional<fabric::Collectives> collectives;
  if (fabric != nullptr) collectives.emplace(*fabric);
  Scheduled scheduled(options, {collectives ? &*collectives : nullptr, clock}, set.Loss(), set.rows.batch(),
                      set.Zeros());
  for (int round = 0; round < rounds; ++round) {
    const auto made = scheduled.Round(false);
    EXPECT_TRUE(made.ok()) << made.error().text;
    if (!made.ok()) break;
  }
  return {.weights = {scheduled.weights().begin(), scheduled.weights().end()},
          .objective = scheduled.Objective().value(),
          .updates = scheduled.updates(),
          .put_off = scheduled.put_off(),
          .times = scheduled.times()};
}

// Updates until the objective is at most this; nothing when it takes more than `most`.
std::optional<std::uint64_t> UpdatesUntil(const Set& set, const Options& options, double objective,
                                          std::uint64_t most) {
  const base::SystemClock clock;
  Scheduled scheduled(options, {nullptr, clock}, set.Loss(), set.rows.batch(), set.Zeros());
  while (scheduled.updates() < most) {
    if (scheduled.Objective().value() <= objective) return scheduled.updates();
    EXPECT_TRUE(scheduled.Round(false).value());
  }
  return std::nullopt;
}

TEST(Scheduled, ComesToWherePlainDescentComes) {
  for (const bool sparse : {false, true})
    for (const std::string loss : {"squared", "logistic"})
      for (const double l2 : {0.0, 0.05}) {
        SCOPED_TRACE(Str(loss, sparse ? ", sparse" : "", ", l2 ", l2));
        Set set(loss, 80, 40, 0.02, 1, sparse);
        set.l2 = l2;
        const double least = LeastByPlainDescent(set);
        const Made made = Descend(nullptr, set, set.How(), 3000);
        EXPECT_NEAR(made.objective, least, 1e-5 * least);
        EXPECT_GT(made.put_off, 0u);
        std::size_t zeros = 0;
        for (const float weight : made.weights) zeros += weight == 0 ? 1 : 0;
        EXPECT_GT(zeros, 5u);
      }
}

TEST(Scheduled, AnyNumberOfMembersMakesTheSameBytes) {
  for (const std::string loss : {"squared", "logistic"}) {
    const Set set(loss, 60, 50, 0.02, 2, loss == "logistic");
    for (const Options& options : {set.How(), set.How(Share::Order::kRecent, 5), set.How(Share::Order::kRandom, 1)}) {
      const Made alone = Descend(nullptr, set, options, 60);
      for (const int members : {1, 2, 3, 4, 5, 6, 7, 8, 16}) {
        SCOPED_TRACE(Str(loss, ", ", members, " members"));
        std::vector<Made> made(static_cast<std::size_t>(members));
        fabric::RunMembers(members, [&](fabric::Fabric& fabric) {
          made[static_cast<std::size_t>(fabric.rank())] = Descend(&fabric, set, options, 60);
        });
        for (const Made& each : made) {
          EXPECT_EQ(each.weights, alone.weights);
          EXPECT_EQ(each.objective, alone.objective);
          EXPECT_EQ(each.updates, alone.updates);
          EXPECT_EQ(each.put_off, alone.put_off);
          EXPECT_EQ(each.times.bytes_sent + each.times.bytes_shared > 0, members > 1);
        }
      }
    }
  }
}

TEST(Scheduled, OverSocketsAndInSimulatedWorldsTheyMakeTheSameBytes) {
  const Set set("squared", 60, 50, 0.02, 3);
  const Made alone = Descend(nullptr, set, set.How(), 40);
  base::SystemClock clock;
  fabric::Members members = fabric::ConnectAll(3, clock);
  std::vector<std::vector<float>> weights(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        ASSERT_TRUE(members[rank].ok()) << members[rank].error().text;
        weights[rank] = Descend(members[rank].value().get(), set, set.How(), 40).weights;
      });
  }
  for (const auto& each : weights) EXPECT_EQ(each, alone.weights);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    fabric::sim::World world({.size = 3, .seed = seed});
    world.Run([&](fabric::sim::World::Member& member) {
      const auto fabric = member.Connect();
      weights[static_cast<std::size_t>(member.rank())] = Descend(fabric.get(), set, set.How(), 40).weights;
    });
    for (const auto& each : weights) EXPECT_EQ(each, alone.weights) << "seed " << seed;
  }
}

TEST(Scheduled, NoRoundMakesTheObjectiveLarger) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Set set(seed % 2 == 0 ? "squared" : "logistic", 40, 60, 0.005, seed);
    Options options = set.How(Share::Order::kRecent, 64);
    options.rho = 1;  // then the sum of correlations alone holds them apart
    options.seed = seed;
    const base::SystemClock clock;
    Scheduled scheduled(options, {nullptr, clock}, set.Loss(), set.rows.batch(), set.Zeros());
    double before = scheduled.Objective().value();
    for (int round = 0; round < 300; ++round) {
      ASSERT_TRUE(scheduled.Round(false).value());
      const double now = scheduled.Objective().value();
      ASSERT_LE(now, before + 1e-6 * before) << "seed " << seed << ", round " << round;
      before = now;
    }
  }
}

// What is not scheduled goes astray where coordinates of a round depend on each other, as the same code does that only
// draws them at random; what is reaches the objective of Lasso in at most half of the updates that one after another at
// random takes.
TEST(Scheduled, ReachesAnObjectiveInHalfTheUpdatesOfRandomOrderAndNeverGoesAstrayWhereThatDoes) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    const Set set("squared", 150, 400, 0.05, seed);
    const double least = LeastByPlainDescent(set), goal = 1.001 * least;
    const auto one_by_one = UpdatesUntil(set, set.How(Share::Order::kRandom, 1), goal, 200'000);
    const auto scheduled = UpdatesUntil(set, set.How(), goal, 200'000);
    ASSERT_TRUE(one_by_one && scheduled);
    EXPECT_LE(2 * *scheduled, *one_by_one);
    const Made start = Descend(nullptr, set, set.How(), 0);
    const Made astray = Descend(nullptr, set, set.How(Share::Order::kRandom, 64), 200);
    EXPECT_FALSE(astray.objective < 10 * start.objective);
    EXPECT_LT(Descend(nullptr, set, set.How(Share::Order::kRecent, 64), 200).objective, start.objective);
  }
}

TEST(Scheduled, ARowThatWeighsTwoIsTwoRows) {
  Set twice("squared", 40, 10, 0.05, 4), weighed("squared", 40, 10, 0.05, 4);
  const data::Batch rows = weighed.rows.batch();
  for (std::size_t r = 0; r < rows.rows; ++r) {
    weighed.rows.weights.Append(r % 3 == 0 ? 2.0f : 1.0f);
    if (r % 3 == 0) twice.rows.AppendRow(rows, r);
  }
  EXPECT_NEAR(Descend(nullptr, weighed, weighed.How(), 500).objective,
              Descend(nullptr, twice, twice.How(), 500).objective, 1e-6);
}

TEST(Scheduled, WhoWishesToStopStopsAllAndNothingChanges) {
  const Set set("squared", 40, 30, 0.02, 5);
  const base::SystemClock clock;
  for (int wishes = 0; wishes < 3; ++wishes)
    fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
      fabric::Collectives collectives(fabric);
      Scheduled scheduled(set.How(), {&collectives, clock}, set.Loss(), set.rows.batch(), set.Zeros());
      ASSERT_TRUE(scheduled.Round(false).value());
      const std::vector<float> before(scheduled.weights().begin(), scheduled.weights().end());
      EXPECT_FALSE(scheduled.Round(fabric.rank() == wishes).value());
      EXPECT_TRUE(std::equal(before.begin(), before.end(), scheduled.weights().begin()));
      EXPECT_EQ(scheduled.rounds(), 1u);
    });
}

}  // namespace
}  // namespace freshet::strategy::scheduled
