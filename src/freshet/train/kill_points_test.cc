// Workers are killed at every place of a step and of a change of their group: the others end with the model that nothing
// disturbed, and so does who is started again.

#include "model/network/description.h"
#include "train/elastic_testing.h"

namespace freshet::train {
namespace {

using namespace std::chrono_literals;
using fabric::Algorithm;

// How workers meet, and what is then promised of the model.
struct Way {
  std::string name, strategy;
  Algorithm algorithm = Algorithm::kRing;
  bool exact = false;
  std::uint64_t parts = 0;  // of the input, which each reads some of
  std::string synchrony;    // of a parameter server
  std::string gossip = "pairs";
  int servers = 0;       // that have no rows
  bool network = false;  // whose layers are spread
};
const std::vector<Way> kWays = {{"ring", "allreduce", Algorithm::kRing},
                                {"tree", "allreduce", Algorithm::kTree},
                                {"halving", "allreduce", Algorithm::kHalving},
                                {"hierarchical", "allreduce", Algorithm::kHierarchical},
                                {"exact", "allreduce", Algorithm::kRing, true},
                                {"average", "average"},
                                {"groups", "groups"},
                                {"parts", "allreduce", Algorithm::kHalving, false, 5},
                                {"averageOfParts", "average", Algorithm::kRing, false, 6},
                                {"bulkServer", "server", Algorithm::kRing, false, 0, "bsp"},
                                {"staleServer", "server", Algorithm::kRing, false, 0, "ssp:2"},
                                {"approximateServer", "server", Algorithm::kRing, false, 0, "asp:0.01"},
                                {"barrierlessServer", "server", Algorithm::kRing, false, 0, "bap"},
                                {"ownServersInBulk", "server", Algorithm::kRing, false, 0, "bsp", "", 2},
                                {"ownServersBarrierless", "server", Algorithm::kRing, false, 0, "bap", "", 2},
                                {"pairs", "gossip", Algorithm::kRing, false, 0, "bsp", "pairs"},
                                {"pushSum", "gossip", Algorithm::kRing, false, 0, "bsp", "push-sum"},
                                {"walk", "gossip", Algorithm::kRing, false, 0, "bsp", "walk"},
                                {"ringOfColumns", "ring"},
                                {"ringOfLayers", "ring", Algorithm::kRing, false, 0, "", "", 0, true}};

class KillPoints : public ElasticTraining, public testing::WithParamInterface<Way> {
 protected:
  static constexpr int kMembers = 5;

  KillPoints() {
    plan_.strategy.kind = GetParam().strategy;
    plan_.strategy.exact = GetParam().exact;
    plan_.parts = GetParam().parts;
    plan_.strategy.every = 3;
    plan_.strategy.synchrony = GetParam().synchrony;
    plan_.strategy.replicas = 3;  // two are lost at a time
    plan_.strategy.gossip = GetParam().gossip;
    plan_.strategy.servers = GetParam().servers;
    if (GetParam().network) {
      plan_.model.kind = "network";
      plan_.model.network = ToToml(SmallNetwork());
      plan_.strategy.micro = 2;
    }
    run_.copy_every = 3;
    if (GetParam().strategy == "gossip") plan_.train.batch = 16;  // single rows would take no time
    plan_.strategy.block_momentum = GetParam().strategy == "average" ? 0.5 : 0;
    run_.size = kMembers;
    run_.algorithm = GetParam().algorithm;
    run_.hosts = {"a", "a", "b", "b", "c"};
    undisturbed_ = Train(run_);
    Forget();
  }

  static model::network::Graph SmallNetwork() {
    model::network::Graph graph({3});
    int at = 0;
    for (int layer = 0; layer < 5; ++layer) at = graph.Relu(graph.Dense(at, 6, Str("dense", layer)));
    graph.AddHead(graph.Dense(at, 1, "scores"));
    return graph;
  }

  // The n-th time that this rank is there, counted over its lives, it is killed; perhaps it is started again.
  void KillAt(std::string_view place, int rank, int nth, base::Clock::Duration back) {
    SCOPED_TRACE(Str(GetParam().name, ": rank ", rank, " at ", place, ", time ", nth,
                     back == Fault::kForEver ? ", for good" : ", started again"));
    int times = 0;
    run_.at = [&](World::Member& member, std::string_view where) {
      if (where == place && member.rank() == rank && !member.dead() && ++times == nth) member.Crash(back);
    };
    const auto ends = Train(run_);
    ASSERT_GE(times, nth) << "it was never there";
    ExpectPromises(ends, back == Fault::kForEver ? rank : -1);
    Forget();
  }

  void ExpectPromises(const std::vector<Ended>& ends, int gone) {
    const BenchOutcome& calm = undisturbed_[0].outcome;
    for (int rank = 0; rank < kMembers; ++rank) {
      const Ended& end = ends[static_cast<std::size_t>(rank)];
      if (rank == gone || gone_before_ == rank) continue;
      SCOPED_TRACE(Str("rank ", rank));
      ASSERT_TRUE(end.ran && end.outcome.ok()) << (end.outcome.error ? end.outcome.error->text : "did not end");
      EXPECT_EQ(end.outcome.report->rows, calm.report->rows);  // each counted once
      if (GetParam().exact)
        EXPECT_EQ(end.outcome.weights, calm.weights);
      else if (GetParam().strategy == "allreduce" || GetParam().strategy == "ring")
        EXPECT_LT(Distance(end.outcome, calm), 1e-5);
      else  // a mean of fewer is another, but as good
        EXPECT_NEAR(end.outcome.report->progressive.loss(), calm.report->progressive.loss(),
                    0.1 * calm.report->progressive.loss());
      if (first_ == nullptr) first_ = &end.outcome;
      EXPECT_EQ(end.outcome.weights, first_->weights);
    }
    first_ = nullptr;
  }

  Run run_;
  std::vector<Ended> undisturbed_;
  int gone_before_ = -1;
  const BenchOutcome* first_ = nullptr;
};

TEST_P(KillPoints, InAStep) {
  for (const char* const place : {"step.begin", "step.agreed", "step.computed", "step.exchanged", "step.done"})
    for (const int rank : {0, GetParam().servers > 0 ? 1 : 3})  // who only serves makes no steps
      for (const auto back : {Fault::kForEver, base::Clock::Duration(15ms)}) {
        KillAt(place, rank, 7, back);
        if (HasFailure()) return;
      }
}

// Another one was lost before, and they are finding out who is left.
TEST_P(KillPoints, InAChangeOfTheGroup) {
  run_.faults = fabric::sim::ParseFaults("crash rank=2 at=40ms", kMembers).value();
  gone_before_ = 2;
  for (const char* const place :
       {"regroup.begin", "regroup.decided", "regroup.levelled", "vote.promised", "vote.accepted", "vote.committed"})
    for (const int rank : {0, GetParam().strategy == "ring" ? 4 : 3})  // on a ring the next has the copies
      for (const auto back : {Fault::kForEver, base::Clock::Duration(15ms)}) {
        const int nth = std::string_view(place) == "vote.committed" ? 2 : 1;  // the first is how they begin
        KillAt(place, rank, nth, back);
        if (HasFailure()) return;
      }
}

INSTANTIATE_TEST_SUITE_P(Trainer, KillPoints, testing::ValuesIn(kWays),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace freshet::train
