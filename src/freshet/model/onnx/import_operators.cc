// Operators that become layers: each checks what the node says and keeps its weights as our blocks have them.

#include <algorithm>
#include <cmath>

#include "model/onnx/import_graph.h"

namespace freshet::model::onnx {

using network::Layer;
using network::Op;

namespace {

// The transpose of a matrix of `rows` rows.
std::vector<float> Turned(const std::vector<float>& values, std::size_t rows) {
  const std::size_t columns = rows == 0 ? 0 : values.size() / rows;
  std::vector<float> out(values.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) out[c * rows + r] = values[r * columns + c];
  return out;
}

void Scale(std::vector<float>& values, double factor) {
  if (factor == 1) return;
  for (float& value : values) value = static_cast<float>(value * factor);
}

}  // namespace

Result<void> ImportGraph::Gemm() {
  const int from = TRY(In());
  const Tensor& matrix = *TRY(Weights(1, "matrix"));
  if (TRY(Int("transA", 0)) != 0) return Wrong("transA is not known here");
  if (matrix.dims.size() != 2) return Wrong(Str("its matrix has ", matrix.dims.size(), " dimensions; expected 2"));
  const bool turned = TRY(Int("transB", 0)) != 0;
  const std::int64_t outputs = matrix.dims[turned ? 0 : 1];
  std::vector<float> values = matrix.Floats();
  if (!turned) values = Turned(values, static_cast<std::size_t>(matrix.dims[0]));
  Scale(values, TRY(Float("alpha", 1)));
  std::vector<float> bias;
  if (Has(2)) {
    bias = TRY(Bias(*TRY(Weights(2, "bias")), outputs));
    Scale(bias, TRY(Float("beta", 1)));
  }
  ExpectRank(from, 1);
  const int layer = Give({.op = Op::kDense, .inputs = {from}, .outputs = outputs, .bias = Has(2)});
  TRY(Keep(layer, "weight", std::move(values)));
  if (Has(2)) TRY(Keep(layer, "bias", std::move(bias)));
  return {};
}

Result<void> ImportGraph::MatMul() {
  const int from = TRY(In());
  const Tensor& matrix = *TRY(Weights(1, "matrix"));
  if (matrix.dims.size() != 2) return Wrong(Str("its matrix has ", matrix.dims.size(), " dimensions; expected 2"));
  ExpectRank(from, 1);
  const int layer = Give({.op = Op::kDense, .inputs = {from}, .outputs = matrix.dims[1], .bias = false});
  return Keep(layer, "weight", Turned(matrix.Floats(), static_cast<std::size_t>(matrix.dims[0])));
}

// Of layers; or of a constant, as the bias of the layer before.
Result<void> ImportGraph::AddOrSum() {
  const std::size_t which = ConstantAt(0) != nullptr ? 0 : 1;
  if (node_->inputs.size() != 2 || ConstantAt(which) == nullptr) {
    std::vector<int> from;
    for (std::size_t i = 0; i < node_->inputs.size(); ++i) from.push_back(TRY(In(i)));
    Give({.op = Op::kSum, .inputs = std::move(from)});
    return {};
  }
  const int from = TRY(In(1 - which));
  Layer& layer = graph.layers[static_cast<std::size_t>(from)];
  const bool takes_bias = (layer.op == Op::kDense || layer.op == Op::kConvolution) && !layer.bias;
  if (!takes_bias || readers_[node_->inputs[1 - which]] != 1)
    return Wrong("a constant can be added to what a MatMul, Gemm or Conv without bias gives, and to nothing else here");
  const Tensor& tensor = *TRY(Weights(which, "constant"));
  // Of its dimensions only the channels' may be larger than 1: [O] or [1, O] after a matrix, [O, 1, 1] after a Conv.
  const std::size_t behind = layer.op == Op::kDense ? 0 : 2;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d)
    if (tensor.dims[d] != 1 && d + 1 + behind != tensor.dims.size())
      return Wrong("the constant is no bias: only its channels may be more than one");
  TRY(Keep(from, "bias", TRY(Bias(tensor, layer.outputs))));
  layer.bias = true;
  layers_.emplace(node_->outputs[0], from);
  return {};
}

