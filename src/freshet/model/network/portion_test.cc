// A network in stages, each of which holds its own layers' parameters, gradients and optimizer state: what they take,
// and that together they are the network.

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "base/random.h"
#include "model/model.h"
#include "model/network/description.h"
#include "model/network/head_loss.h"
#include "model/network/program.h"
#include "model/network/zoo.h"
#include "optimize/counting_memory_testing.h"

namespace freshet::model::network {
namespace {

using optimize::CountingMemory;

// A network of the zoo, with its first layers by name.
struct World {
  World(std::string_view name, const Shape& input, std::int64_t classes)
      : graph(MakeZoo(name, input, classes).value()), facts(Infer(graph).value()) {
    ModelConfig config;
    config.kind = "network";
    config.loss = graph.target == Target::kInput ? "squared" : "softmax";
    config.dense = true;
    config.features = static_cast<std::uint64_t>(facts[0].elements());
    const Facts& answer = facts[static_cast<std::size_t>(graph.heads[0].layer)];
    config.classes = static_cast<std::uint64_t>(graph.target == Target::kNext ? answer.shape[1] : answer.elements());
    config.network = ToToml(graph);
    model = std::move(Model::Make(config).value());
  }

  // The layers before which stages begin, and the end.
  std::vector<int> Edges(const std::vector<std::string>& cuts) const {
    std::vector<int> edges = {0};
    for (const std::string& cut : cuts)
      for (std::size_t layer = 0; layer < graph.layers.size(); ++layer)
        if (graph.layers[layer].name == cut) edges.push_back(static_cast<int>(layer));
    EXPECT_EQ(edges.size(), cuts.size() + 1);
    edges.push_back(static_cast<int>(graph.layers.size()));
    return edges;
  }

  std::uint64_t Floats(int first, int last) const {
    std::uint64_t sum = 0;
    for (int layer = first; layer < last; ++layer) sum += facts[static_cast<std::size_t>(layer)].parameters();
    return sum;
  }

  Graph graph;
  std::vector<Facts> facts;
  std::unique_ptr<Model> model;
};

// Parameters, gradient and optimizer of a network or of a stage, each with memory that counts.
struct Holding {
  Holding(const Model& model, const optimize::Portion& portion, const char* rule = "adam")
      : optimizer(optimize::Optimizer::Make({.kind = rule, .schedule = {.rate = 0.01}}, of_state).value()),
        parameters(model.NewParameters(of_parameters, 0, portion).value()),
        gradient(model.NewGradient(of_gradient, portion).value()) {
    EXPECT_TRUE(optimizer->Follow(parameters).ok());
  }

