// Ports, heads, threads and refusals of programs: what a caller that holds several of them relies on.

#include <gtest/gtest.h>

#include "model/network/gradients_testing.h"

namespace freshet::model::network {
namespace {

std::vector<int> LayersOf(const std::vector<Program::Port>& ports) {
  std::vector<int> layers;
  for (const Program::Port& port : ports) layers.push_back(port.layer);
  return layers;
}

// A small network with a way around, an auxiliary head and a layer nobody reads.
struct Small {
  Graph graph{Shape{6}};
  int hidden = graph.Dense(0, 8, "hidden");
  int relu = graph.Relu(hidden);
  int side = graph.Dense(relu, 3, "side");
  int loose = graph.Dense(relu, 4, "loose");
  int around = graph.Concat({relu, 0});
  int answer = graph.Dense(around, 3, "answer");
  Small() {
    graph.AddHead(answer);
    graph.AddHead(side, 0.3);
  }
};

TEST(Stages, PortsAreWhatCrossesTheCut) {
  const Small small;
  const auto ports = [&](int first, int last) {
    auto program = Program::Compile(small.graph, {.rows = 2, .training = true, .first = first, .last = last}).value();
    return std::pair(LayersOf(program->inputs()), LayersOf(program->outputs()));
  };
  using Ports = std::pair<std::vector<int>, std::vector<int>>;
  EXPECT_EQ(ports(0, 0), Ports({0}, {small.answer, small.side}));
  EXPECT_EQ(ports(0, small.side), Ports({0}, {0, small.relu}));
  EXPECT_EQ(ports(small.side, 0), Ports({0, small.relu}, {small.answer, small.side}));
  EXPECT_EQ(ports(small.relu, small.around), Ports({small.hidden}, {small.side, small.relu}));
}

TEST(Stages, ThreeOfThemGiveWhatOneGives) {
  const Small small;
  const Case made(small.graph, 3, 1);
  optimize::HeapMemory memory;
  const Outcome whole = Pipeline(made, {}).Run(memory), cut = Pipeline(made, {.cuts = {2, 5}}).Run(memory);
  EXPECT_EQ(whole.outputs.at(small.answer), cut.outputs.at(small.answer));
  for (std::size_t b = 0; b < whole.gradient.blocks.size(); ++b)
    if (!whole.gradient.blocks[b].empty()) {
      const auto want = whole.gradient.blocks[b].memory();
      ExpectClose(cut.gradient.blocks[b].memory(), {want.begin(), want.end()}, 1e-6, 1e-7,
                  made.parameters.block(b).name);
    }
  ExpectClose(cut.input_gradient, {whole.input_gradient.begin(), whole.input_gradient.end()}, 1e-6, 1e-7, "input");
}

TEST(Stages, WithoutAuxiliaryHeadsOnlyTheAnswerCounts) {
  const Small small;
  for (const auto& [training, auxiliary, heads] :
       {std::tuple{true, true, 2u}, {true, false, 1u}, {false, true, 1u}, {false, false, 1u}}) {
    const auto program =
        Program::Compile(small.graph, {.rows = 2, .training = training, .auxiliary = auxiliary}).value();
    ASSERT_EQ(program->outputs().size(), heads);
    EXPECT_EQ(program->outputs()[0].layer, small.answer);
  }
  const Case made(small.graph, 3, 1);
  optimize::HeapMemory memory;
  const Outcome outcome = Pipeline(made, {.auxiliary = false}).Run(memory);
  for (std::size_t b = 0; b < made.parameters.blocks(); ++b) {
    const std::string name = made.parameters.block(b).name;
    EXPECT_EQ(outcome.gradient.blocks[b].empty(), name.find("side") == 0 || name.find("loose") == 0) << name;
  }
}

TEST(Stages, AHeadCanBeReadByOthersAndFlattened) {
  Graph graph({2, 3, 3});
  const int first = graph.Convolution(0, 4, 3);
  const int flat = graph.Plain(Op::kFlatten, first);
  const int second = graph.Relu(graph.Dense(flat, 4));
  graph.AddHead(graph.Dense(second, 4));
  graph.AddHead(second, 0.5);
  graph.AddHead(first, 0.25);
  graph.AddHead(flat, 0.125);
  const Case made(graph, 3, 2);
  optimize::HeapMemory memory;
  const Outcome outcome = Pipeline(made, {}).Run(memory);
  ASSERT_EQ(outcome.outputs.size(), 4u);
  ExpectRightOutputs(made, true, outcome, 1e-5);
  GradientCheck(made, outcome).ExpectElements(20, 1e-3);
}

// Large enough that the work is worth sharing.
TEST(Stages, TwoThreadsGiveWhatOneGives) {
  Graph graph({8, 16, 16});
  const int convolution = graph.Relu(graph.Convolution(0, 12, 3, 1, 1));
  const int norm = graph.Plain(Op::kBatchNorm, graph.Sum({convolution, graph.Convolution(0, 12, 1)}));
  const int pooled = graph.MaxPool(graph.Dropout(norm, 0.2), 2, 2);
  const int joined = graph.Concat({pooled, graph.AveragePool(graph.Plain(Op::kLrn, convolution), 2, 2)});
  graph.AddHead(graph.Dense(graph.Plain(Op::kTanh, graph.Dense(joined, 64)), 5));
  for (const std::size_t rows : {1, 10}) {
    SCOPED_TRACE(rows);
    const Case made(graph, rows, 3, 0);
    optimize::HeapMemory memory;
    const Outcome one = Pipeline(made, {}).Run(memory), two = Pipeline(made, {.threads = 2}).Run(memory);
    ExpectRightOutputs(made, true, two, 1e-4);
    for (std::size_t b = 0; b < one.gradient.blocks.size(); ++b) {
      const auto want = one.gradient.blocks[b].memory();
      ExpectClose(two.gradient.blocks[b].memory(), {want.begin(), want.end()}, 1e-4, 1e-3,
                  made.parameters.block(b).name);
    }
    ExpectClose(two.input_gradient, {one.input_gradient.begin(), one.input_gradient.end()}, 1e-4, 1e-5, "input");
  }
}

TEST(Stages, DropoutIsTheRowsOwnWhateverItsBatch) {
  Graph graph({3, 4, 5});
  graph.AddHead(graph.Dropout(graph.Convolution(0, 8, 1, 1, 0, "before"), 0.5));
  const Case made(graph, 4, 4);
  const std::size_t row = 3 * 4 * 5, out = 8 * 4 * 5;
  const auto run = [&](const std::vector<std::size_t>& rows, std::uint64_t step) {
    std::vector<float> input;
    std::vector<std::uint64_t> samples;
    for (const std::size_t r : rows) {
      input.insert(input.end(), made.input.begin() + static_cast<std::ptrdiff_t>(r * row),
                   made.input.begin() + static_cast<std::ptrdiff_t>((r + 1) * row));
      samples.push_back(100 + r);
    }
    auto program = Program::Compile(graph, {.rows = rows.size(), .training = true}).value();
    const float* const at = input.data();
    program->Forward(made.parameters, {&at, 1}, {.seed = 9, .step = step, .samples = samples.data()});
    return Copy(program->Output(0));
  };
  const std::vector<float> all = run({0, 1, 2, 3}, 5), some = run({3, 1}, 5), later = run({0, 1, 2, 3}, 6);
  const auto kept = [](std::span<const float> values) {
    std::vector<bool> which;
    for (const float value : values) which.push_back(value != 0);
    return which;
  };
  EXPECT_EQ(kept({&all[3 * out], out}), kept({&some[0], out}));
  EXPECT_EQ(kept({&all[out], out}), kept({&some[out], out}));
  EXPECT_NE(kept({&all[0], out}), kept({&all[out], out}));
  EXPECT_NE(kept(all), kept(later));
}

TEST(Stages, SymbolsOutsideTheVocabularyAreZeros) {
  Graph graph({5});
  graph.AddHead(graph.Add({.op = Op::kEmbedding, .inputs = {0}, .outputs = 2, .vocabulary = 3}));
  const Case made(graph, 1, 5);
  const std::vector<float> input{2, -1, 3, std::numeric_limits<float>::quiet_NaN(), 1e30f};
  auto program = Program::Compile(graph, {.rows = 1, .training = true}).value();
  const float* const at = input.data();
  program->Forward(made.parameters, {&at, 1}, {});
  const std::vector<float> output = Copy(program->Output(0));
  EXPECT_EQ(output[0], made.parameters.Row(0, 2)[0]);
  EXPECT_EQ(std::vector<float>(output.begin() + 2, output.end()), std::vector<float>(8, 0.0f));
  optimize::HeapMemory memory;
  optimize::Gradient gradient = MakeGradient(made, memory);
  std::fill(program->OutputGradient(0).begin(), program->OutputGradient(0).end(), 1.0f);
  program->Backward(made.parameters, gradient, {}, nullptr);
  EXPECT_EQ(Copy(gradient.blocks[0].memory()), (std::vector<float>{0, 0, 0, 0, 1, 1}));
}

TEST(Stages, RefusesWhatCannotBeRun) {
  const Small small;
  const auto says = [&](const Graph& graph, const Program::Options& options) {
    const auto program = Program::Compile(graph, options);
    return program.ok() ? "" : program.error().text;
  };
  EXPECT_NE(says(small.graph, {.rows = 0}).find("at least one row"), std::string::npos);
  EXPECT_NE(says(small.graph, {.threads = 0}).find("one thread"), std::string::npos);
  EXPECT_NE(says(small.graph, {.first = -1, .last = 2}).find("no layers -1"), std::string::npos);
  EXPECT_NE(says(small.graph, {.first = 3, .last = 3}).find("no layers 3"), std::string::npos);
  EXPECT_NE(says(small.graph, {.first = 0, .last = 99}).find("99"), std::string::npos);
  EXPECT_NE(says(Graph({3}), {}).find("no head"), std::string::npos);
}

}  // namespace
}  // namespace freshet::model::network
