// Workers that each hold the layers of one place are one worker that computes its updates in as many parts, whatever the
// graph and wherever its layers lie.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "base/option.h"
#include "model/network/graphs_testing.h"
#include "strategy/modules/order.h"
#include "strategy/ring/ring_testing.h"

namespace freshet::strategy::modules {
namespace {

using model::network::Graph;
using ring::Made;

// Layers lie by their names' beginnings: those called so, and what follows them, in these places.
Graph Placed(Graph graph, const std::string& first, const std::map<std::string, std::string>& from) {
  std::string place = first;
  for (std::size_t layer = 1; layer < graph.layers.size(); ++layer) {
    if (const auto at = from.find(graph.layers[layer].name); at != from.end()) place = at->second;
    graph.layers[layer].place = place;
  }
  return graph;
}

// Each branch of the module with a worker of its own, what joins them with the first; the side head with another.
Graph BranchesApart() {
  return Placed(ring::Branches(), "stem",
                {{"reduce", "left"}, {"pool", "right"}, {"joined", "stem"}, {"later", "end"}, {"side", "left"}});
}

Graph AnyhowPlaced(const Graph& graph, std::uint64_t seed, std::uint64_t places) {
  Graph placed = graph;
  base::Random random(seed, "places");
  for (std::size_t layer = 1; layer < placed.layers.size(); ++layer) {
    const bool stays = layer > 1 && random.Below(2) == 0;
    placed.layers[layer].place = stays ? placed.layers[layer - 1].place : Str("p", random.Below(places));
  }
  return placed;
}

Assembly AssemblyOf(const Graph& graph) { return Assemble(graph, model::network::Infer(graph).value(), 24, 4).value(); }

StrategyOptions Options(const std::string& pipeline = "1f1b") {
  StrategyOptions options = ring::RingOptions(pipeline);
  options.kind = "modules";
  return options;
}

Task TaskOf(const Graph& graph, std::size_t rows = 300) { return NetworkTask(graph, rows, 1); }

void ExpectSerial(const Task& task, int members, const StrategyOptions& options,
                  const ring::Group& group = ring::OnThreads) {
  const std::vector<std::size_t> sizes = {24, 23, 3};  // cut unevenly, and few
  for (const std::size_t steps : {1, 8}) {
    SCOPED_TRACE(Str(steps, " steps by ", members, " members, ", options.pipeline));
    const Made alone = ring::TrainAlone(task, options, sizes, steps);
    const std::vector<Made> runs = ring::TrainRing(task, members, options, sizes, steps, group);
    double loss = 0;
    for (const Made& run : runs) {
      ASSERT_EQ(run.weights, runs[0].weights);
      EXPECT_EQ(run.state, runs[0].state);
      loss += std::accumulate(run.losses.begin(), run.losses.end(), 0.0);
    }
    EXPECT_LE(Distance(alone.weights, runs[0].weights), steps == 1 ? 1e-5 : 1e-3);
    const double expected = std::accumulate(alone.losses.begin(), alone.losses.end(), 0.0);
    ASSERT_TRUE(std::isfinite(expected));
    EXPECT_NEAR(loss, expected, (steps == 1 ? 1e-5 : 5e-3) * expected);
    if (steps > 1) continue;
    std::vector<float> scores;  // of all rows, by all members
    for (const Made& run : runs) scores.insert(scores.end(), run.scores.begin(), run.scores.end());
    EXPECT_LE(Distance(alone.scores, scores), 1e-5);
  }
}

TEST(Assembly, CutsAtPlacesAndKnowsWhoReadsWhat) {
  const Assembly assembly = AssemblyOf(BranchesApart());
  EXPECT_EQ(assembly.places, (std::vector<std::string>{"stem", "left", "right", "end"}));
  std::vector<int> members;
  for (const Module& module : assembly.modules) members.push_back(module.member);
  EXPECT_EQ(members, (std::vector<int>{0, 1, 2, 0, 3, 1}));
  // The stem's tensor is read by both branches, what the ones make by the join with the same worker, the join's by the end
  // and by the side head, what the end makes by the scores, which lie with that.
  std::vector<std::vector<std::size_t>> read;
  for (const Link& link : assembly.links) read.push_back(link.to);
  EXPECT_EQ(read, (std::vector<std::vector<std::size_t>>{{1, 2}, {3}, {3}, {3}, {4, 5}, {5}}));
  for (const Link& link : assembly.links) EXPECT_TRUE(link.tensor.learns);
  EXPECT_EQ(assembly.HeldBy(1).size(), 2u);
}

TEST(Assembly, RefusesWhatSaysNothingOfPlaces) {
  const Graph graph = ring::Branches();
  const auto refused = Assemble(graph, model::network::Infer(graph).value(), 24, 4);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find("place = "), std::string::npos) << refused.error().text;
}

// Members that each do their own actions in their order, as soon as what these need is there. False: they come to a halt.
bool ComesToItsEnd(const Assembly& assembly, const ring::Schedule& schedule, std::size_t micros) {
  std::vector<std::size_t> forward(assembly.modules.size(), 0), backward = forward;
  std::vector<std::size_t> next(schedule.actions.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t member = 0; member < next.size(); ++member) {
      if (next[member] == schedule.actions[member].size()) continue;
      const ring::Action& action = schedule.actions[member][next[member]];
      const auto at = static_cast<std::size_t>(action.stage);
      const Module& module = assembly.modules[at];
      EXPECT_EQ(module.member, static_cast<int>(member));
      bool ready = true;
      if (action.backward) {
        EXPECT_EQ(action.micro, backward[at]);
        ready = forward[at] > action.micro;
        for (const std::size_t link : module.leaves)
          for (const std::size_t reader : assembly.links[link].to) ready = ready && backward[reader] > action.micro;
      } else {
        EXPECT_EQ(action.micro, forward[at]);
        for (const std::size_t link : module.enters) ready = ready && forward[assembly.links[link].from] > action.micro;
      }
      if (!ready) continue;
      ++(action.backward ? backward : forward)[at];
      EXPECT_LE(forward[at] - backward[at], schedule.depth[at]);
      ++next[member];
      moved = true;
    }
  }
  const auto all = [&](const std::vector<std::size_t>& counts) {
    return std::all_of(counts.begin(), counts.end(), [&](std::size_t count) { return count == micros; });
  };
  return all(forward) && all(backward);
}

