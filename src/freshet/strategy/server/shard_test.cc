// A shard by itself, to which letters come in every order: what it promises holds whatever the workers do.

#include "strategy/server/shard.h"

#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "base/random.h"
#include "model/digest.h"
#include "strategy/packed_rows.h"
#include "strategy/server/copy.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy::server {
namespace {

using std::chrono::milliseconds;

Synchrony Of(const char* text) { return Synchrony::Parse(text).value(); }

TEST(Synchrony, IsReadAndWritten) {
  for (const char* const text : {"bsp", "ssp:3", "asp:0.01", "bap"}) EXPECT_EQ(Of(text).ToText(), text);
  EXPECT_EQ(Of("ssp:0").ToText(), "bsp");
  for (const char* const text : {"", "ssp", "ssp:", "ssp:-1", "ssp:1.5", "asp:", "asp:-1", "asp:nan", "bap:1", "tap"})
    EXPECT_FALSE(Synchrony::Parse(text).ok()) << text;
  EXPECT_EQ(Of("bsp").Needs(5), 5u);
  EXPECT_EQ(Of("ssp:3").Needs(5), 2u);
  EXPECT_EQ(Of("ssp:3").Needs(2), 0u);
  EXPECT_EQ(Of("bap").Needs(5), 0u);
}

TEST(Placement, SpreadsRangesEvenlyAndMovesFewWhenThereIsOneServerMore) {
  const std::vector<optimize::Block> blocks = {
      {"weights", 0, 1, 1u << 26}, {"factors", 0, 8, 1u << 26}, {"bias", 1, 1}};
  constexpr std::uint64_t kRanges = 4000;
  Placement before(blocks, 8), after(blocks, 9);
  const std::uint64_t size = before.RangeRows(0);
  EXPECT_EQ(size, before.RangeRows(1));
  std::vector<int> count(8, 0);
  std::uint64_t moved = 0;
  for (std::uint64_t range = 0; range < kRanges; ++range) {
    const int server = before.ServerOf(0, range * size), now = after.ServerOf(0, range * size);
    ++count[static_cast<std::size_t>(server)];
    EXPECT_EQ(before.ServerOf(1, range * size + size - 1), server);  // what belongs to a feature is in one place
    if (now == server) continue;
    ++moved;
    EXPECT_EQ(now, 8);  // nothing moves between those that were there
  }
  for (const int each : count) EXPECT_NEAR(each, kRanges / 8, kRanges / 8 * 0.4);
  EXPECT_NEAR(static_cast<double>(moved), kRanges / 9.0, kRanges / 9.0 * 0.5);
  const auto stretch = before.StretchFrom(0, 0, kRanges * size);
  EXPECT_EQ(stretch.server, before.ServerOf(0, stretch.last - 1));
  EXPECT_NE(stretch.server, before.ServerOf(0, stretch.last));
}

TEST(Placement, SpreadsTheFirstRangesLikeAllOthers) {
  Placement placement({{"weights", 0, 1, 1u << 26}, {"factors", 1 << 20, 1}}, 8, {.range_rows = 64});
  EXPECT_EQ(placement.RangeRows(0), 64u);
  for (const std::size_t block : {0, 1}) {
    std::vector<int> count(8, 0);
    for (std::uint64_t range = 0; range < 128; ++range)
      ++count[static_cast<std::size_t>(placement.ServerOf(block, range * 64))];
    for (const int each : count) EXPECT_NEAR(each, 16, 12);
  }
}

// Workers and shards with letters on their way between them, taken in whatever order a seed says: letters from one member to
// another keep theirs, some come twice. A worker's gradient counts its updates: with plain SGD of rate 1, the bias of the
// model is minus the sum of what was pushed and applied.
class Town {
 public:
  Town(const char* synchrony, int workers, int servers, std::uint64_t seed)
      : synchrony_(Of(synchrony)), random_(seed, "town"), task_(MakeTask("linear", 40, seed)), servers_(servers) {
    task_.optimizer.schedule.rate = 1;
    for (int s = 0; s < servers; ++s) {
      TestLearner start(task_);
      shards_.push_back(
          Shard::Make({synchrony_, workers, false}, *start.model, *start.parameters, *start.optimizer, memory_)
              .value());
      models_.push_back(std::move(start.model));  // which a shard borrows
    }
    for (int w = 0; w < workers; ++w) workers_.push_back(std::make_unique<Worker>(*this));
    to_server_.resize(static_cast<std::size_t>(workers * servers));
    to_worker_.resize(to_server_.size());
  }

