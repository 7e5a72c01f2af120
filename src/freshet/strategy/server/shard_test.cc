// A shard by itself, to which letters come in every order: what it promises holds whatever the workers do.

#include "strategy/server/shard.h"

#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "base/random.h"
#include "model/digest.h"
#include "strategy/packed_rows.h"
#include "strategy/server/copy.h"
#include "strategy/server/waits.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy::server {
namespace {

using std::chrono::milliseconds;

Synchrony Of(const char* text) { return Synchrony::Parse(text).value(); }

TEST(Synchrony, IsReadAndWritten) {
  for (const char* const text : {"bsp", "ssp:3", "asp:0.01", "bap"}) EXPECT_EQ(Of(text).ToText(), text);
  EXPECT_EQ(Of("ssp:0").ToText(), "bsp");
  EXPECT_EQ(Of("").ToText(), "bsp");
  for (const char* const text : {"ssp", "ssp:", "ssp:-1", "ssp:1.5", "asp:", "asp:-1", "asp:nan", "bap:1", "tap"})
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

TEST(Placement, SpreadsTheFewRangesOfASmallModelToo) {
  const std::vector<optimize::Block> blocks = {{"weights", 0, 1, 1u << 26}, {"bias", 1, 1}};
  for (int servers = 2; servers < 8; ++servers) {
    SCOPED_TRACE(servers);
    Placement placement(blocks, servers);
    std::vector<int> count(static_cast<std::size_t>(servers), 0);
    for (std::uint64_t range = 0; range < 64; ++range)
      ++count[static_cast<std::size_t>(placement.ServerOf(0, range * placement.RangeRows(0)))];
    for (const int each : count) EXPECT_NEAR(each, 64.0 / servers, 40.0 / servers + 3);
    std::uint64_t rows = 0;
    for (int server = 0; server < servers; ++server) rows += placement.RowsOf(server, 0, 1'000'000);
    EXPECT_EQ(rows, 1'000'000u);
  }
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
      shards_.push_back(Shard::Make({.synchrony = synchrony_, .workers = workers}, *start.model, *start.parameters,
                                    *start.optimizer, memory_)
                            .value());
      models_.push_back(std::move(start.model));  // which a shard borrows
    }
    ahead_ = synchrony_.kind == Synchrony::Kind::kStale && random_.Below(2) == 0;
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
        if (worker.updates == updates || !worker.asked) continue;
        const bool answered = worker.copy.outstanding() == 0, new_enough = worker.copy.MayRead(worker.updates);
        if (ahead_ ? new_enough : answered) may.emplace_back([&, w] { Work(w); });
        if (ahead_ && answered && !new_enough) may.emplace_back([&, w] { AskAgain(w); });
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
  std::vector<float> Everything() const {  // of all shards
    std::vector<float> all;
    for (const auto& shard : shards_)
      for (std::size_t b = 0; b < shard->parameters().blocks(); ++b) {
        const auto values = shard->parameters().Gather(b);
        all.insert(all.end(), values.begin(), values.end());
      }
    return all;
  }
  std::uint64_t repeats() const { return repeats_; }
  std::uint64_t read_ahead() const { return read_ahead_; }    // before all answers had come
  std::uint64_t asked_again() const { return asked_again_; }  // for what was answered, and was too old then

 private:
  struct Worker {
    explicit Worker(Town& town)
        : learner(town.task_),
          gradient(learner.model->NewGradient(town.memory_).value()),
          placement(BlocksOf(*learner.parameters), town.servers_),
          copy({.synchrony = town.synchrony_, .ahead = town.ahead_}, *learner.model, *learner.parameters, 1, placement,
               gradient) {}
    static std::vector<optimize::Block> BlocksOf(const optimize::Parameters& parameters) {
      std::vector<optimize::Block> blocks;
      for (std::size_t b = 0; b < parameters.blocks(); ++b) blocks.push_back(parameters.block(b));
      return blocks;
    }
    TestLearner learner;
    optimize::Gradient gradient;
    Placement placement;
    Copy copy;
    model::Workspace workspace;
    std::uint64_t updates = 0;
    bool asked = false, away = false;
    data::Batch row;
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
    worker.row = task_.rows.batch().Slice(row, row + 1);
    Send(w, worker.copy.Ask(worker.row, worker.updates));
  }
  void AskAgain(std::size_t w) {
    ++asked_again_;
    Send(w, workers_[w]->copy.Ask(workers_[w]->row, workers_[w]->updates));
  }
  // What it reads has what the synchrony promises of everybody's updates, and nothing that was not pushed.
  void Work(std::size_t w) {
    Worker& worker = *workers_[w];
    const std::uint64_t clock = worker.updates;
    read_ahead_ += worker.copy.outstanding() > 0 ? 1 : 0;
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
    if (ahead_) worker.copy.Learn(Scale(), *worker.learner.optimizer, worker.workspace);
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
  bool ahead_ = false;  // workers do not wait for what is on its way
  std::uint64_t repeats_ = 0, read_ahead_ = 0, asked_again_ = 0;
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
  std::uint64_t repeats = 0, read_ahead = 0, asked_again = 0;
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
    read_ahead += town.read_ahead();
    asked_again += town.asked_again();
  }
  EXPECT_GT(repeats, static_cast<std::uint64_t>(count));
  if (Of(GetParam()).kind == Synchrony::Kind::kStale) {
    EXPECT_GT(read_ahead, static_cast<std::uint64_t>(count));
    EXPECT_GT(asked_again, static_cast<std::uint64_t>(count) / 100);
  }
}

TEST(ApproximateTowns, ThatHoldBackNothingAreBarrierlessOnesOfTheSameSchedule) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<std::vector<float>> ends;
    for (const char* const synchrony : {"asp:0", "bap"}) {
      Town town(synchrony, 3, 2, seed);
      town.Run(10);
      ASSERT_FALSE(testing::Test::HasFailure());
      ends.push_back(town.Everything());
    }
    EXPECT_EQ(ends[0], ends[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(Synchrony, Towns, testing::Values("bsp", "ssp:1", "ssp:4", "bap", "asp:0"));

TEST(Shard, OfAClockThatIsNotCompleteNothingIsSeen) {
  const Task task = MakeTask("factorization", 40, 1);
  TestLearner start(task);
  data::Rows digest;
  digest.ClearRows();
  model::Digest(*start.model, *start.parameters, task.rows.batch(), *start.optimizer, digest);
  ASSERT_GT(digest.size(), 0u);  // the mean of ratings is learned by looking
  const auto shard = Shard::Make({.synchrony = Of("bsp"), .workers = 2}, *start.model, *start.parameters,
                                 *start.optimizer, start.memory)
                         .value();
  const std::vector<float> before(shard->parameters().Values(0).begin(), shard->parameters().Values(0).end());
  const auto push = [&](int worker) {
    const std::vector<std::byte> packed = PackRows(digest);
    Writer writer(PushHead{.weight = 40, .digest = packed.size()});
    writer.Put(packed.data(), packed.size());
    const auto pushed = shard->On(worker, writer.Take(), {});
    ASSERT_TRUE(pushed.ok()) << pushed.error().text;
  };
  const auto global = [&] {
    return std::vector<float>(shard->parameters().Values(0).begin(), shard->parameters().Values(0).end());
  };
  push(0);
  EXPECT_EQ(global(), before);
  push(1);
  EXPECT_NE(global(), before);
}

// Of shares that are dealt out anew for each clock, some come whole and in parts, some twice, in every order.
TEST(Shard, TakesEachShareOnceWholeOrInAllItsParts) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    base::Random random(seed, "shares");
    Task task = MakeTask("linear", 40, seed);
    task.optimizer.schedule.rate = 1;
    TestLearner start(task);
    const int workers = 1 + static_cast<int>(random.Below(4));
    const auto shard = Shard::Make({.synchrony = Of("bsp"), .workers = workers, .dealt = true}, *start.model,
                                   *start.parameters, *start.optimizer, start.memory)
                           .value();
    struct Sent {
      std::uint64_t clock = 0;
      std::uint16_t share = 0, part = 0, parts = 1;
    };
    std::vector<Sent> on_their_way;
    constexpr std::uint64_t kClocks = 5;
    std::vector<std::uint16_t> shares(kClocks);
    for (std::uint64_t clock = 0; clock < kClocks; ++clock) {
      shares[clock] = static_cast<std::uint16_t>(1 + random.Below(4));
      for (std::uint16_t share = 0; share < shares[clock]; ++share) {
        const auto parts = static_cast<std::uint16_t>(random.Below(4));
        if (parts == 0 || random.Below(2) == 0) on_their_way.push_back({clock, share});
        for (std::uint16_t part = 0; part < parts; ++part) on_their_way.push_back({clock, share, part, parts});
      }
    }
    for (int i = 0; i < 4; ++i) on_their_way.push_back(on_their_way[random.Below(on_their_way.size())]);
    std::set<std::tuple<std::uint64_t, std::uint16_t, std::uint16_t, std::uint16_t>> came;
    const auto complete = [&](std::uint64_t clock) {
      for (std::uint16_t share = 0; share < shares[clock]; ++share) {
        bool here = false;
        for (std::uint16_t parts = 1; parts < 4; ++parts) {
          bool all = true;
          for (std::uint16_t part = 0; part < parts; ++part) all = all && came.contains({clock, share, part, parts});
          here = here || all;
        }
        if (!here) return false;
      }
      return true;
    };
    while (!on_their_way.empty()) {
      const std::size_t which = random.Below(on_their_way.size());
      const Sent sent = on_their_way[which];
      on_their_way.erase(on_their_way.begin() + static_cast<std::ptrdiff_t>(which));
      const std::vector<std::uint32_t> bias = {0};
      Writer push(PushHead{.parcels = 1,
                           .clock = sent.clock,
                           .weight = 1.0 / sent.parts,
                           .share = sent.share,
                           .shares = shares[sent.clock],
                           .part = sent.part,
                           .parts = sent.parts});
      push.Begin({.block = 1, .form = Parcel::Form::kRows, .count = 1}, bias);
      *push.Floats(1) = 1.0f / static_cast<float>(sent.parts);
      const auto taken =
          shard->On(static_cast<int>(random.Below(static_cast<std::uint64_t>(workers))), push.Take(), {});
      ASSERT_TRUE(taken.ok()) << taken.error().text;
      came.insert({sent.clock, sent.share, sent.part, sent.parts});
      std::uint64_t made = 0;
      while (made < kClocks && complete(made)) ++made;
      ASSERT_EQ(shard->updates(), made);
      ASSERT_NEAR(*shard->parameters().Row(1, 0), -static_cast<double>(made), 1e-5);
    }
    EXPECT_EQ(shard->updates(), kClocks);
    EXPECT_TRUE(shard->idle());
    EXPECT_FALSE(shard->On(0, Writer(PushHead{.clock = kClocks, .share = 1, .shares = 1, .parts = 1}).Take(), {}).ok());
  }
}

TEST(Shard, SaysForWhomAReaderWaited) {
  const Task task = MakeTask("linear", 40, 1);
  TestLearner start(task);
  const auto shard = Shard::Make({.synchrony = Of("bsp"), .workers = 3}, *start.model, *start.parameters,
                                 *start.optimizer, start.memory)
                         .value();
  const auto at = [&](int worker, const std::vector<std::byte>& letter, int ms) {
    return shard->On(worker, letter, milliseconds(ms)).value();
  };
  const auto pull = [](std::uint64_t needs) {
    Writer writer(PullHead{.parcels = 1, .needs = needs});
    writer.Begin({.block = 1, .count = 1});
    return writer.Take();
  };
  const auto head = [](const Shard::Answer& answer) { return Reader(answer.bytes).Take<AnswerHead>().value(); };
  EXPECT_EQ(head(at(0, pull(0), 1).at(0)).waited_for, -1);  // nobody had to push anything
  EXPECT_EQ(at(0, Writer(PushHead{.weight = 1}).Take(), 10).size(), 0u);
  EXPECT_EQ(at(0, pull(1), 10).size(), 0u);
  EXPECT_EQ(at(2, Writer(PushHead{.weight = 1}).Take(), 30).size(), 0u);
  EXPECT_EQ(at(2, pull(1), 30).size(), 0u);
  const auto answers = at(1, Writer(PushHead{.weight = 1}).Take(), 110);
  ASSERT_EQ(answers.size(), 2u);
  for (const Shard::Answer& answer : answers) {
    EXPECT_EQ(head(answer).waited_for, 1);
    EXPECT_NEAR(head(answer).waited, answer.to == 0 ? 0.1 : 0.08, 1e-9);
  }
  EXPECT_EQ(head(at(1, pull(1), 120).at(0)).waited_for, -1);
}

TEST(Waits, AreForWhomTookLongestInAStepAndNoLongerThanItStood) {
  Waits waits(3);
  waits.Took({.waited_for = 2, .waited = 0.3});
  waits.Took({.waited_for = 0, .waited = 0.1});
  EXPECT_EQ(waits.EndStep(1), 0.3);
  EXPECT_EQ(waits.EndStep(1), 0);
  waits.Took({.waited_for = 1, .waited = 0.3});
  EXPECT_EQ(waits.EndStep(0.2), 0.2);
  waits.Took({.waited_for = -1, .waited = 0});
  waits.Took({.waited_for = 3, .waited = 0.5});  // of whom there is none
  EXPECT_EQ(waits.EndStep(1), 0.5);
  EXPECT_EQ(waits.seconds(), (std::vector<double>{0, 0.2, 0.3}));
}

TEST(Shard, CountsTheBytesThatArePulledAndPushedOnce) {
  const Task task = MakeTask("linear", 40, 1);
  for (const char* const synchrony : {"bsp", "bap"})
    for (const char* const name : {"none", "fp16"}) {
      SCOPED_TRACE(Str(synchrony, " ", name));
      TestLearner start(task);
      const auto codec = fabric::Codec::Make(name).value();
      Heat::Options heat{.range_rows = {10, 10}, .every = 1};
      const auto shard = Shard::Make({.synchrony = Of(synchrony), .codec = codec.get(), .heat = heat}, *start.model,
                                     *start.parameters, *start.optimizer, start.memory)
                             .value();
      Encoding encoding(std::string(name) == "none" ? nullptr : codec.get(), *start.parameters);
      const std::vector<std::uint32_t> rows = {3, 17, 31};
      for (std::uint64_t clock = 0; clock < 10; ++clock) {
        Writer pull(PullHead{.parcels = 1});
        pull.Begin({.form = Parcel::Form::kRows, .count = rows.size()}, rows);
        ASSERT_TRUE(shard->On(0, pull.Take(), {}).ok());
        Writer push(PushHead{.parcels = 1, .clock = clock, .weight = 1});
        std::fill_n(encoding.Begin(push, {.form = Parcel::Form::kSame, .count = rows.size()}, rows), rows.size(), 1.0f);
        encoding.End(push);
        const auto letter = push.Take();
        ASSERT_TRUE(shard->On(0, letter, {}).ok());
        ASSERT_TRUE(shard->On(0, letter, {}).ok());  // of no effect
      }
      const Report::Block told = shard->heat().Tell(0, 40);
      const std::uint64_t pushed = std::string(name) == "none" ? 4 : 2;
      EXPECT_EQ(told.pulled, 10 * 3 * 4u);
      EXPECT_EQ(told.pushed, 10 * 3 * pushed);
      ASSERT_EQ(told.hottest.size(), 3u);
      for (const Report::Row& row : told.hottest) EXPECT_EQ(row.bytes, 10 * (4 + pushed));
      ASSERT_EQ(told.busiest.size(), 3u);
      EXPECT_EQ(told.busiest[2].first, 30u);
      EXPECT_EQ(shard->updates(), 10u);
    }
}

TEST(Shard, RefusesLettersOfAnotherModelOrCutShort) {
  const Task task = MakeTask("linear", 40, 1);
  TestLearner start(task);
  const auto refused = [&](const std::vector<std::byte>& letter, int worker = 0) {
    const auto shard =
        Shard::Make({.synchrony = Of("bap")}, *start.model, *start.parameters, *start.optimizer, start.memory).value();
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
  Writer encoded(PushHead{.parcels = 1});  // though no codec was agreed on
  encoded.Begin({.block = 1, .form = Parcel::Form::kRows, .values = Parcel::Values::kEncoded, .count = 1}, {{0}});
  encoded.Put(std::array<std::uint64_t, 2>{2, 0}.data(), 16);
  EXPECT_TRUE(refused(encoded.Take()));
  Writer early(PushHead{.clock = 3});
  EXPECT_TRUE(refused(early.Take()));  // whose clock leaves some out
  EXPECT_FALSE(refused(Writer(AwayHead{}).Take()));
  EXPECT_TRUE(refused(Writer(AwayHead{}).Take(), 1));  // of whom there is none
}

TEST(Shard, RefusesWhatNoCodecHasMade) {
  const Task task = MakeTask("perceptron", 40, 1);
  TestLearner start(task);
  const std::uint64_t rows = start.parameters->rows(0), floats = rows * start.parameters->width(0);
  for (const char* const synchrony : {"bsp", "bap"})
    for (const std::string& name : fabric::Codec::Names()) {
      const auto codec = fabric::Codec::Make(name).value();
      const auto refused = [&](const Parcel& parcel, std::uint64_t length, std::size_t bytes) {
        Writer writer(PushHead{.parcels = 1, .weight = 1});
        writer.Begin(parcel);
        writer.Put(&length, sizeof length);
        writer.Put(std::vector<std::byte>(bytes, std::byte{0xff}).data(), bytes);
        const auto shard = Shard::Make({.synchrony = Of(synchrony), .codec = codec.get()}, *start.model,
                                       *start.parameters, *start.optimizer, start.memory)
                               .value();
        const auto answers = shard->On(0, writer.Take(), {});
        return !answers.ok() && answers.error().code == Code::kCorrupt;
      };
      const Parcel all{.values = Parcel::Values::kEncoded, .count = rows};
      std::vector<std::byte> whole;
      codec->Encode(std::vector<float>(floats, 1.0f), {}, whole);
      EXPECT_TRUE(refused(all, whole.size(), whole.size() - 8)) << name;  // more than there is
      EXPECT_TRUE(refused(all, UINT64_MAX, whole.size())) << name;
      EXPECT_TRUE(refused(all, whole.size() / 2, whole.size())) << name;  // less than it takes
      EXPECT_TRUE(refused(all, 0, 0)) << name;
      Parcel more = all;
      more.count = UINT64_MAX / 8;
      EXPECT_TRUE(refused(more, whole.size(), whole.size())) << name;
      more = {.values = Parcel::Values::kEncoded, .first = 1, .count = rows};
      EXPECT_TRUE(refused(more, whole.size(), whole.size())) << name;
    }
}

}  // namespace
}  // namespace freshet::strategy::server