TEST(Order, EveryMicroBatchPassesEveryModuleInOrderAndNobodyWaitsForEver) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Graph random = model::network::RandomGraph(seed).graph();
    const Assembly assembly = AssemblyOf(AnyhowPlaced(random, seed, 1 + seed % 5));
    for (const ring::Order order : {ring::Order::kFlush, ring::Order::kOneByOne})
      for (const std::size_t micros : {1, 2, 7}) {
        SCOPED_TRACE(Str("seed ", seed, ", ", micros, " micro-batches"));
        EXPECT_TRUE(ComesToItsEnd(assembly, MakeOrder(assembly, order, micros).value(), micros));
      }
  }
}

TEST(Order, OfAChainIsThatOfARing) {
  Graph graph({4});
  int x = 0;
  for (int layer = 0; layer < 4; ++layer) {
    x = graph.Dense(x, 4);
    graph.layers.back().place = Str(layer);
  }
  graph.AddHead(x);
  const ring::Schedule order = MakeOrder(AssemblyOf(graph), ring::Order::kOneByOne, 8).value();
  const ring::Schedule expected = ring::MakeSchedule(ring::Order::kOneByOne, 4, 1, 8);
  EXPECT_EQ(order.actions, expected.actions);
  EXPECT_EQ(order.depth, expected.depth);
  EXPECT_FALSE(MakeOrder(AssemblyOf(graph), ring::Order::kInterleaved, 8).ok());
}

TEST(Modules, OnWhichBranchesLieApartAreOneWorkerWhoComputesInParts) {
  const Task task = TaskOf(BranchesApart());
  for (const std::string pipeline : {"flush", "1f1b"}) ExpectSerial(task, 4, Options(pipeline));
  ExpectSerial(task, 4, Options(), ring::InSimulatedTime);
  StrategyOptions again = Options();
  again.recompute = true;
  ExpectSerial(task, 4, again);
}

TEST(Modules, OfOnePlaceAreOneWorkerToo) { ExpectSerial(TaskOf(Placed(ring::Normalised(), "here", {})), 1, Options()); }

TEST(Modules, ThatComeBackToAPlaceAreOneWorkerToo) {
  const Graph graph = Placed(ring::Normalised(), "a", {{"again", "b"}, {"both", "a"}, {"hidden", "b"}});
  ASSERT_EQ(AssemblyOf(graph).modules.size(), 4u);
  ExpectSerial(TaskOf(graph), 2, Options());
}

