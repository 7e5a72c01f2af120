#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "model/network/program.h"
#include "model/network/reference_testing.h"

namespace freshet::model::network {

// A graph with numbers in it: parameters, a batch of rows, and the coefficients of a loss that is linear in the heads'
// outputs. The rows are drawn so that no value lies where a derivative jumps (Margin), if that can be had.
class Case {
 public:
  Case(Graph of_graph, std::size_t of_rows, std::uint64_t of_seed, double wanted_margin = 1e-4)
      : graph(std::move(of_graph)),
        rows(of_rows),
        reference(graph, rows),
        parameters(optimize::Parameters::Create(Blocks(reference.facts()), memory_).value()),
        random_(of_seed, "case") {
    for (std::size_t b = 0; b < parameters.blocks(); ++b) FillBlock(b);
    for (std::size_t r = 0; r < rows; ++r) samples_.push_back(random_.Below(1000));
    draw = {.seed = of_seed, .step = of_seed % 7, .samples = samples_.data()};
    for (const Head& head : graph.heads) {
      std::vector<float>& of_head = coefficients[head.layer];
      for (std::size_t i = 0; i < rows * Size(reference.facts()[Size(head.layer)].elements()); ++i)
        of_head.push_back(static_cast<float>(random_.Uniform(-1, 1)));
    }
    DrawInput(wanted_margin);
  }
  Case(const Case&) = delete;

  // The loss and its statistics by the reference, of these weights and this input.
  double Loss(const Weights& weights, const Values& of_input, bool training) const {
    return LossOf(reference.Run(weights, of_input, training, draw));
  }
  double LossOf(const Trace& trace) const {
    double loss = 0;
    for (const auto& [layer, weights] : coefficients)
      for (std::size_t i = 0; i < weights.size(); ++i) loss += weights[i] * trace.outputs[Size(layer)][i];
    return loss;
  }

  const Graph graph;
  const std::size_t rows;
  const Reference reference;

 private:
  optimize::HeapMemory memory_;

 public:
  optimize::Parameters parameters;
  std::map<int, std::vector<float>> coefficients;  // by head
  std::vector<float> input;
  Draw draw;
  double margin = 0;

 private:
  void FillBlock(std::size_t b) {
    const std::string name = parameters.block(b).name;
    const auto ends = [&](std::string_view what) { return name.ends_with(what); };
    const double by_width = 1 / std::sqrt(static_cast<double>(parameters.width(b)));
    for (float& value : parameters.Values(b))
      value = static_cast<float>(ends(".scale") || ends(".variance")     ? random_.Uniform(0.5, 1.5)
                                 : ends(".weight") || ends(".recurrent") ? random_.Normal() * by_width
                                                                         : random_.Normal() * 0.3);
  }

  void DrawInput(double wanted_margin) {
    std::int64_t vocabulary = 0;  // of an embedding that reads the input
    for (const Layer& layer : graph.layers)
      if (layer.op == Op::kEmbedding) vocabulary = layer.vocabulary;
    const Weights weights = WeightsOf(parameters);
    for (int attempt = 0; attempt < 30 && (input.empty() || margin < wanted_margin); ++attempt) {
      std::vector<float> drawn;
      for (std::size_t i = 0; i < rows * Size(reference.facts()[0].elements()); ++i)
        drawn.push_back(vocabulary > 0 ? static_cast<float>(random_.Below(static_cast<std::uint64_t>(vocabulary)))
                                       : static_cast<float>(random_.Normal()));
      const Values values(drawn.begin(), drawn.end());
      const double nearest = std::min(reference.Run(weights, values, true, draw).margin,
                                      reference.Run(weights, values, false, draw).margin);
      if (nearest <= margin) continue;
      margin = nearest;
      input = std::move(drawn);
    }
  }

  base::Random random_;
  std::vector<std::uint64_t> samples_;
};

// How to run a case: as one program, or cut before these layers into stages that hand tensors on.
struct How {
  bool training = true;
  int threads = 1;
  std::vector<int> cuts = {};
  int times = 1;  // forward and backward, adding up
  bool auxiliary = true;
  bool factors = false;   // ask dense layers for them
  bool together = false;  // with other workers, of whom there are none
  const Backend* backend = nullptr;
};

struct Outcome {
  std::map<int, std::vector<float>> outputs;  // by layer: heads, and what crosses a cut
  optimize::Gradient gradient;
  std::vector<float> input_gradient;
  std::vector<std::size_t> finished;              // blocks, in the order they were called
  std::vector<std::vector<float>> when_finished;  // what their gradient was then
  bool compiled = false;
};

inline std::vector<float> Copy(std::span<const float> values) { return {values.begin(), values.end()}; }

inline optimize::Gradient MakeGradient(const Case& made, optimize::Memory& memory) {
  optimize::Gradient gradient;
  gradient.buffer = std::make_shared<optimize::Parameters>(
      optimize::Parameters::Create(Blocks(made.reference.facts()), memory).value());
  for (std::size_t b = 0; b < gradient.buffer->blocks(); ++b) {
    // What is there before the first Backward must not count.
    for (float& value : gradient.buffer->Values(b)) value = std::numeric_limits<float>::quiet_NaN();
    gradient.blocks.emplace_back(gradient.buffer->width(b), gradient.buffer->Values(b));
  }
  return gradient;
}

// Runs stages one after another, and back.
class Pipeline {
 public:
  Pipeline(const Case& made, const How& how) : made_(made), how_(how) {
    std::vector<int> edges = how.cuts;
    edges.insert(edges.begin(), 0);
    edges.push_back(static_cast<int>(made.graph.layers.size()));
    for (std::size_t s = 0; s + 1 < edges.size(); ++s) {
      auto stage = Program::Compile(made.graph, {.rows = made.rows,
                                                 .training = how.training,
                                                 .together = how.together,
                                                 .threads = how.threads,
                                                 .backend = how.backend,
                                                 .first = edges[s],
                                                 .last = edges[s + 1],
                                                 .input_gradients = how.training,
                                                 .auxiliary = how.auxiliary});
      if (!stage.ok()) {
        ADD_FAILURE() << stage.error().text;
        stages_.clear();
        return;
      }
      stages_.push_back(std::move(stage).value());
      if (how.together) stages_.back()->Meet({[](std::span<float>) {}});
    }
  }

