// Descent along the factors of ratings: it comes to where plain descent comes, by any number of members the same, and soon
// where only some rows have changed.

#include "strategy/scheduled/scheduled_factors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/random.h"
#include "base/thread_pool.h"
#include "fabric/sim/world.h"
#include "fabric/tcp/tcp_testing.h"
#include "fabric/threads/threads_testing.h"
#include "model/factorization.h"

namespace freshet::strategy::scheduled {
namespace {

using model::Factorization;
using model::Rating;
using Options = ScheduledFactors::Options;

// Ratings by `users` of `items`, of `factors` tastes of either, and what is to be learned of them.
struct Set {
  std::uint32_t users = 60, items = 40;
  std::uint64_t factors = 4;
  double l2 = 0.1;
  std::vector<Rating> ratings;

  explicit Set(std::uint64_t seed) { Add(seed, 0, users, 0, items, 900, 2); }
  Set(std::uint32_t the_users, std::uint32_t the_items) : users(the_users), items(the_items) {}

  // Of users and items of these ranges.
  void Add(std::uint64_t seed, std::uint32_t first_user, std::uint32_t last_user, std::uint32_t first_item,
           std::uint32_t last_item, std::size_t count, int tastes) {
    base::Random random(seed, "ratings");
    std::vector<double> numbers((std::size_t{users} + items) * 4);
    for (double& number : numbers) number = random.Normal();
    for (std::size_t i = 0; i < count; ++i) {
      const auto user = static_cast<std::uint32_t>(first_user + random.Below(last_user - first_user));
      const auto item = static_cast<std::uint32_t>(first_item + random.Below(last_item - first_item));
      double label = 3 + 0.3 * random.Normal() + 0.4 * (numbers[4 * user + 3] + numbers[4 * (users + item) + 3]);
      for (int t = 0; t < tastes; ++t) label += 0.6 * numbers[4 * user + t] * numbers[4 * (users + item) + t];
      ratings.push_back({user, item, static_cast<float>(label)});
    }
  }
};

// A model of a set, as it begins.
struct Learner {
  optimize::HeapMemory memory;
  std::unique_ptr<model::Model> model;
  std::optional<optimize::Parameters> parameters;