  // Each worker makes so many updates; checks what it reads.
  void Run(std::uint64_t updates) {
    for (int turn = 0;; ++turn) {
      ASSERT_LT(turn, 1'000'000) << "somebody waits for ever";
      std::vector<std::function<void()>> may;
      for (std::size_t w = 0; w < workers_.size(); ++w) {
        Worker& worker = *workers_[w];
        if (worker.updates == updates && !worker.away) may.emplace_back([&, w] { GoAway(w); });
        if (worker.updates < updates && !worker.asked) may.emplace_back([&, w] { Ask(w); });
        if (worker.updates < updates && worker.asked && worker.copy.outstanding() == 0)
          may.emplace_back([&, w] { Work(w); });
      }
      for (std::size_t way = 0; way < to_server_.size(); ++way) {
        if (!to_server_[way].empty()) may.emplace_back([&, way] { Serve(way); });
        if (!to_worker_[way].empty()) may.emplace_back([&, way] { Answer(way); });
      }
      if (may.empty()) break;
      may[random_.Below(may.size())]();
      if (testing::Test::HasFailure()) return;
    }
    for (const auto& worker : workers_) EXPECT_EQ(worker->updates, updates);
    for (const auto& shard : shards_) EXPECT_TRUE(shard->idle());
  }

  float bias() { return *shards_[Owner()]->parameters().Row(1, 0); }
  std::uint64_t repeats() const { return repeats_; }

 private:
  struct Worker {
    explicit Worker(Town& town)
        : learner(town.task_),
          gradient(learner.model->NewGradient(town.memory_).value()),
          placement(BlocksOf(*learner.parameters), town.servers_),
          copy({town.synchrony_}, *learner.model, *learner.parameters, 1, placement, gradient) {}
    static std::vector<optimize::Block> BlocksOf(const optimize::Parameters& parameters) {
      std::vector<optimize::Block> blocks;
      for (std::size_t b = 0; b < parameters.blocks(); ++b) blocks.push_back(parameters.block(b));
      return blocks;
    }
    TestLearner learner;
    optimize::Gradient gradient;
    Placement placement;
    Copy copy;
    std::uint64_t updates = 0;
    bool asked = false, away = false;
  };

  std::size_t Owner() { return static_cast<std::size_t>(workers_[0]->placement.ServerOf(1, 0)); }
  void Send(std::size_t w, Copy::Letters letters) {
    for (std::size_t s = 0; s < letters.size(); ++s) {
      if (letters[s].empty()) continue;
      auto& way = to_server_[w * shards_.size() + s];
      way.push_back(letters[s]);
      if (static_cast<Kind>(letters[s][0]) != Kind::kPush || random_.Below(4) > 0) continue;
      way.push_back(std::move(letters[s]));  // as a successor of who died would repeat it
      ++repeats_;
    }
  }
  void Ask(std::size_t w) {
    Worker& worker = *workers_[w];
    worker.asked = true;
    const std::size_t row = random_.Below(task_.rows.size());
    Send(w, worker.copy.Ask(task_.rows.batch().Slice(row, row + 1), worker.updates));
  }
  // What it reads has what the synchrony promises of everybody's updates, and nothing that was not pushed.
  void Work(std::size_t w) {
    Worker& worker = *workers_[w];
    const std::uint64_t clock = worker.updates;
    std::uint64_t least = 0, most = 0;
    for (const auto& each : workers_) {
      least += std::min(each->updates, synchrony_.Needs(clock));
      most += each->updates;
    }
    const double seen = -*worker.learner.parameters->Row(1, 0) * Scale();
    ASSERT_GE(seen, static_cast<double>(least) - 1e-3);
    ASSERT_LE(seen, static_cast<double>(most) + 1e-3);
    if (synchrony_.kind == Synchrony::Kind::kStale)
      for (const auto& each : workers_) ASSERT_LE(clock, each->updates + synchrony_.staleness) << "it is too far ahead";
    worker.gradient.Clear();
    *worker.gradient.blocks[1].Touch(0) += 1;
    Send(w, worker.copy.Push({.clock = clock, .weight = 1}, {}));
    ++worker.updates;
    worker.asked = false;
  }
  // Updates behind one unit of the bias: a batch of all workers moves it by one.
  double Scale() const { return static_cast<double>(workers_.size()); }
  void GoAway(std::size_t w) {
    workers_[w]->away = true;
    Send(w, workers_[w]->copy.Away());
  }
  void Serve(std::size_t way) {
    const auto letter = std::move(to_server_[way].front());
    to_server_[way].pop_front();
    const std::size_t s = way % shards_.size();
    now_ += milliseconds(1);
    auto answers = shards_[s]->On(static_cast<int>(way / shards_.size()), letter, now_);
    ASSERT_TRUE(answers.ok()) << answers.error().text;
    for (Shard::Answer& answer : answers.value())
      to_worker_[static_cast<std::size_t>(answer.to) * shards_.size() + s].push_back(std::move(answer.bytes));
  }
  void Answer(std::size_t way) {
    const auto taken =
        workers_[way / shards_.size()]->copy.Take(static_cast<int>(way % shards_.size()), to_worker_[way].front());
    ASSERT_TRUE(taken.ok()) << taken.error().text;
    to_worker_[way].pop_front();
  }

