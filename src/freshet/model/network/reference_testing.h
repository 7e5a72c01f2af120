#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "model/network/graph.h"
#include "model/network/program.h"
#include "model/network/reference_layers_testing.h"

namespace freshet::model::network {

// The numbers of all blocks, in double, so that a test can move one by very little.
using Weights = std::vector<Values>;

inline Weights WeightsOf(const optimize::Parameters& parameters) {
  Weights weights;
  for (std::size_t b = 0; b < parameters.blocks(); ++b) {
    const auto values = parameters.Values(b);
    weights.emplace_back(values.begin(), values.end());
  }
  return weights;
}

// What came of one run.
struct Trace {
  std::vector<Values> outputs;     // by layer, row after row
  std::vector<Values> statistics;  // by block: what this batch shows, where the block is a statistic and was measured
  double margin = 0;               // see Margin
};

// Runs a graph forward, layer by layer, in double precision. The graph must be a right one, and outlive this.
class Reference {
 public:
  Reference(const Graph& graph, std::size_t rows)
      : graph_(graph), facts_(Infer(graph).value()), rows_(static_cast<std::int64_t>(rows)) {
    for (std::size_t i = 0, block = 0; i < facts_.size(); block += facts_[i++].blocks.size())
      first_block_.push_back(block);
  }

  const std::vector<Facts>& facts() const { return facts_; }
  std::size_t first_block(std::size_t layer) const { return first_block_[layer]; }

  Trace Run(const Weights& weights, const Values& input, bool training, const Draw& draw = {}) const {
    Trace trace;
    trace.statistics.resize(weights.size());
    Margin margin;
    for (std::size_t i = 0; i < graph_.layers.size(); ++i) {
      Values output = i == 0 ? input : One(i, weights, training, draw, trace, margin);
      CHECK(output.size() == Size(rows_ * facts_[i].elements()));
      trace.outputs.push_back(std::move(output));
    }
    trace.margin = margin.nearest;
    return trace;
  }

 private:
  Values One(std::size_t number, const Weights& weights, bool training, const Draw& draw, Trace& trace,
             Margin& margin) const {
    const Layer& layer = graph_.layers[number];
    const Values& in = trace.outputs[Size(layer.inputs[0])];
    const Shape &from = facts_[Size(layer.inputs[0])].shape, &to = facts_[number].shape;
    const auto block = [&](std::size_t b) -> const Values& { return weights[first_block_[number] + b]; };
    const Values* const bias = layer.bias && facts_[number].blocks.size() == 2 ? &block(1) : nullptr;
    const auto each = [&](const auto& function) {
      Values out;
      for (const double x : in) out.push_back(function(x));
      return out;
    };
    switch (layer.op) {
      case Op::kDense: {
        const std::int64_t features = layer.per_step ? from[1] : facts_[Size(layer.inputs[0])].elements();
        return PlainDense(std::ssize(in) / features, features, layer.outputs, in, block(0), bias);
      }
      case Op::kConvolution:
        return PlainConvolution(rows_, layer, from, to, in, block(0), bias);
      case Op::kMaxPool:
        return PlainMaxPool(rows_, layer, from, to, in, margin);
      case Op::kAveragePool:
        return PlainAveragePool(rows_, layer, from, to, in);
      case Op::kGlobalAveragePool:
        return PlainGlobalAveragePool(rows_, from, in);
      case Op::kLrn:
        return PlainLrn(rows_, layer, from, in);
      case Op::kBatchNorm:
        return BatchNorm(number, weights, training, in, trace);
      case Op::kRelu:
        return each([&](double x) {
          margin.Meet(std::abs(x));
          return x > 0 ? x : layer.slope * x;
        });
      case Op::kClip:
        return each([&](double x) {
          margin.Meet(std::min(std::abs(x - layer.least), std::abs(x - layer.most)));
          return std::min(std::max(x, layer.least), layer.most);
        });
      case Op::kHardSwish:
        return each([&](double x) {
          margin.Meet(std::min(std::abs(x - 3), std::abs(x + 3)));
          return x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0);
        });
      case Op::kGelu:
        return each([&](double x) {
          constexpr double kRoot = 0.7978845608028654;  // of 2 / pi
          if (layer.approximate) return 0.5 * x * (1 + std::tanh(kRoot * (x + 0.044715 * x * x * x)));
          return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
        });
      case Op::kErf:
        return each([](double x) { return std::erf(x); });
      case Op::kTanh:
        return each([](double x) { return std::tanh(x); });
      case Op::kSigmoid:
        return each(Sigmoid);
      case Op::kSoftmax:
        return from.size() == 3 ? PlainSoftmax(from[0], from[1] * from[2], in) : PlainSoftmax(from.back(), 1, in);
      case Op::kLogSoftmax: {
        Values out = from.size() == 3 ? PlainSoftmax(from[0], from[1] * from[2], in) : PlainSoftmax(from.back(), 1, in);
        for (double& value : out) value = std::log(value);
        return out;
      }
      case Op::kProduct:
        return PlainRepeated(from, facts_[Size(layer.inputs[1])].shape, in,
                             [&](double x, std::size_t row, std::size_t k) {
                               const Values& second = trace.outputs[Size(layer.inputs[1])];
                               return x * second[row * (second.size() / Size(rows_)) + k];
                             });
      case Op::kAffine:
        return PlainRepeated(from, layer.shape, in,
                             [&](double x, std::size_t, std::size_t k) { return block(0)[k] * x + block(1)[k]; });
      case Op::kReshape:
        return in;
      case Op::kTranspose:
        return PlainTranspose(from, layer.shape, in);
      case Op::kDropout:
        return training ? Dropout(number, draw, in) : in;
      case Op::kConcat:
        return Concat(layer, trace);
      case Op::kSum: {
        Values out(in.size(), 0.0);
        for (const int input : layer.inputs)
          for (std::size_t k = 0; k < out.size(); ++k) out[k] += trace.outputs[Size(input)][k];
        return out;
      }
      case Op::kFlatten:
        return in;
      case Op::kEmbedding: {
        Values out;
        for (const double symbol : in)
          for (std::int64_t k = 0; k < layer.outputs; ++k)
            out.push_back(block(0)[Size(std::llround(symbol) * layer.outputs + k)]);
        return out;
      }
      case Op::kLstm:
        return PlainLstm(rows_, from[0], from[1], layer.outputs, layer.sequence, in, block(0), block(1), block(2));
      case Op::kGru:
        return PlainGru(rows_, from[0], from[1], layer.outputs, layer.sequence, in, block(0), block(1), block(2));
      case Op::kInput:
        break;
    }
    CHECK(false);
    return {};
  }

