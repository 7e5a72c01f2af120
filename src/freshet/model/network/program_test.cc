// What holds for every program, whatever its graph: random graphs against the reference and against themselves.

#include "model/network/program.h"

#include <gtest/gtest.h>

#include <set>

#include "model/network/gradients_testing.h"
#include "model/network/graphs_testing.h"

namespace freshet::model::network {
namespace {

std::string Show(const Graph& graph) {
  std::string text;
  const auto facts = Infer(graph).value();
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    text += Str("\n  ", i, " ", graph.layers[i].name, " <-");
    for (const int input : graph.layers[i].inputs) text += Str(" ", input);
    text += " :";
    for (const std::int64_t extent : facts[i].shape) text += Str(" ", extent);
  }
  return text;
}

class RandomProgram : public testing::Test {
 protected:
  // A case of each seed; its graph is shown with any failure.
  template <class Test>
  void ForSeeds(std::uint64_t seeds, const Test& test) {
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const Case made(RandomGraph(seed).graph(), 1 + seed % 3, seed);
      SCOPED_TRACE(Str("seed ", seed, ", ", made.rows, " rows, graph:", Show(made.graph)));
      if (made.margin < 1e-5) continue;  // too near a kink to tell
      ++tested_;
      test(made, seed);
      if (HasFailure()) return;
    }
    EXPECT_GT(tested_, seeds * 9 / 10);
  }
  Outcome Run(const Case& made, const How& how = {}) { return Pipeline(made, how).Run(memory_); }

  std::uint64_t tested_ = 0;
  optimize::HeapMemory memory_;
};

// Bit for bit, or nearly.
void ExpectSame(const Outcome& one, const Outcome& other, bool bits = true) {
  const auto compare = [&](std::span<const float> a, std::span<const float> b, const std::string& what) {
    if (bits)
      EXPECT_EQ(Copy(a), Copy(b)) << what;
    else
      ExpectClose(a, {b.begin(), b.end()}, 1e-5, 1e-5, what);
  };
  ASSERT_TRUE(one.compiled && other.compiled);
  for (const auto& [layer, output] : one.outputs) compare(output, other.outputs.at(layer), Str("output of ", layer));
  for (std::size_t b = 0; b < one.gradient.blocks.size(); ++b) {
    ASSERT_EQ(one.gradient.blocks[b].empty(), other.gradient.blocks[b].empty());
    if (!one.gradient.blocks[b].empty())
      compare(one.gradient.blocks[b].memory(), other.gradient.blocks[b].memory(), one.gradient.buffer->block(b).name);
  }
  compare(one.input_gradient, other.input_gradient, "gradient of the input");
}

// A cut may change the last bits of what images give: what crosses it is plain, and sums over another layout go in
// another order, as do those over a gradient when a tensor and its flattened self both cross.
bool KeepsBits(const Graph& graph) {
  const auto flattens = [](const Layer& layer) { return layer.op == Op::kFlatten; };
  return graph.input.size() != 3 && std::none_of(graph.layers.begin(), graph.layers.end(), flattens);
}

TEST_F(RandomProgram, GivesWhatTheReferenceGives) {
  ForSeeds(160, [&](const Case& made, std::uint64_t seed) {
    const int threads = seed % 40 == 5 ? 2 : 1;
    ExpectRightOutputs(made, false, Run(made, {.training = false, .threads = threads}), 1e-4);
    const Outcome outcome = Run(made, {.threads = threads});
    ASSERT_TRUE(outcome.compiled);
    ExpectRightOutputs(made, true, outcome, 1e-4);
    base::Random random(seed, "directions");
    GradientCheck(made, outcome).ExpectDirections(random, 1e-3);
  });
}

TEST_F(RandomProgram, GivesWhatTheReferenceGivesWhenItsBatchNormIsToldTheStatistics) {
  ForSeeds(80, [&](const Case& made, std::uint64_t seed) {
    const Outcome outcome = Run(made, {.together = true});
    ASSERT_TRUE(outcome.compiled);
    ExpectRightOutputs(made, true, outcome, 1e-4);
    base::Random random(seed, "directions");
    GradientCheck(made, outcome).ExpectDirections(random, 1e-3);
  });
}

TEST_F(RandomProgram, GivesTheSameEveryTime) {
  ForSeeds(100, [&](const Case& made, std::uint64_t) { ExpectSame(Run(made), Run(made)); });
}

TEST_F(RandomProgram, CutInTwoGivesTheSame) {
  ForSeeds(120, [&](const Case& made, std::uint64_t) {
    const Outcome whole = Run(made);
    for (int cut = 1; cut < static_cast<int>(made.graph.layers.size()); ++cut) {
      SCOPED_TRACE(Str("cut before ", cut));
      ExpectSame(whole, Run(made, {.cuts = {cut}}), KeepsBits(made.graph));
    }
  });
}

TEST_F(RandomProgram, BackwardTwiceAddsUp) {
  ForSeeds(100, [&](const Case& made, std::uint64_t) {
    const Outcome once = Run(made), twice = Run(made, {.times = 2});
    for (std::size_t b = 0; b < once.gradient.blocks.size(); ++b) {
      if (once.gradient.blocks[b].empty()) continue;
      Values doubled;
      for (const float value : once.gradient.blocks[b].memory()) doubled.push_back(2.0 * value);
      ExpectClose(twice.gradient.blocks[b].memory(), doubled, 1e-5, 1e-6, made.parameters.block(b).name);
    }
    EXPECT_EQ(once.input_gradient, twice.input_gradient);
  });
}

TEST_F(RandomProgram, TellsOnceOfEveryBlockWhenItIsDone) {
  ForSeeds(100, [&](const Case& made, std::uint64_t) {
    const Outcome outcome = Run(made);
    EXPECT_EQ(std::set<std::size_t>(outcome.finished.begin(), outcome.finished.end()).size(), outcome.finished.size());
    EXPECT_TRUE(std::is_sorted(outcome.finished.rbegin(), outcome.finished.rend()));
    std::size_t full = 0;
    for (const optimize::BlockGradient& block : outcome.gradient.blocks) full += block.empty() ? 0 : 1;
    EXPECT_EQ(outcome.finished.size(), full);
    for (std::size_t i = 0; i < outcome.finished.size(); ++i)
      EXPECT_EQ(outcome.when_finished[i], Copy(outcome.gradient.blocks[outcome.finished[i]].memory()))
          << made.parameters.block(outcome.finished[i]).name << " changed after it was said to be done";
  });
}

TEST_F(RandomProgram, FactorsExpandToTheGradient) {
  ForSeeds(100, [&](const Case& made, std::uint64_t) {
    const Outcome dense = Run(made);
    for (const int times : {1, 2}) {
      Outcome factored = Run(made, {.times = times, .factors = true});
      for (std::size_t b = 0; b < dense.gradient.blocks.size(); ++b) {
        optimize::BlockGradient& block = factored.gradient.blocks[b];
        if (!block.wants_factors() || dense.gradient.blocks[b].empty()) continue;
        ASSERT_EQ(block.form(), optimize::BlockGradient::Form::kFactors);
        block.Expand();
        Values want;
        for (const float value : dense.gradient.blocks[b].memory()) want.push_back(static_cast<double>(times) * value);
        ExpectClose(block.memory(), want, 1e-5, 1e-6, made.parameters.block(b).name);
      }
    }
  });
}

}  // namespace
}  // namespace freshet::model::network