  const Synchrony synchrony_;
  base::Random random_;
  Task task_;
  const int servers_;
  optimize::HeapMemory memory_;
  std::vector<std::unique_ptr<model::Model>> models_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::deque<std::vector<std::byte>>> to_server_, to_worker_;  // by worker and server
  base::Clock::Duration now_{0};
  std::uint64_t repeats_ = 0;
};

// What it asks for is on its way for a while, in which it learns by itself.
TEST(Copy, ThatReadsAheadKeepsWhatItHasMovedMeanwhile) {
  const Task task = MakeTask("linear", 40, 1);
  TestLearner learner(task);
  optimize::Gradient gradient = learner.model->NewGradient(learner.memory).value();
  Placement placement({learner.parameters->block(0), learner.parameters->block(1)}, 1);
  Copy copy({.synchrony = Of("asp:0"), .ahead = true}, *learner.model, *learner.parameters, 1, placement, gradient);
  float* const bias = learner.parameters->Row(1, 0);
  const data::Batch row = task.rows.batch().Slice(0, 1);
  const auto learn = [&](double moves) {
    gradient.Clear();
    *gradient.blocks[1].Touch(0) = static_cast<float>(-moves / task.optimizer.schedule.rate);
    model::Workspace workspace;
    copy.Learn(1, *learner.optimizer, workspace);
  };
  // A server that has this bias, and nothing else, answers.
  const auto answer = [&](const std::vector<std::byte>& letter, float value) {
    Reader reader(letter);
    const auto head = reader.Take<PullHead>().value();
    Writer writer(AnswerHead{.request = head.request});
    for (std::uint32_t i = 0; i < head.parcels; ++i) {
      const auto parcel = reader.Take<Parcel>().value();
      (void)reader.Numbers<std::uint32_t>(parcel.count);
      std::fill_n(writer.Floats(parcel.count), parcel.count, parcel.block == 1 ? value : 0.0f);
    }
    ASSERT_TRUE(copy.Take(0, writer.Take()).ok());
  };
  learn(1);
  const auto first = copy.Ask(row, 1);
  ASSERT_FALSE(first[0].empty());
  learn(0.5);
  EXPECT_TRUE(copy.Ask(row, 2)[0].empty());  // it is asked for already
  learn(0.25);
  EXPECT_EQ(copy.AskedAt(3), 1u);
  EXPECT_NEAR(*bias, 1.75, 1e-5);
  answer(first[0], 10);  // which has what was pushed before it was asked for
  EXPECT_NEAR(*bias, 10.75, 1e-5);
  EXPECT_EQ(copy.AskedAt(3), 3u);
  const auto second = copy.Ask(row, 3);
  ASSERT_FALSE(second[0].empty());
  answer(second[0], 11);
  EXPECT_NEAR(*bias, 11, 1e-5);
}

class Towns : public testing::TestWithParam<const char*> {};

TEST_P(Towns, EveryPushIsAppliedOnceAndReadsAreAsNewAsPromised) {
  const char* const seeds = std::getenv("FRESHET_SEEDS");
  const int count = seeds == nullptr ? 200 : std::atoi(seeds);
  std::uint64_t repeats = 0;
  for (int seed = 1; seed <= count; ++seed) {
    SCOPED_TRACE(seed);
    base::Random random(static_cast<std::uint64_t>(seed), "towns");
    const int workers = 1 + static_cast<int>(random.Below(5)), servers = 1 + static_cast<int>(random.Below(4));
    const std::uint64_t updates = 1 + random.Below(12);
    Town town(GetParam(), workers, servers, static_cast<std::uint64_t>(seed));
    town.Run(updates);
    ASSERT_FALSE(HasFailure());
    EXPECT_NEAR(town.bias(), -static_cast<double>(updates), 1e-3);
    repeats += town.repeats();
  }
  EXPECT_GT(repeats, static_cast<std::uint64_t>(count));
}

INSTANTIATE_TEST_SUITE_P(Synchrony, Towns, testing::Values("bsp", "ssp:1", "ssp:4", "bap", "asp:0"));

TEST(Shard, OfAClockThatIsNotCompleteNothingIsSeen) {
  const Task task = MakeTask("factorization", 40, 1);
  TestLearner start(task);
  data::Rows digest;
  digest.ClearRows();
  model::Digest(*start.model, *start.parameters, task.rows.batch(), *start.optimizer, digest);
  ASSERT_GT(digest.size(), 0u);  // the mean of ratings is learned by looking
  const auto shard =
      Shard::Make({Of("bsp"), 2, false}, *start.model, *start.parameters, *start.optimizer, start.memory).value();
  const std::vector<float> before(shard->parameters().Values(0).begin(), shard->parameters().Values(0).end());
  const auto push = [&](int worker) {
    const std::vector<std::byte> packed = PackRows(digest);
    Writer writer(PushHead{.weight = 40, .digest = packed.size()});
    writer.Put(packed.data(), packed.size());
    ASSERT_TRUE(shard->On(worker, writer.Take(), {}).ok());
  };
  const auto global = [&] {
    return std::vector<float>(shard->parameters().Values(0).begin(), shard->parameters().Values(0).end());
  };
  push(0);
  EXPECT_EQ(global(), before);
  push(1);
  EXPECT_NE(global(), before);
}

TEST(Shard, RefusesLettersOfAnotherModelOrCutShort) {
  const Task task = MakeTask("linear", 40, 1);
  TestLearner start(task);
  const auto refused = [&](const std::vector<std::byte>& letter, int worker = 0) {
    const auto shard =
        Shard::Make({Of("bap"), 1, false}, *start.model, *start.parameters, *start.optimizer, start.memory).value();
    const auto answers = shard->On(worker, letter, {});
    return !answers.ok() && answers.error().code == Code::kCorrupt;
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({std::byte{64}}));
  EXPECT_TRUE(refused(Writer(AnswerHead{}).Take()));
  Writer foreign(PullHead{.parcels = 1});
  foreign.Begin({.block = 7, .form = Parcel::Form::kStretch, .first = 0, .count = 1});
  EXPECT_TRUE(refused(foreign.Take()));
  Writer wide(PushHead{.parcels = 1});
  wide.Begin({.block = 0, .form = Parcel::Form::kRows, .first = 0, .count = UINT64_MAX / 4});
  EXPECT_TRUE(refused(wide.Take()));
  Writer same(PushHead{.parcels = 1});
  same.Begin({.block = 0, .form = Parcel::Form::kSame, .first = 0, .count = 3});
  EXPECT_TRUE(refused(same.Take()));
  Writer early(PushHead{.clock = 3});
  EXPECT_TRUE(refused(early.Take()));  // whose clock leaves some out
  EXPECT_FALSE(refused(Writer(AwayHead{}).Take()));
  EXPECT_TRUE(refused(Writer(AwayHead{}).Take(), 1));  // of whom there is none
}

}  // namespace
}  // namespace freshet::strategy::server