  CountingMemory of_parameters, of_gradient, of_state;
  std::unique_ptr<optimize::Optimizer> optimizer;
  optimize::Parameters parameters;
  optimize::Gradient gradient;
};

// What goes into the second stage is read by the third, too, where the auxiliary heads are.
const std::vector<std::string> kGoogLeNetCuts = {"inception_4b/1x1", "pool4"};

TEST(StageOfGoogLeNet, TakesMemoryForItsOwnLayersOnly) {
  const World world("googlenet", {3, 224, 224}, 1000);
  const std::vector<int> edges = world.Edges(kGoogLeNetCuts);
  std::uint64_t parameters = 0, state = 0;
  for (std::size_t s = 0; s + 1 < edges.size(); ++s) {
    SCOPED_TRACE(s);
    const Holding stage(*world.model, BlocksOf(world.facts, edges[s], edges[s + 1]));
    const std::uint64_t bytes = world.Floats(edges[s], edges[s + 1]) * sizeof(float);
    constexpr std::uint64_t kRounded = 64 * 200;  // a line of the cache for each block
    EXPECT_EQ(stage.of_parameters.committed, bytes);
    EXPECT_GE(stage.of_gradient.committed, bytes);
    EXPECT_LE(stage.of_gradient.committed, bytes + kRounded);
    EXPECT_EQ(stage.of_state.committed, 2 * bytes);  // of adam
    EXPECT_LT(stage.of_parameters.reserved, bytes + (64 << 20)) << "address space: pages that blocks begin on";
    parameters += stage.of_parameters.committed;
    state += stage.of_state.committed;
    RecordProperty(Str("stage_", s, "_bytes"), Str(bytes));
  }
  const Holding whole(*world.model, {});
  EXPECT_EQ(whole.of_parameters.committed, parameters);
  EXPECT_EQ(whole.of_state.committed, state);
}

// What a step makes of a network.
struct Step {
  double loss = 0;
  std::vector<float> scores;
  std::vector<std::vector<float>> gradients, parameters;  // by block
};

// Rows, their labels, and the step they are learned by.
class Task {
 public:
  Task(const World& world, std::size_t rows) : world_(world) {
    base::Random random(5, "rows");
    const auto width = static_cast<std::size_t>(world.facts[0].elements());
    const bool symbols = world.graph.layers[1].op == Op::kEmbedding;
    for (std::size_t i = 0; i < rows * width; ++i)
      input_.push_back(
          static_cast<float>(symbols ? static_cast<double>(random.Below(world.model->scores())) : random.Normal()));
    for (std::size_t r = 0; r < rows; ++r) labels_.push_back(static_cast<float>(random.Below(world.model->scores())));
    batch_.rows = rows;
    batch_.labels = labels_.data();
    batch_.dense = input_.data();
    batch_.width = width;
  }

  Step Whole() const {
    Step step;
    Holding all(*world_.model, {}, "momentum");
    Workspace workspace;
    workspace.step = kStep;
    step.scores.resize(batch_.rows * world_.model->scores());
    EXPECT_TRUE(world_.model->Reserve(batch_.rows, workspace).ok());
    step.loss = world_.model->LossAndGradient(all.parameters, batch_, workspace, all.gradient, step.scores);
    Learn(all, step);
    return step;
  }

  // Stages one after another, and back, as a pipeline would do it: activations and their gradients are all that passes
  // between them.
  Step Cut(const std::vector<int>& edges) const {
    Step step;
    std::vector<std::unique_ptr<Holding>> holdings;
    std::vector<std::unique_ptr<Program>> programs;
    std::map<int, std::vector<float>> activations, gradients;  // by layer
    const HeadLoss head_loss(world_.graph, world_.facts, world_.model->loss());
    for (std::size_t s = 0; s + 1 < edges.size(); ++s) {
      holdings.push_back(
          std::make_unique<Holding>(*world_.model, BlocksOf(world_.facts, edges[s], edges[s + 1]), "momentum"));
      programs.push_back(Program::Compile(world_.graph, {.rows = batch_.rows,
                                                         .training = true,
                                                         .first = edges[s],
                                                         .last = edges[s + 1],
                                                         .input_gradients = s > 0})
                             .value());
      Program& program = *programs.back();
      std::vector<const float*> inputs;
      for (const Program::Port& port : program.inputs())
        inputs.push_back(port.layer == 0 ? input_.data() : activations.at(port.layer).data());
      program.Forward(holdings.back()->parameters, inputs, {world_.model->config().seed, kStep, batch_.samples});
      for (std::size_t i = 0; i < program.outputs().size(); ++i) {
        const Program::Port& port = program.outputs()[i];
        const std::span<const float> made = program.Output(i);
        activations[port.layer].assign(made.begin(), made.end());
        if (!port.head) continue;
        std::vector<float>& deltas = gradients[port.layer];
        deltas.resize(made.size());
        const double loss = head_loss.Of(*port.head, batch_, input_.data(), made, deltas);
        if (*port.head == 0) step.loss = loss;
      }
    }
    const std::vector<float>& answer = activations.at(world_.graph.heads[0].layer);
    const std::size_t scores = world_.model->scores(), all = answer.size() / batch_.rows;
    for (std::size_t r = 0; r < batch_.rows; ++r)
      step.scores.insert(step.scores.end(), answer.begin() + static_cast<std::ptrdiff_t>((r + 1) * all - scores),
                         answer.begin() + static_cast<std::ptrdiff_t>((r + 1) * all));
    for (std::size_t s = programs.size(); s-- > 0;)
      Back(*programs[s], holdings[s]->gradient, holdings[s]->parameters, gradients);
    for (const auto& holding : holdings) Learn(*holding, step);
    return step;
  }

