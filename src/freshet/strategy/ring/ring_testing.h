#pragma once

#include <functional>

#include "fabric/sim/cluster.h"
#include "fabric/sim/star_flows.h"
#include "strategy/alone.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy::ring {

// What tests of rings share: networks to cut, and runs of a ring beside one worker that computes in as many parts.

// A module of branches in the manner of GoogLeNet, after a convolution; pooling, an auxiliary head, dropout.
inline model::network::Graph Branches() {
  model::network::Graph graph({2, 8, 8});
  const int stem = graph.Relu(graph.Convolution(0, 8, 3, 1, 1, "stem"));
  const int ones = graph.Relu(graph.Convolution(stem, 4, 1, 1, 0, "ones"));
  const int reduce = graph.Relu(graph.Convolution(stem, 4, 1, 1, 0, "reduce"));
  const int threes = graph.Relu(graph.Convolution(reduce, 6, 3, 1, 1, "threes"));
  const int pooled = graph.Relu(graph.Convolution(graph.MaxPool(stem, 3, 1, 1, false, "pool"), 4, 1, 1, 0, "project"));
  const int joined = graph.Concat({ones, threes, pooled}, "joined");
  const int later = graph.Relu(graph.Convolution(joined, 8, 3, 2, 1, "later"));
  const int mean = graph.Plain(model::network::Op::kGlobalAveragePool, later, "mean");
  graph.AddHead(0);
  graph.AddHead(graph.Dense(graph.Dropout(graph.Relu(graph.Dense(joined, 12, "side")), 0.3), 3, "side/scores"), 0.3);
  graph.heads[0].layer = graph.Dense(graph.Dropout(mean, 0.4), 3, "scores");
  return graph;
}

inline model::network::Graph Normalised() {
  using model::network::Op;
  model::network::Graph graph({2, 6, 6});
  int x = graph.Relu(graph.Plain(Op::kBatchNorm, graph.Convolution(0, 5, 3, 1, 1, "conv"), "first"));
  const int around = x;
  x = graph.Plain(Op::kBatchNorm, graph.Convolution(x, 5, 3, 1, 1, "again"), "second");
  x = graph.Relu(graph.Sum({x, around}, "both"));
  x = graph.Plain(Op::kBatchNorm, graph.Dense(graph.MaxPool(x, 2, 2, 0, false, "pool"), 8, "hidden"), "third");
  graph.AddHead(graph.Dense(graph.Plain(Op::kTanh, x, "tanh"), 3, "scores"));
  return graph;
}

// Symbols in a row, of which each but the first is a number more than the one before, more or less.
inline Task SequenceTask(std::size_t rows, std::uint64_t seed) {
  constexpr std::int64_t kSymbols = 7, kSteps = 6;
  Task task;
  task.name = "sequence";
  task.config =
      NetworkConfig(model::network::MakeZoo("char-lstm", {kSteps}, kSymbols, {.hidden = 10, .dropout = 0.2}).value(),
                    static_cast<std::uint64_t>(kSymbols));
  task.optimizer.kind = "adam";
  task.optimizer.schedule.rate = 0.005;
  base::Random random(seed, task.name);
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<float> symbols;
    std::uint64_t symbol = random.Below(kSymbols);
    for (std::int64_t step = 0; step <= kSteps; ++step, symbol = (symbol + 1 + random.Below(2)) % kSymbols)
      symbols.push_back(static_cast<float>(symbol));
    const float last = symbols.back();
    symbols.pop_back();
    model::AddDense(task.rows, last, symbols);
  }
  return task;
}

inline Task AutoencoderTask(std::size_t rows, std::uint64_t seed) {
  Task task;
  task.name = "autoencoder";
  task.config = NetworkConfig(model::network::MakeZoo("autoencoder", {12}, 12, {.hidden = 16}).value(), 12);
  task.config.loss = "squared";
  task.optimizer.kind = "momentum";
  task.optimizer.schedule.rate = 0.02;
  base::Random random(seed, task.name);
  AddNoisyRows(task.rows, rows, 12, 3, random);
  return task;
}

// By name: perceptron, lenet5, branches, normalised, sequence, autoencoder.
inline Task RingTask(const std::string& name, std::size_t rows = 300, std::uint64_t seed = 1) {
  if (name == "sequence") return SequenceTask(rows, seed);
  if (name == "autoencoder") return AutoencoderTask(rows, seed);
  if (name == "branches") return NetworkTask(Branches(), rows, seed);
  if (name == "normalised") return NetworkTask(Normalised(), rows, seed);
  if (name == "lenet5") return NetworkTask(model::network::MakeZoo("lenet5", {1, 28, 28}, 3).value(), rows, seed);
  return NetworkTask(model::network::MakeZoo("mlp", {10}, 3, {.hidden = 12, .dropout = 0.2}).value(), rows, seed);
}