  explicit Learner(const Set& set, std::uint64_t seed = 1) {
    model::ModelConfig config;
    config.kind = "factorization";
    config.loss = "squared";
    config.factors = set.factors;
    config.seed = seed;
    model = model::Model::Make(config).value();
    parameters = model->NewParameters(memory).value();
    CHECK(dynamic_cast<const Factorization&>(*model).Prepare(*parameters, set.users, set.items).ok());
    double sum = 0;
    for (const Rating& rating : set.ratings) sum += rating.label;
    model->ratings()->StartMean(*parameters, sum / static_cast<double>(set.ratings.size()), set.ratings.size());
  }
  std::vector<float> Values() const {
    std::vector<float> all;
    for (std::size_t b = 0; b < parameters->blocks(); ++b)
      all.insert(all.end(), parameters->Values(b).begin(), parameters->Values(b).end());
    return all;
  }
};

Options How(const Set& set, Share::Order order = Share::Order::kRecent, std::uint64_t rows = 0) {
  return {.order = order, .rows = rows, .l2 = set.l2, .seed = 1};
}

OwnRatings Keep(const Set& set, fabric::Fabric* fabric) {
  const int rank = fabric == nullptr ? 0 : fabric->rank(), size = fabric == nullptr ? 1 : fabric->size();
  OwnRatings own(1, {fabric::ChunkBegin(Grid::kSides, rank, size), fabric::ChunkBegin(Grid::kSides, rank + 1, size)});
  for (const Rating& rating : set.ratings) own.Add(rating);
  own.Arrange();
  return own;
}

// The objective as the header has it, from nothing but the parameters.
double PlainObjective(const Set& set, const optimize::Parameters& parameters) {
  double sum = 0;
  for (const Rating& rating : set.ratings) {
    const double b = *parameters.Row(Factorization::kUserBias, rating.user);
    const double c = *parameters.Row(Factorization::kItemBias, rating.item);
    const double mean = *parameters.Row(Factorization::kGlobal, 0);
    double error = rating.label - mean - b - c, squares = b * b + c * c;
    for (std::uint64_t f = 0; f < set.factors; ++f) {
      const double p = parameters.Row(Factorization::kUserFactors, rating.user)[f];
      const double q = parameters.Row(Factorization::kItemFactors, rating.item)[f];
      error -= p * q;
      squares += p * p + q * q;
    }
    sum += 0.5 * error * error + 0.5 * set.l2 * squares;
  }
  return sum / static_cast<double>(set.ratings.size());
}

// The least of it near where the parameters are: one coordinate after another, in double, with nothing remembered of the
// errors, until all of them stay where they are.
double LeastByPlainDescent(const Set& set, const optimize::Parameters& start) {
  const std::size_t width = set.factors + 1;
  const std::uint32_t counts[] = {set.users, set.items};
  std::vector<std::vector<double>> rows[2];
  std::vector<std::vector<std::size_t>> rated[2];
  for (const std::size_t side : {0, 1}) {
    rated[side].resize(counts[side]);
    for (std::uint32_t row = 0; row < counts[side]; ++row) {
      std::vector<double>& values = rows[side].emplace_back(1, *start.Row(Factorization::kUserBias + side, row));
      const float* const factors = start.Row(Factorization::kUserFactors + side, row);
      values.insert(values.end(), factors, factors + set.factors);
    }
  }
  for (std::size_t r = 0; r < set.ratings.size(); ++r) {
    rated[0][set.ratings[r].user].push_back(r);
    rated[1][set.ratings[r].item].push_back(r);
  }
  const double mean = *start.Row(Factorization::kGlobal, 0);
  const auto error = [&](const Rating& rating) {
    const std::vector<double>&p = rows[0][rating.user], &q = rows[1][rating.item];
    double score = mean + p[0] + q[0];
    for (std::size_t c = 1; c < width; ++c) score += p[c] * q[c];
    return rating.label - score;
  };
  const auto objective = [&] {
    double sum = 0;
    for (const Rating& rating : set.ratings) {
      sum += 0.5 * error(rating) * error(rating);
      for (std::size_t c = 0; c < width; ++c)
        sum += 0.5 * set.l2 *
               (rows[0][rating.user][c] * rows[0][rating.user][c] + rows[1][rating.item][c] * rows[1][rating.item][c]);
    }
    return sum / static_cast<double>(set.ratings.size());
  };
  double before = objective();
  for (int epoch = 0; epoch < 5000; ++epoch) {
    for (const std::size_t side : {0, 1})
      for (std::uint32_t row = 0; row < counts[side]; ++row)
        for (std::size_t c = 0; c < width && !rated[side][row].empty(); ++c) {
          const auto n = static_cast<double>(rated[side][row].size());
          double slope = -set.l2 * n * rows[side][row][c], curvature = set.l2 * n;
          for (const std::size_t r : rated[side][row]) {
            const Rating& rating = set.ratings[r];
            const double other = c == 0 ? 1 : rows[1 - side][side == 0 ? rating.item : rating.user][c];
            slope += error(rating) * other;
            curvature += other * other;
          }
          rows[side][row][c] += slope / curvature;
        }
    const double now = objective();
    if (before - now < 1e-9 * now) break;
    before = now;
  }
  return objective();
}

struct Made {
  std::vector<float> values;
  double objective = 0;
  std::uint64_t updates = 0, rounds = 0, kept = 0;
  StepTimes times;
};
Made Descend(fabric::Fabric* fabric, const Set& set, const Options& options, int turns, int threads = 1) {
  const base::SystemClock clock;
  base::ThreadPool pool(threads);
  Learner learner(set);
  std::optional<fabric::Collectives> collectives;
  if (fabric != nullptr) collectives.emplace(*fabric);
  OwnRatings own = Keep(set, fabric);
  const std::uint64_t kept = own.kept();
  ScheduledFactors scheduled(options, {collectives ? &*collectives : nullptr, clock}, pool, std::move(own),
                             *learner.parameters);
  for (int turn = 0; turn < turns; ++turn) {
    const auto made = scheduled.Round(false);
    EXPECT_TRUE(made.ok()) << made.error().text;
    if (!made.ok()) break;
  }
  return {.values = learner.Values(),
          .objective = scheduled.Objective().value(),
          .updates = scheduled.updates(),
          .rounds = scheduled.rounds(),
          .kept = kept,
          .times = scheduled.times()};
}

TEST(ScheduledFactors, ComesToWherePlainDescentComes) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    for (const Share::Order order : {Share::Order::kRecent, Share::Order::kRandom}) {
      const Set set(seed);
      const Learner start(set);
      const double least = LeastByPlainDescent(set, *start.parameters);
      const Made made = Descend(nullptr, set, How(set, order), 6000);
      EXPECT_LT(least, 0.6 * PlainObjective(set, *start.parameters));
      EXPECT_NEAR(made.objective, least, 1e-3 * least) << "seed " << seed;
    }
}

TEST(ScheduledFactors, TheErrorsStayThoseOfTheParameters) {
  const Set set(2);
  const base::SystemClock clock;
  base::InlineExecutor executor;
  Learner learner(set);
  ScheduledFactors scheduled(How(set), {nullptr, clock}, executor, Keep(set, nullptr), *learner.parameters);
  for (int turn = 0; turn < 500; ++turn) {
    ASSERT_TRUE(scheduled.Round(false).value());
    const double plain = PlainObjective(set, *learner.parameters);
    ASSERT_NEAR(scheduled.Objective().value(), plain, 1e-12 * plain) << "turn " << turn;
  }
}

TEST(ScheduledFactors, NoTurnMakesTheObjectiveLarger) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Set set(seed);
    set.l2 = seed % 3 == 0 ? 0 : 0.05;
    const Share::Order order = seed % 2 == 0 ? Share::Order::kRecent : Share::Order::kRandom;
    const base::SystemClock clock;
    base::InlineExecutor executor;
    Learner learner(set);
    ScheduledFactors scheduled(How(set, order, seed == 5 ? 1000 : 0), {nullptr, clock}, executor, Keep(set, nullptr),
                               *learner.parameters);
    double before = scheduled.Objective().value();
    for (int turn = 0; turn < 1000; ++turn) {
      ASSERT_TRUE(scheduled.Round(false).value());
      const double now = scheduled.Objective().value();
      ASSERT_LE(now, before * (1 + 1e-13)) << "seed " << seed << ", turn " << turn;
      before = now;
    }
  }
}