 private:
  static constexpr std::uint64_t kStep = 3;

  void Back(Program& program, optimize::Gradient& gradient, const optimize::Parameters& parameters,
            std::map<int, std::vector<float>>& gradients) const {
    for (std::size_t i = 0; i < program.outputs().size(); ++i) {
      const std::span<float> to = program.OutputGradient(i);  // empty: nothing here learns by it
      if (!to.empty()) std::copy_n(gradients.at(program.outputs()[i].layer).begin(), to.size(), to.begin());
    }
    std::vector<float*> places;
    if (program.options().input_gradients)
      for (const Program::Port& port : program.inputs()) {
        gradients[port.layer].resize(batch_.rows * static_cast<std::size_t>(port.elements));
        places.push_back(gradients[port.layer].data());
      }
    program.Backward(parameters, gradient, places, nullptr);
  }

  // Gradients and new parameters of the blocks that are held, in their places.
  void Learn(Holding& holding, Step& step) const {
    step.gradients.resize(holding.parameters.blocks());
    step.parameters.resize(holding.parameters.blocks());
    for (std::size_t b = 0; b < holding.parameters.blocks(); ++b)
      if (holding.parameters.held(b)) {
        const std::span<const float> made = holding.gradient.blocks[b].memory();
        if (!holding.gradient.blocks[b].empty()) step.gradients[b].assign(made.begin(), made.end());
      }
    Workspace workspace;
    world_.model->Apply(holding.parameters, holding.gradient, static_cast<double>(batch_.rows), *holding.optimizer,
                        workspace);
    for (std::size_t b = 0; b < holding.parameters.blocks(); ++b)
      if (holding.parameters.held(b)) step.parameters[b] = holding.parameters.Gather(b);
  }

  const World& world_;
  std::vector<float> input_, labels_;
  data::Batch batch_;
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void ExpectSame(const World& world, const Step& cut, const Step& whole) {
  EXPECT_EQ(cut.loss, whole.loss);
  EXPECT_TRUE(SameBits(cut.scores, whole.scores));
  const std::vector<optimize::Block> blocks = world.model->Blocks();
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    EXPECT_TRUE(SameBits(cut.gradients[b], whole.gradients[b])) << "gradient of " << blocks[b].name;
    EXPECT_TRUE(SameBits(cut.parameters[b], whole.parameters[b])) << blocks[b].name;
  }
}

TEST(Portions, ThreeStagesOfGoogLeNetDoWhatItDoesBitForBit) {
  const World world("googlenet", {3, 224, 224}, 1000);
  const Task task(world, 2);
  ExpectSame(world, task.Cut(world.Edges(kGoogLeNetCuts)), task.Whole());
}

TEST(Portions, ANetworkCutAnywhereDoesWhatTheWholeDoesBitForBit) {
  const struct {
    const char* name;
    Shape input;
    std::int64_t classes;
  } kNetworks[] = {{"mlp", {20}, 7}, {"autoencoder", {20}, 20}, {"lenet5", {1, 28, 28}, 10}, {"char-lstm", {9}, 12}};
  for (const auto& [name, input, classes] : kNetworks) {
    const World world(name, input, classes);
    const Task task(world, 3);
    const Step whole = task.Whole();
    const int end = static_cast<int>(world.graph.layers.size());
    for (int cut = 1; cut < end; ++cut) {
      SCOPED_TRACE(Str(name, " cut before ", world.graph.layers[static_cast<std::size_t>(cut)].name));
      ExpectSame(world, task.Cut({0, cut, end}), whole);
    }
  }
}

}  // namespace
}  // namespace freshet::model::network
