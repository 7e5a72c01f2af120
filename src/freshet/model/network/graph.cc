#include "model/network/graph.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace freshet::model::network {
namespace {

constexpr std::string_view kOpNames[] = {
    "input",   "dense",      "convolution", "max-pool", "average-pool", "global-average-pool",
    "lrn",     "batch-norm", "relu",        "tanh",     "sigmoid",      "softmax",
    "dropout", "concat",     "sum",         "flatten",  "embedding",    "lstm",
    "gru",     "clip",       "hard-swish",  "gelu",     "erf",          "log-softmax",
    "product", "affine",     "reshape",     "transpose"};
static_assert(std::size(kOpNames) == static_cast<std::size_t>(kLastOp) + 1);
constexpr std::string_view kTargetNames[] = {"label", "input", "next"};

}  // namespace

std::string_view NameOf(Op op) { return kOpNames[static_cast<std::size_t>(op)]; }
std::string_view NameOf(Target target) { return kTargetNames[static_cast<std::size_t>(target)]; }

Graph::Graph(Shape of_input) : input(std::move(of_input)) { layers.push_back({.name = "input"}); }

int Graph::Add(Layer layer) {
  if (layer.name.empty()) layer.name = Str(NameOf(layer.op), layers.size());
  layers.push_back(std::move(layer));
  return static_cast<int>(layers.size()) - 1;
}

int Graph::Dense(int from, std::int64_t outputs, std::string name) {
  return Add({.name = std::move(name), .op = Op::kDense, .inputs = {from}, .outputs = outputs});
}

int Graph::Convolution(int from, std::int64_t outputs, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
                       std::string name, std::int64_t groups) {
  return Add({.name = std::move(name),
              .op = Op::kConvolution,
              .inputs = {from},
              .outputs = outputs,
              .kernel = {kernel, kernel},
              .stride = {stride, stride},
              .pad = {pad, pad},
              .pad_end = {pad, pad},
              .groups = groups});
}

int Graph::MaxPool(int from, std::int64_t kernel, std::int64_t stride, std::int64_t pad, bool ceil, std::string name) {
  return Add({.name = std::move(name),
              .op = Op::kMaxPool,
              .inputs = {from},
              .kernel = {kernel, kernel},
              .stride = {stride, stride},
              .pad = {pad, pad},
              .pad_end = {pad, pad},
              .ceil = ceil});
}

int Graph::AveragePool(int from, std::int64_t kernel, std::int64_t stride, std::int64_t pad, bool ceil,
                       std::string name) {
  const int layer = MaxPool(from, kernel, stride, pad, ceil, std::move(name));
  layers.back().op = Op::kAveragePool;
  return layer;
}

int Graph::Plain(Op op, int from, std::string name) {
  return Add({.name = std::move(name), .op = op, .inputs = {from}});
}

int Graph::Concat(std::vector<int> from, std::string name) {
  return Add({.name = std::move(name), .op = Op::kConcat, .inputs = std::move(from)});
}

int Graph::Sum(std::vector<int> from, std::string name) {
  return Add({.name = std::move(name), .op = Op::kSum, .inputs = std::move(from)});
}

}  // namespace freshet::model::network