// Twelve rows for any network; nothing where there is nothing to learn for the softmax loss.
inline std::optional<Task> RandomTask(const model::network::Graph& graph, std::uint64_t seed) {
  const auto facts = model::network::Infer(graph).value();
  const auto classes = static_cast<std::uint64_t>(facts[static_cast<std::size_t>(graph.heads[0].layer)].elements());
  if (classes < 2) return std::nullopt;
  Task task;
  task.name = "random";
  task.config = NetworkConfig(graph, classes);
  task.optimizer.kind = "sgd";
  task.optimizer.schedule.rate = 0.01;
  base::Random random(seed, "rows");
  for (std::size_t r = 0; r < 12; ++r) {
    std::vector<float> values;
    for (std::uint64_t i = 0; i < task.config.features; ++i)
      values.push_back(seed % 4 == 3 ? static_cast<float>(random.Below(9)) : static_cast<float>(random.Normal()));
    model::AddDense(task.rows, static_cast<float>(random.Below(classes)), values);
  }
  if (!model::Model::Make(task.config).ok()) return std::nullopt;
  return task;
}

// What a member, or one worker alone, has made of some steps.
struct Made {
  std::vector<float> weights, state;
  std::vector<double> losses;  // of each step, of all rows
  std::vector<float> scores;   // of each step and its share of the rows, one after another
  StepTimes times;
};

// Steps of pieces of these sizes, by turns. `strategy` makes them; loss of its share only.
inline Made Steps(const Task& task, TestLearner& learner, Strategy& strategy, const std::vector<std::size_t>& sizes,
                  std::size_t steps) {
  Made run;
  const data::Batch all = task.rows.batch();
  for (std::size_t step = 0, begin = 0; step < steps; ++step) {
    const std::size_t rows = sizes[step % sizes.size()];
    if (begin + rows > all.rows) begin = 0;
    const data::Batch piece = all.Slice(begin, begin + rows), mine = strategy.Share(piece);
    begin += rows;
    std::vector<float> scores(mine.rows * learner.model->scores());
    strategy.SetProgress(static_cast<double>(step) / static_cast<double>(steps));
    const auto made = strategy.Step(piece, mine, scores);
    if (!made.ok()) {
      ADD_FAILURE() << made.error().text;
      return run;
    }
    run.losses.push_back(made.value().value());
    run.scores.insert(run.scores.end(), scores.begin(), scores.end());
  }
  const auto ended = strategy.EndEpoch();
  if (!ended.ok()) ADD_FAILURE() << ended.error().text;
  run.weights = learner.Weights();
  const optimize::Parameters& state = learner.optimizer->state();
  for (std::size_t b = 0; b < state.blocks(); ++b) {
    const auto values = state.Values(b);
    run.state.insert(run.state.end(), values.begin(), values.end());
  }
  run.times = strategy.times();
  return run;
}

inline Made TrainAlone(const Task& task, const StrategyOptions& options, const std::vector<std::size_t>& sizes,
                       std::size_t steps) {
  TestLearner learner(task);
  const auto alone =
      Alone::Make({.batch = options.batch, .accumulate = options.micro},
                  {*learner.model, *learner.parameters, *learner.optimizer, learner.memory, learner.clock})
          .value();
  return Steps(task, learner, *alone, sizes, steps);
}

// Runs a body for each member of a group: on threads, or in simulated time.
using Group = std::function<void(int members, const std::function<void(fabric::Fabric& fabric)>& body)>;
inline void OnThreads(int members, const std::function<void(fabric::Fabric& fabric)>& body) {
  fabric::RunMembers(members, body);
}
inline void InSimulatedTime(int members, const std::function<void(fabric::Fabric& fabric)>& body) {
  fabric::sim::Platform platform;
  platform.nodes = members;
  fabric::sim::StarFlows flows(platform);
  fabric::sim::Cluster cluster({.platform = platform, .nodes = members}, flows);
  cluster.Run([&](fabric::sim::Cluster::Member& member) { body(*member.Connect()); });
}

// By rank.
inline std::vector<Made> TrainRing(const Task& task, int members, const StrategyOptions& options,
                                   const std::vector<std::size_t>& sizes, std::size_t steps,
                                   const Group& group = OnThreads) {
  std::vector<Made> runs(static_cast<std::size_t>(members));
  group(members, [&](fabric::Fabric& fabric) {
    TestLearner learner(task);
    fabric::Collectives collectives(fabric);
    auto made = Strategy::Make(options, learner.World(collectives));
    if (!made.ok()) {
      ADD_FAILURE() << made.error().text;
      return;
    }
    runs[static_cast<std::size_t>(fabric.rank())] = Steps(task, learner, *made.value(), sizes, steps);
  });
  return runs;
}

inline StrategyOptions RingOptions(const std::string& pipeline = "1f1b", std::uint64_t batch = 24,
                                   std::uint64_t micro = 4) {
  StrategyOptions options;
  options.kind = "ring";
  options.pipeline = pipeline;
  options.batch = batch;
  options.micro = micro;
  return options;
}

}  // namespace freshet::strategy::ring