TEST(ScheduledFactors, AnyNumberOfMembersAndOfThreadsMakesTheSameBytes) {
  const Set set(3);
  Options looks = How(set);
  looks.trained = true;
  for (const Options& options :
       {How(set), How(set, Share::Order::kRecent, 5), How(set, Share::Order::kRandom), looks}) {
    const Made alone = Descend(nullptr, set, options, 60);
    for (const int members : {1, 2, 3, 4, 5, 7, 8, 16}) {
      SCOPED_TRACE(Str(members, " members"));
      std::vector<Made> made(static_cast<std::size_t>(members));
      fabric::RunMembers(members, [&](fabric::Fabric& fabric) {
        made[static_cast<std::size_t>(fabric.rank())] = Descend(&fabric, set, options, 60, 1 + fabric.rank() % 3);
      });
      for (const Made& each : made) {
        EXPECT_EQ(each.values, alone.values);
        EXPECT_EQ(each.objective, alone.objective);
        EXPECT_EQ(each.updates, alone.updates);
        EXPECT_EQ(each.rounds, 60 * (set.factors + 1));
        EXPECT_EQ(each.times.bytes_sent + each.times.bytes_shared > 0, members > 1);
        EXPECT_EQ(each.kept<set.ratings.size(), members> 1);
      }
    }
  }
}

TEST(ScheduledFactors, OverSocketsAndInSimulatedWorldsTheyMakeTheSameBytes) {
  const Set set(4);
  const Made alone = Descend(nullptr, set, How(set), 40);
  base::SystemClock clock;
  fabric::Members members = fabric::ConnectAll(3, clock);
  std::vector<std::vector<float>> values(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        ASSERT_TRUE(members[rank].ok()) << members[rank].error().text;
        values[rank] = Descend(members[rank].value().get(), set, How(set), 40).values;
      });
  }
  for (const auto& each : values) EXPECT_EQ(each, alone.values);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    fabric::sim::World world({.size = 3, .seed = seed});
    world.Run([&](fabric::sim::World::Member& member) {
      const auto fabric = member.Connect();
      values[static_cast<std::size_t>(member.rank())] = Descend(fabric.get(), set, How(set), 40).values;
    });
    for (const auto& each : values) EXPECT_EQ(each, alone.values) << "seed " << seed;
  }
}

TEST(ScheduledFactors, OnlyRowsThatAreRatedAreCoordinates) {
  Set set(12, 9);
  set.Add(1, 3, 9, 2, 7, 60, 2);
  const Learner start(set);
  Learner learner(set);
  base::InlineExecutor executor;
  const base::SystemClock clock;
  ScheduledFactors scheduled(How(set), {nullptr, clock}, executor, Keep(set, nullptr), *learner.parameters);
  EXPECT_EQ(scheduled.coordinates(), (6 + 5) * (set.factors + 1));
  EXPECT_EQ(scheduled.ratings(), 60u);
  for (int turn = 0; turn < 8; ++turn) ASSERT_TRUE(scheduled.Round(false).value());
  const auto same = [&](std::size_t block, std::uint32_t row) {
    return *learner.parameters->Row(block, row) == *start.parameters->Row(block, row);
  };
  for (std::uint32_t user = 0; user < 12; ++user)
    EXPECT_EQ(same(Factorization::kUserFactors, user), user < 3 || user >= 9);
  for (std::uint32_t item = 0; item < 9; ++item)
    EXPECT_EQ(same(Factorization::kItemFactors, item), item < 2 || item >= 7);
}

