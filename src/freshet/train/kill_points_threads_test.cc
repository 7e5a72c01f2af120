// The same as kill_points_test.cc with real threads and in real time: who is killed leaves its step, or the change of its
// group, on the spot, and the others go on without it.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "fabric/threads/threads_fabric.h"
#include "model/network/description.h"
#include "train/elastic_testing.h"

namespace freshet::train {
namespace {

using namespace std::chrono_literals;
using fabric::Algorithm;
using fabric::Envelope;
using fabric::MemberId;
using fabric::Roster;

// Letters between threads.
class ThreadPost final : public fabric::Post {
 public:
  using Book = std::map<std::string, ThreadPost*>;
  ThreadPost(std::string address, std::mutex& mutex, Book& book)
      : address_(std::move(address)), mutex_(mutex), book_(book) {
    const std::lock_guard lock(mutex_);
    book_[address_] = this;
  }
  ~ThreadPost() override {
    const std::lock_guard lock(mutex_);
    book_.erase(address_);
  }
  const std::string& address() const override { return address_; }
  void Send(const std::string& address, std::string letter) override {
    const std::lock_guard lock(mutex_);
    const auto to = book_.find(address);
    if (to == book_.end()) return;
    to->second->letters_.push_back(std::move(letter));
    to->second->came_.notify_all();
  }
  std::optional<std::string> Receive(base::Clock::Duration) override {  // it is woken before it ends
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return woken_ || !letters_.empty(); });
    woken_ = false;
    if (letters_.empty()) return std::nullopt;
    std::string letter = std::move(letters_.front());
    letters_.pop_front();
    return letter;
  }
  void Wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    came_.notify_all();
  }

 private:
  const std::string address_;
  std::mutex& mutex_;  // of all
  Book& book_;
  std::condition_variable came_;
  std::deque<std::string> letters_;
  bool woken_ = false;
};

struct Way {
  std::string name, strategy;
  Algorithm algorithm = Algorithm::kRing;
  std::string synchrony;  // of a parameter server
  std::string gossip = "pairs";
  bool network = false;  // whose layers are spread
};
const std::vector<Way> kWays = {{"ring", "allreduce", Algorithm::kRing},
                                {"tree", "allreduce", Algorithm::kTree},
                                {"halving", "allreduce", Algorithm::kHalving},
                                {"hierarchical", "allreduce", Algorithm::kHierarchical},
                                {"average", "average"},
                                {"groups", "groups"},
                                {"bulkServer", "server", Algorithm::kRing, "bsp"},
                                {"staleServer", "server", Algorithm::kRing, "ssp:2"},
                                {"barrierlessServer", "server", Algorithm::kRing, "bap"},
                                {"pairs", "gossip", Algorithm::kRing, "bsp", "pairs"},
                                {"pushSum", "gossip", Algorithm::kRing, "bsp", "push-sum"},
                                {"walk", "gossip", Algorithm::kRing, "bsp", "walk"},
                                {"ringOfColumns", "ring"},
                                {"ringOfLayers", "ring", Algorithm::kRing, "", "", true}};

class KillPointsOfThreads : public testing::TestWithParam<Way> {
 protected:
  static constexpr int kMembers = 4;
  // Who is killed where, the how many-th time it is there.
  struct Kill {
    int rank = 0;
    std::string place;
    int nth = 1;
  };

  KillPointsOfThreads() {
    plan_ = PlanForWorlds(bench_);
    plan_.train.checkpoint_path.clear();
    plan_.strategy.kind = GetParam().strategy;
    plan_.strategy.every = 3;
    plan_.strategy.synchrony = GetParam().synchrony;
    plan_.strategy.replicas = 3;  // two are lost at a time
    plan_.strategy.gossip = GetParam().gossip;
    if (!GetParam().network) return;
    model::network::Graph graph({3});
    int at = 0;
    for (int layer = 0; layer < 4; ++layer) at = graph.Relu(graph.Dense(at, 6, Str("dense", layer)));
    graph.AddHead(graph.Dense(at, 1, "scores"));
    plan_.model.kind = "network";
    plan_.model.network = ToToml(graph);
    plan_.strategy.micro = 2;
  }

