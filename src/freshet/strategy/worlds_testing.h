#pragma once

#include <optional>

#include "fabric/threads/threads_testing.h"
#include "model/network/description.h"
#include "model/network/zoo.h"
#include "model/rows_testing.h"
#include "strategy/strategy.h"

namespace freshet::strategy {

// What tests of strategies share: kinds of models with rows to learn from, and whole runs of N workers.

struct Task {
  std::string name;
  model::ModelConfig config;
  optimize::OptimizerOptions optimizer;
  data::Rows rows;
  std::function<void()> computing = {};  // called before every step
};

inline model::ModelConfig NetworkConfig(const model::network::Graph& graph, std::uint64_t classes) {
  model::ModelConfig config;
  config.kind = "network";
  config.loss = "softmax";
  config.dense = true;
  config.classes = classes;
  config.features = 1;
  for (const std::int64_t extent : graph.input) config.features *= static_cast<std::uint64_t>(extent);
  config.network = ToToml(graph);
  return config;
}

inline model::network::Graph SmallConvolutionNet() {
  model::network::Graph graph({2, 6, 6});
  int x = graph.Relu(graph.Convolution(0, 5, 3, 1, 1, "conv"));
  x = graph.MaxPool(x, 2, 2, 0, false, "pool");
  graph.AddHead(graph.Dense(x, 3, "scores"));
  return graph;
}

// Rows of as many classes as labels, whose numbers say which, as far as noise lets them.
inline void AddNoisyRows(data::Rows& rows, std::size_t count, std::size_t width, std::uint64_t classes,
                         base::Random& random) {
  for (std::size_t r = 0; r < count; ++r) {
    const auto label = static_cast<float>(random.Below(classes));
    std::vector<float> values(width);
    for (std::size_t k = 0; k < width; ++k)
      values[k] = static_cast<float>(random.Normal()) + (k % classes == static_cast<std::size_t>(label) ? 0.7f : 0.0f);
    model::AddDense(rows, label, values);
  }
}

// A network of three classes, by plain SGD.
inline Task NetworkTask(const model::network::Graph& graph, std::size_t rows, std::uint64_t seed) {
  Task task;
  task.name = "network";
  task.config = NetworkConfig(graph, 3);
  task.optimizer.kind = "sgd";
  task.optimizer.schedule.rate = 0.05;
  base::Random random(seed, task.name);
  AddNoisyRows(task.rows, rows, static_cast<std::size_t>(task.config.features), 3, random);
  return task;
}

// The tasks by name: linear (sparse), table (linear over dense rows), factorization, fm, kmeans, perceptron,
// convolution.
inline Task MakeTask(const std::string& name, std::size_t rows, std::uint64_t seed) {
  Task task;
  task.name = name;
  task.optimizer.kind = "sgd";
  task.optimizer.schedule.rate = 0.05;
  base::Random random(seed, name);
  const auto dense = [&](std::size_t width, std::uint64_t classes) {
    AddNoisyRows(task.rows, rows, width, classes, random);
  };
  model::ModelConfig& config = task.config;
  if (name == "linear" || name == "fm") {
    config.kind = name;
    config.factors = 5;
    for (std::size_t r = 0; r < rows; ++r) {
      const auto label = static_cast<float>(random.Below(2));
      std::vector<std::pair<std::uint32_t, float>> entries;
      for (std::uint32_t k = 0; k < 4; ++k)
        entries.emplace_back(k * 10 + static_cast<std::uint32_t>(random.Below(10)), label + 0.5f);
      model::AddSparse(task.rows, label, entries);
    }
  } else if (name == "table") {
    config.kind = "linear";
    config.dense = true;
    config.features = 7;
    dense(7, 2);
  } else if (name == "factorization") {
    config.kind = "factorization";
    config.loss = "squared";
    config.factors = 5;
    for (std::size_t r = 0; r < rows; ++r)
      model::AddRating(task.rows, static_cast<std::uint32_t>(random.Below(15)),
                       static_cast<std::uint32_t>(random.Below(20)), static_cast<float>(1 + random.Below(5)));
  } else if (name == "kmeans") {
    config.kind = "kmeans";
    config.loss = "squared";
    config.dense = true;
    config.features = 6;
    config.clusters = 4;
    dense(6, 3);
  } else {
    const bool convolution = name == "convolution";
    const model::network::Graph graph =
        convolution ? SmallConvolutionNet()
                    : model::network::MakeZoo("mlp", {10}, 3, {.hidden = 12, .dropout = 0}).value();
    config = NetworkConfig(graph, 3);
    dense(static_cast<std::size_t>(config.features), 3);
  }
  return task;
}

// Must all members of such a group be handed all rows?
inline bool NeedsAllRows(const std::string& kind) {
  return kind != "allreduce" && kind != "average" && kind != "groups" && kind != "gossip" && kind != "server";
}

// One worker's model and what belongs to it.
struct TestLearner {
  optimize::HeapMemory memory;
  base::SystemClock clock;
  std::unique_ptr<model::Model> model;
  std::optional<optimize::Parameters> parameters;
  std::unique_ptr<optimize::Optimizer> optimizer;