// Kernel, strides, pads and dilations of convolutions and pools.
Result<void> ImportGraph::Window(Layer& layer) const {
  if (const Attribute* const automatic = node_->Find("auto_pad");
      automatic != nullptr && automatic->s != "NOTSET" && automatic->s != "VALID")
    return Wrong(Str("auto_pad ", Quoted(automatic->s), "; export the model with the pads as numbers"));
  const auto pair = [](const std::vector<std::int64_t>& values) { return network::Pair{values[0], values[1]}; };
  layer.kernel = pair(TRY(Ints("kernel_shape", {layer.kernel[0], layer.kernel[1]})));
  layer.stride = pair(TRY(Ints("strides", {1, 1})));
  layer.dilation = pair(TRY(Ints("dilations", {1, 1})));
  const std::vector<std::int64_t> pads = TRY(Ints("pads", {0, 0, 0, 0}));
  layer.pad = {pads[0], pads[1]};
  layer.pad_end = {pads[2], pads[3]};
  return {};
}

Result<void> ImportGraph::Conv() {
  Layer layer{.op = Op::kConvolution, .inputs = {TRY(In())}, .bias = Has(2)};
  const Tensor& kernels = *TRY(Weights(1, "kernels"));
  if (kernels.dims.size() != 4)
    return Wrong(Str("its kernels have ", kernels.dims.size(), " dimensions; expected 4: only images are known here"));
  layer.outputs = kernels.dims[0];
  layer.kernel = {kernels.dims[2], kernels.dims[3]};
  TRY(Window(layer));
  if (layer.kernel[0] != kernels.dims[2] || layer.kernel[1] != kernels.dims[3])
    return Wrong("kernel_shape differs from the shape of its weights");
  layer.groups = TRY(Int("group", 1));
  std::vector<float> bias;
  if (Has(2)) bias = TRY(Bias(*TRY(Weights(2, "bias")), layer.outputs));
  const int number = Give(std::move(layer));
  TRY(Keep(number, "weight", kernels.Floats()));
  if (Has(2)) TRY(Keep(number, "bias", std::move(bias)));
  return {};
}

Result<void> ImportGraph::Pool() {
  const bool most = node_->op == "MaxPool";
  Layer layer{.op = most ? Op::kMaxPool : Op::kAveragePool, .inputs = {TRY(In())}};
  if (node_->Find("kernel_shape") == nullptr) return Wrong("kernel_shape is missing");
  TRY(Window(layer));
  layer.ceil = TRY(Int("ceil_mode", 0)) != 0;
  layer.include_padding = TRY(Int("count_include_pad", 0)) != 0;
  Give(std::move(layer));
  return {};
}

Result<void> ImportGraph::Lrn() {
  Layer layer{.op = Op::kLrn, .inputs = {TRY(In())}};
  layer.size = TRY(Int("size", 0));
  layer.alpha = TRY(Float("alpha", 1e-4));
  layer.beta = TRY(Float("beta", 0.75));
  layer.k = TRY(Float("bias", 1));
  Give(std::move(layer));
  return {};
}

Result<void> ImportGraph::BatchNorm() {
  Layer layer{.op = Op::kBatchNorm, .inputs = {TRY(In())}};
  if (TRY(Int("training_mode", 0)) != 0) return Wrong("it is in training mode; export the model for inference");
  layer.epsilon = TRY(Float("epsilon", 1e-5));
  // There the share of the old statistics, here of the new; a float's error is rounded away.
  layer.momentum = std::round((1 - TRY(Float("momentum", 0.9))) * 1e6) / 1e6;
  const int number = Give(std::move(layer));
  std::size_t i = 1;
  for (const char* const what : {"scale", "shift", "mean", "variance"})
    TRY(Keep(number, what, TRY(Weights(i++, what))->Floats()));
  return {};
}

}  // namespace freshet::model::onnx