  std::vector<BenchOutcome> Train(const std::vector<Kill>& kills) {
    base::SystemClock clock;
    std::mutex mutex;
    ThreadPost::Book book;
    ThreadPost agents("agents", mutex, book);
    std::map<std::uint64_t, std::unique_ptr<fabric::ThreadsGroup>> groups;
    std::map<MemberId, fabric::Testimony> kept;
    Roster first{.generation = 1, .seats = {}};
    for (int rank = 0; rank < kMembers; ++rank)
      first.seats.push_back({.id = static_cast<MemberId>(rank) + 1, .address = Str(rank)});
    std::vector<std::unique_ptr<ThreadPost>> posts;
    for (int rank = 0; rank < kMembers; ++rank) posts.push_back(std::make_unique<ThreadPost>(Str(rank), mutex, book));
    std::vector<BenchOutcome> outcomes(kMembers);
    std::mutex guard;  // of groups and kept
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kMembers; ++rank)
      threads.emplace_back([&, rank] {
        const fabric::Seat seat = first.seats[static_cast<std::size_t>(rank)];
        {
          fabric::ElasticGroup::Options how;
          how.membership = {.retry = 50ms, .patience = 10s};
          how.remember = [&](const fabric::Testimony& testimony) {
            const std::lock_guard lock(guard);
            kept[seat.id] = testimony;
          };
          const auto connect = [&](const Roster& roster, int place,
                                   const auto&) -> Result<std::unique_ptr<fabric::Fabric>> {
            const std::lock_guard lock(guard);
            auto& group = groups[roster.generation];
            fabric::ThreadsOptions options{.generation = roster.generation, .timeout = 20s};
            for (const fabric::Seat& each : roster.seats) options.hosts.push_back(each.id % 2 == 0 ? "a" : "b");
            if (!group)
              group = std::make_unique<fabric::ThreadsGroup>(static_cast<int>(roster.seats.size()), clock, options);
            auto fabric = group->Take(place);
            if (fabric == nullptr) return Error{Code::kPeerLost, "it was there before"};
            return fabric;
          };
          fabric::ElasticGroup group(how, seat, first, *posts[static_cast<std::size_t>(rank)], connect, clock);
          Plan plan = plan_;
          std::map<std::string, int, std::less<>> visits;
          plan.own_strategy = [&](strategy::Learner learner) {
            strategy::ElasticOptions options{.strategy = plan.strategy, .how = {.algorithm = GetParam().algorithm}};
            options.copy_every = 2;
            options.strategy.batch = plan.train.batch;
            learner.at = [&](std::string_view place) -> Result<void> {
              const int visit = ++visits[std::string(place)];
              for (const Kill& kill : kills)
                if (kill.rank == rank && kill.place == place && kill.nth == visit) return Error{Code::kIo, "killed"};
              return {};
            };
            auto made = strategy::ElasticStrategy::Make(options, group, learner);
            CHECK(made.ok());
            return std::move(made).value();
          };
          outcomes[static_cast<std::size_t>(rank)] = bench_.RunBy(plan, bench_.files, clock);
        }
        if (outcomes[static_cast<std::size_t>(rank)].ok()) return;
        fabric::Proof proof{.id = seat.id, .how = "killed", .testimony = {}};
        {
          const std::lock_guard lock(guard);
          proof.testimony = kept[seat.id];
        }
        for (int other = 0; other < kMembers; ++other)
          if (other != rank) agents.Send(Str(other), Envelope{.to = 0, .message = {}, .proof = proof}.Encode());
      });
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }

  void ExpectPromises(const std::vector<Kill>& kills) {
    const auto ends = Train(kills);
    const BenchOutcome* one = nullptr;
    for (int rank = 0; rank < kMembers; ++rank) {
      const BenchOutcome& end = ends[static_cast<std::size_t>(rank)];
      const bool killed = std::any_of(kills.begin(), kills.end(), [&](const Kill& kill) { return kill.rank == rank; });
      ASSERT_EQ(end.ok(), !killed) << "rank " << rank << (end.error ? Str(": ", end.error->text) : "");
      if (killed) continue;
      if (one == nullptr) one = &end;
      EXPECT_EQ(end.weights, one->weights);
      EXPECT_EQ(end.report->rows, 960u);  // two epochs of 480, each row counted once
    }
  }

  Bench bench_;
  Plan plan_;
};

TEST_P(KillPointsOfThreads, InAStepAndInAChangeOfTheGroup) {
  for (const int rank : {0, 2}) {
    for (const char* const place : {"step.begin", "step.agreed", "step.computed", "step.exchanged", "step.done"}) {
      SCOPED_TRACE(Str("rank ", rank, " at ", place));
      ASSERT_NO_FATAL_FAILURE(ExpectPromises({{rank, place, 5}}));
    }
    for (const char* const place : {"regroup.begin", "regroup.decided", "regroup.levelled"}) {
      SCOPED_TRACE(Str("rank ", rank, " at ", place));
      const int other = GetParam().strategy == "ring" ? 3 : rank;  // on a ring neighbours have each other's copies
      ASSERT_NO_FATAL_FAILURE(ExpectPromises({{1, "step.computed", 5}, {other, place, 1}}));
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Trainer, KillPointsOfThreads, testing::ValuesIn(kWays),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace freshet::train