  explicit TestLearner(const Task& task) {
    model = model::Model::Make(task.config).value();
    optimizer = optimize::Optimizer::Make(task.optimizer, memory).value();
    parameters = model->NewParameters(memory).value();
    CHECK(model->Prepare(*parameters, task.rows.batch()).ok());
    CHECK(optimizer->Follow(*parameters).ok());
  }
  Strategy::World World(fabric::Collectives& collectives) {
    return {collectives, *model, *parameters, *optimizer, memory, clock};
  }
  std::vector<float> Weights() const {
    std::vector<float> all;
    for (std::size_t b = 0; b < parameters->blocks(); ++b) {
      const auto values = parameters->Values(b);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
};

// Trains `steps` pieces as a member of a group, to the end of an epoch.
struct TrainedMember {
  std::vector<float> weights;
  double loss = 0;  // of all steps, summed up
  StepTimes times;
};
inline TrainedMember TrainAs(fabric::Fabric& fabric, const Task& task, const StrategyOptions& options,
                             std::size_t steps, fabric::Algorithm algorithm = fabric::Algorithm::kAuto) {
  TrainedMember trained;
  TestLearner learner(task);
  fabric::Collectives::Options how;
  how.algorithm = algorithm;
  fabric::Collectives collectives(fabric, how);
  const auto strategy = Strategy::Make(options, learner.World(collectives)).value();
  const data::Batch all = task.rows.batch();
  std::vector<float> scores;
  for (std::size_t step = 0; step < steps && strategy->has_rows(); ++step) {
    const std::size_t begin = step * strategy->piece() % (all.rows - strategy->piece() + 1);
    const data::Batch piece = all.Slice(begin, begin + strategy->piece());
    const data::Batch mine = strategy->Share(piece);
    scores.resize(mine.rows * learner.model->scores());
    strategy->SetProgress(static_cast<double>(step) / static_cast<double>(steps));
    if (task.computing) task.computing();
    const auto made = strategy->Step(piece, mine, scores);
    if (!made.ok()) ADD_FAILURE() << made.error().text;
    trained.loss += made.value().value();
  }
  trained.times = strategy->times();
  const auto ended = strategy->EndEpoch();
  if (!ended.ok()) ADD_FAILURE() << ended.error().text;
  CHECK(ended.ok());
  trained.weights = learner.Weights();
  return trained;
}

// The same by N workers: every worker's weights, and the losses of all.
struct Trained {
  std::vector<std::vector<float>> weights;  // by rank
  double loss = 0;
};
inline Trained Train(const Task& task, int workers, const StrategyOptions& options, std::size_t steps,
                     fabric::Algorithm algorithm = fabric::Algorithm::kAuto) {
  std::vector<TrainedMember> members(static_cast<std::size_t>(workers));
  fabric::RunMembers(workers, [&](fabric::Fabric& fabric) {
    members[static_cast<std::size_t>(fabric.rank())] = TrainAs(fabric, task, options, steps, algorithm);
  });
  Trained trained;
  for (TrainedMember& member : members) {
    trained.weights.push_back(std::move(member.weights));
    trained.loss += member.loss;
  }
  return trained;
}

// The largest difference, relative to the largest weight.
inline double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  CHECK(a.size() == b.size());
  double most = 0, size = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    size = std::max(size, std::abs(static_cast<double>(a[i])));
  }
  return most / size;
}

}  // namespace freshet::strategy
