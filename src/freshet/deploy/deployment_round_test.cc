// The writer's round: what it takes, how long it lasts, and in which order things happen.

#include <ctime>

#include "deploy/deployment.h"
#include "deploy/deployment_testing.h"

namespace freshet::deploy {
namespace {

// A clock that moves by a millisecond whenever somebody looks at it.
class TickingClock final : public base::Clock {
 public:
  Duration Now() const override { return std::chrono::milliseconds(++looks_); }
  Duration Wall() const override { return Now(); }
  void Sleep(Duration) override {}

 private:
  mutable std::atomic<int> looks_{0};
};

data::Rows RowsOf(const model::Model& model, std::uint64_t first, std::uint64_t count) {
  data::Rows rows = World::Row(model, first);
  for (std::uint64_t n = first + 1; n < first + count; ++n) rows.AppendRow(World::Row(model, n).batch(), 0);
  return rows;
}

double ThreadSeconds() {
  timespec time{};
  CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Round : public testing::Test {
 protected:
  std::unique_ptr<Deployment> Open(const std::string& name, model::TrainedModel start) {
    DeploymentOptions options = world_.Options(name);
    options.method = Method::kBaselinePlus;
    const base::Env env{world_.files, clock_, world_.log, world_.executor, world_.faults};
    return Deployment::Open(env, options, world_.runtime, world_.memory, std::move(start), {}).value();
  }
  World world_;
  TickingClock clock_;
};

TEST_F(Round, EndsAfterItsTimeHoweverManyRowsWait) {
  constexpr std::uint64_t kRows = 30'000;
  const auto deployment = Open("a", world_.Dense());
  bool answered = false;
  deployment->PostLearn(RowsOf(deployment->model(), 0, kRows), {}, {},
                        [&](const Result<LearnReply>& reply) { answered = reply.value().accepted == kRows; });
  int rounds = 0;
  std::uint64_t before = 0;
  for (; deployment->Turn(); ++rounds) {
    ASSERT_TRUE(answered);  // at once: all are in the log
    const std::uint64_t learned = deployment->stats().learned;
    ASSERT_GT(learned, before);
    ASSERT_LE(learned - before, 8'000u);  // 20 looks at the clock, a piece each
    ASSERT_EQ(deployment->stats().version, learned);
    before = learned;
  }
  EXPECT_GE(rounds, 4);
  EXPECT_EQ(before, kRows);
}

TEST_F(Round, LearnsTheSameInPiecesAsOneByOne) {
  constexpr std::uint64_t kRows = 12'000;
  const auto together = Open("a", world_.Sparse()), apart = Open("b", world_.Sparse());
  together->PostLearn(RowsOf(together->model(), 0, kRows), {}, {}, [](const auto&) {});
  together->Settle();
  world_.SendMany(*apart, 0, kRows);
  EXPECT_EQ(World::Fingerprint(*together), World::Fingerprint(*apart));
}

TEST_F(Round, TakesRequestsInTheirOrderAndNotAllAtOnce) {
  const auto deployment = Open("a", world_.Dense());
  std::vector<int> order;
  for (int i = 0; i < 10; ++i)
    deployment->PostLearn(RowsOf(deployment->model(), static_cast<std::uint64_t>(i) * 3'000, 3'000), {}, {},
                          [&order, i](const auto&) { order.push_back(i); });
  deployment->PostPin(0, true, [&](const auto&) { order.push_back(10); });
  deployment->PostLearn(RowsOf(deployment->model(), 0, 1), {}, {}, [&](const auto&) { order.push_back(11); });
  ASSERT_TRUE(deployment->Turn());
  EXPECT_EQ(order.size(), 2u);  // a third would make 9,000 rows
  deployment->Settle();
  EXPECT_EQ(std::vector(order.begin(), order.begin() + 10), std::vector({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  ASSERT_EQ(order.size(), 12u);
  EXPECT_EQ(deployment->stats().learned, 30'001u);
}

// Quadratic time took most of a minute for these; the limit leaves room for slow machines and sanitizers.
TEST_F(Round, TakesTimeInProportionToTheNewNamesOfARequest) {
  constexpr std::uint32_t kRows = 60'000;
  const auto deployment = Open("a", world_.Ratings());
  data::Rows rows;
  rows.ClearRows();
  std::vector<data::NewName> names;
  for (std::uint32_t n = 0; n < kRows; ++n) {
    rows.labels.Append(3);
    for (std::uint32_t space = 0; space < 2; ++space) {
      names.push_back({2 * n + space, space, Str(space == 0 ? "u" : "i", n)});
      rows.indices.Append(data::kUnseen);
      rows.values.Append(1);
    }
    rows.offsets.Append(2 * n + 2);
  }
  const double began = ThreadSeconds();
  deployment->PostLearn(std::move(rows), std::move(names), {}, [](const auto& reply) { EXPECT_TRUE(reply.ok()); });
  deployment->Settle();
  EXPECT_LT(ThreadSeconds() - began, 10);
  const auto& dictionaries = deployment->models().description().dictionaries;
  ASSERT_EQ(dictionaries[0].size(), kRows);
  EXPECT_EQ(dictionaries[0].Name(kRows - 1), Str("u", kRows - 1));
  EXPECT_EQ(dictionaries[1].Find("i123"), 123u);
}

}  // namespace
}  // namespace freshet::deploy