TEST(Modules, GiveTheSameBytesTwiceAndInSimulatedTime) {
  const Task task = TaskOf(BranchesApart());
  const auto once = ring::TrainRing(task, 4, Options(), {24}, 6), again = ring::TrainRing(task, 4, Options(), {24}, 6);
  EXPECT_EQ(once[0].weights, again[0].weights);
  EXPECT_EQ(once[0].losses, again[0].losses);
  EXPECT_EQ(once[0].weights, ring::TrainRing(task, 4, Options(), {24}, 6, ring::InSimulatedTime)[0].weights);
}

// Of what travels the tensors are as many as the graph says, and no more: no parameters.
TEST(Modules, SendTensorsAndTheirGradientsOnly) {
  const Graph graph = BranchesApart();
  const Assembly assembly = AssemblyOf(graph);
  const auto runs = ring::TrainRing(TaskOf(graph), 4, Options(), {24}, 5);
  std::vector<std::uint64_t> on(4, 0), back(4, 0);
  for (const Link& link : assembly.links)
    for (const std::size_t reader : link.to) {
      const auto from = static_cast<std::size_t>(assembly.modules[link.from].member);
      const auto to = static_cast<std::size_t>(assembly.modules[reader].member);
      if (from == to) continue;
      const std::uint64_t bytes = 24 * 5 * sizeof(float) * static_cast<std::uint64_t>(link.tensor.elements);
      on[from] += bytes;
      back[to] += bytes;
    }
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(runs[rank].times.bytes_next, on[rank]);
    EXPECT_EQ(runs[rank].times.bytes_back, back[rank]);
  }
}

TEST(Modules, OfAnyGraphPlacedAnyhowAreOneWorker) {
  int tried = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    const Graph graph = AnyhowPlaced(model::network::RandomGraph(seed).graph(), seed, 2 + seed % 3);
    const auto task = ring::RandomTask(graph, seed);
    if (!task) continue;
    StrategyOptions options = Options(seed % 2 == 0 ? "flush" : "1f1b");
    options.batch = 12;
    options.micro = 3;
    options.recompute = seed % 5 == 0;
    const Made alone = ring::TrainAlone(*task, options, {12}, 1);
    const auto members = static_cast<int>(AssemblyOf(graph).places.size());
    const auto runs = ring::TrainRing(*task, members, options, {12}, 1);
    ASSERT_LE(Distance(alone.weights, runs[0].weights), 1e-5) << members << " members";
    ++tried;
  }
  EXPECT_GE(tried, 30);
}

TEST(Modules, RefuseWhatDoesNotGoWithThem) {
  const auto refusal = [](const Graph& graph, int members, const std::function<void(StrategyOptions&)>& change) {
    StrategyOptions options = Options();
    change(options);
    std::string text;
    ring::OnThreads(members, [&](fabric::Fabric& fabric) {
      TestLearner learner(TaskOf(graph));
      fabric::Collectives collectives(fabric);
      const auto made = Strategy::Make(options, learner.World(collectives));
      if (fabric.rank() == 0) text = made.ok() ? "" : made.error().text;
    });
    return text;
  };
  const auto nothing = [](StrategyOptions&) {};
  EXPECT_NE(refusal(BranchesApart(), 3, nothing).find("4 places (stem, left, right, end), and there are 3 workers"),
            std::string::npos);
  EXPECT_NE(refusal(ring::Branches(), 2, nothing).find("docs/modules.md"), std::string::npos);
  for (const auto& [change, word] : std::vector<std::pair<std::function<void(StrategyOptions&)>, std::string>>{
           {[](StrategyOptions& o) { o.pipeline = "interleaved"; }, "flush or 1f1b"},
           {[](StrategyOptions& o) { o.pipeline = "stash"; }, "flush or 1f1b"},
           {[](StrategyOptions& o) { o.codec = "fp16"; }, "codec"},
           {[](StrategyOptions& o) { o.micro = 25; }, "micro"},
           {[](StrategyOptions& o) { o.accumulate = 2; }, "accumulate"},
           {[](StrategyOptions& o) { o.balance = true; }, "balance"},
           {[](StrategyOptions& o) { o.whole = false; }, "split"}})
    EXPECT_NE(refusal(BranchesApart(), 4, change).find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace freshet::strategy::modules