  Outcome Run(optimize::Memory& memory) {
    Outcome outcome;
    outcome.compiled = !stages_.empty();
    if (!outcome.compiled) return outcome;
    outcome.gradient = MakeGradient(made_, memory);
    for (std::size_t b = 0; b < outcome.gradient.blocks.size(); ++b)
      outcome.gradient.blocks[b].WantFactors(how_.factors && IsDenseWeight(b));
    for (int time = 0; time < how_.times; ++time) {
      Forward(outcome);
      if (how_.training) Backward(outcome);
    }
    return outcome;
  }

  const Program& stage(std::size_t s) const { return *stages_[s]; }
  bool IsDenseWeight(std::size_t block) const {
    for (std::size_t i = 0; i < made_.graph.layers.size(); ++i)
      if (made_.graph.layers[i].op == Op::kDense && made_.reference.first_block(i) == block) return true;
    return false;
  }

 private:
  void Forward(Outcome& outcome) {
    outcome.outputs.clear();
    for (const auto& stage : stages_) {
      std::vector<const float*> inputs;
      for (const Program::Port& port : stage->inputs())
        inputs.push_back(port.layer == 0 ? made_.input.data() : outcome.outputs.at(port.layer).data());
      stage->Forward(made_.parameters, inputs, made_.draw);
      for (std::size_t i = 0; i < stage->outputs().size(); ++i)
        outcome.outputs[stage->outputs()[i].layer] = Copy(stage->Output(i));
    }
  }

  void Backward(Outcome& outcome) {
    std::map<int, std::vector<float>> gradients = made_.coefficients;
    for (std::size_t s = stages_.size(); s-- > 0;) {
      Program& stage = *stages_[s];
      for (std::size_t i = 0; i < stage.outputs().size(); ++i) {
        const std::vector<float>& from = gradients.at(stage.outputs()[i].layer);
        ASSERT_EQ(from.size(), stage.OutputGradient(i).size());
        std::copy(from.begin(), from.end(), stage.OutputGradient(i).begin());
      }
      std::vector<std::vector<float>> wanted;
      std::vector<float*> places;
      for (const Program::Port& port : stage.inputs()) {
        wanted.emplace_back(made_.rows * Size(port.elements), std::numeric_limits<float>::quiet_NaN());
        if (port.read_later) wanted.back() = std::exchange(gradients.at(port.layer), {});
      }
      for (std::vector<float>& one : wanted) places.push_back(one.data());
      stage.Backward(made_.parameters, outcome.gradient, places, [&](std::size_t block) {
        outcome.finished.push_back(block);
        outcome.when_finished.push_back(Copy(outcome.gradient.blocks[block].memory()));
      });
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const int layer = stage.inputs()[i].layer;
        std::vector<float>& sum = gradients[layer];
        if (PassesOn(stage, layer)) sum.clear();  // it came back through the stage
        sum.resize(wanted[i].size(), 0.0f);
        for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += wanted[i][k];
      }
    }
    outcome.input_gradient = gradients[0];
  }

  static bool PassesOn(const Program& stage, int layer) {
    const auto is = [&](const Program::Port& port) { return port.layer == layer; };
    return std::any_of(stage.outputs().begin(), stage.outputs().end(), is);
  }

  const Case& made_;
  const How how_;
  std::vector<std::unique_ptr<Program>> stages_;
};

inline double Norm(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// |got - want| at most `relative` of |want|, or `floor`.
inline void ExpectClose(std::span<const float> got, const Values& want, double relative, double floor,
                        const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  Values difference;
  for (std::size_t i = 0; i < want.size(); ++i) difference.push_back(got[i] - want[i]);
  const double apart = Norm(difference);
  EXPECT_TRUE(apart <= relative * Norm(want) + floor) << what << ": " << apart << " apart, of " << Norm(want);
}

}  // namespace freshet::model::network