TEST(ScheduledFactors, WhoWishesToStopStopsAllAndNothingChanges) {
  const Set set(5);
  const base::SystemClock clock;
  for (int wishes = 0; wishes < 3; ++wishes)
    fabric::RunMembers(3, [&](fabric::Fabric& fabric) {
      fabric::Collectives collectives(fabric);
      base::InlineExecutor executor;
      Learner learner(set);
      ScheduledFactors scheduled(How(set), {&collectives, clock}, executor, Keep(set, &fabric), *learner.parameters);
      ASSERT_TRUE(scheduled.Round(false).value());
      const std::vector<float> before = learner.Values();
      EXPECT_FALSE(scheduled.Round(fabric.rank() == wishes).value());
      EXPECT_EQ(learner.Values(), before);
      EXPECT_EQ(scheduled.rounds(), set.factors + 1);
    });
}

// Updates until the objective is at most this, from where the parameters are.
std::uint64_t UpdatesUntil(const Set& set, const Options& options, const Learner& start, double objective) {
  const base::SystemClock clock;
  base::InlineExecutor executor;
  Learner learner(set);
  learner.parameters->CopyFrom(*start.parameters);
  ScheduledFactors scheduled(options, {nullptr, clock}, executor, Keep(set, nullptr), *learner.parameters);
  while (scheduled.Objective().value() > objective && scheduled.updates() < 1000 * scheduled.coordinates())
    EXPECT_TRUE(scheduled.Round(false).value());
  return scheduled.updates();
}

// Updates until all is gained but so much of what there is to gain: by sweeps in random order, and in recent order.
struct Needed {
  double swept = 0, recent = 0;
};
Needed UpdatesUntilLeft(double left, const Set& set, const Learner& start, bool trained) {
  const double least = LeastByPlainDescent(set, *start.parameters), first = PlainObjective(set, *start.parameters);
  const double goal = least + left * (first - least);
  Options recent = How(set);
  recent.trained = trained;
  const Needed needed{static_cast<double>(UpdatesUntil(set, How(set, Share::Order::kRandom), start, goal)),
                      static_cast<double>(UpdatesUntil(set, recent, start, goal))};
  std::cout << "updates until " << 100 * left << " % are left: " << needed.swept << " swept, " << needed.recent
            << " recent\n";
  return needed;
}

// A model that was trained, and then six users come who were not there before. To look at all rows first computes as much as
// updating each of them once.
TEST(ScheduledFactors, WhereOnlySomeRowsHaveMuchToChangeRecentOrderTakesFarFewerUpdatesThanSweeps) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Set set(300, 120);
    set.Add(seed, 0, 300, 0, 120, 9000, 2);
    Set before = set;
    before.ratings.clear();
    for (const Rating& rating : set.ratings)
      if (rating.user % 50 != 7) before.ratings.push_back(rating);
    Learner trained(before);
    const base::SystemClock clock;
    base::InlineExecutor executor;
    ScheduledFactors scheduled(How(set), {nullptr, clock}, executor, Keep(before, nullptr), *trained.parameters);
    for (int turn = 0; turn < 800; ++turn) ASSERT_TRUE(scheduled.Round(false).value());
    const Needed most = UpdatesUntilLeft(0.1, set, trained, true);
    EXPECT_LT(4 * most.recent, most.swept);
    const Needed nearly_all = UpdatesUntilLeft(0.01, set, trained, true);
    EXPECT_LT(4 * nearly_all.recent, nearly_all.swept);
    EXPECT_LT(nearly_all.recent + static_cast<double>(scheduled.coordinates()), nearly_all.swept);
  }
}

// Where all rows have much to change there is little to choose.
TEST(ScheduledFactors, WhereAllRowsChangeRecentOrderIsNotMuchBehindSweeps) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Set set(300, 120);
    set.Add(seed, 0, 300, 0, 120, 6000, 2);
    const Needed needed = UpdatesUntilLeft(0.01, set, Learner(set), false);
    EXPECT_LT(needed.recent, 1.25 * needed.swept);
  }
}

}  // namespace
}  // namespace freshet::strategy::scheduled