  Values BatchNorm(std::size_t number, const Weights& weights, bool training, const Values& in, Trace& trace) const {
    const Facts& facts = facts_[number];
    const std::int64_t channels = facts.shape[0], pixels = facts.elements() / channels;
    const std::size_t first = first_block_[number];
    Moments moments{weights[first + 2], weights[first + 3]};
    if (training) {
      moments = MomentsOf(rows_, channels, pixels, in);
      trace.statistics[first + 2] = moments.mean;
      trace.statistics[first + 3] = moments.variance;
    }
    return PlainBatchNorm(channels, pixels, graph_.layers[number].epsilon, in, moments, weights[first],
                          weights[first + 1]);
  }

  // Joined along the first extent: what follows it lies together already.
  Values Concat(const Layer& layer, const Trace& trace) const {
    Values out;
    for (std::int64_t n = 0; n < rows_; ++n)
      for (const int input : layer.inputs) {
        const std::int64_t each = facts_[Size(input)].elements();
        const double* const row = trace.outputs[Size(input)].data() + n * each;
        out.insert(out.end(), row, row + each);
      }
    return out;
  }

  // A value goes when its random number, drawn for (seed, step, layer; sample; place in the row), is below the rate.
  Values Dropout(std::size_t number, const Draw& draw, const Values& in) const {
    const double rate = graph_.layers[number].rate;
    const std::uint64_t key = base::Hash64(draw.seed ^ base::Hash64(draw.step << 16 | number));
    const std::size_t width = in.size() / Size(rows_);
    Values out;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::size_t row = i / width, place = i % width;
      const std::uint64_t sample = draw.samples == nullptr ? row : draw.samples[row];
      const double drawn = base::Philox(key, sample, place / 4 * 4)[place % 4] * 0x1p-32;
      out.push_back(drawn < rate ? 0 : in[i] / (1 - rate));
    }
    return out;
  }

  const Graph& graph_;
  const std::vector<Facts> facts_;
  const std::int64_t rows_;
  std::vector<std::size_t> first_block_;  // by layer
};

}  // namespace freshet::model::network
