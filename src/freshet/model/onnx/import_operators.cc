// Operators that become layers with a window or with weights: each checks what the node says and keeps its weights as
// our blocks have them.

#include <algorithm>
#include <cmath>

#include "model/onnx/import_graph.h"

namespace freshet::model::onnx {

using network::Layer;
using network::Op;
using network::Pair;
using network::Shape;

namespace {

// The transpose of a matrix of `rows` rows.
std::vector<float> Turn(const std::vector<float>& values, std::size_t rows) {
  const std::size_t columns = rows == 0 ? 0 : values.size() / rows;
  std::vector<float> out(values.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) out[c * rows + r] = values[r * columns + c];
  return out;
}

// Sequences as images one pixel high.
Shape AsImage(const Shape& row) { return row.size() == 2 ? Shape{row[0], 1, row[1]} : row; }

}  // namespace

// Over the last dimension of x; several of them before it are steps. The weights are a row for each output.
Result<Seen> ImportGraph::Dense(const Seen& x, std::vector<float> weight, std::int64_t outputs) {
  Shape row = x.row();
  if (x.dims.empty() || x.dims.back() == kBatch) return Wrong("it mixes rows: each row is answered alone here");
  const std::int64_t features = row.back();
  const bool per_step = row.size() > 1;
  if (per_step) {
    std::int64_t steps = 1;
    for (std::size_t d = 0; d + 1 < row.size(); ++d) steps *= row[d];
    row = {steps, features};
  }
  const int from = TRY(Shaped(x.layer, row));
  const int layer =
      TRY(Put({.op = Op::kDense, .inputs = {from}, .outputs = outputs, .bias = false, .per_step = per_step}));
  TRY(Keep(layer, "weight", std::move(weight)));
  Seen seen{.layer = layer, .dims = x.dims};
  seen.dims.back() = outputs;
  return seen;
}

Result<void> ImportGraph::Gemm() {
  Seen x = TRY(In());
  const Tensor& matrix = *TRY(Weights(1, "matrix"));
  if (matrix.dims.size() != 2) return Wrong(Str("its matrix has ", matrix.dims.size(), " dimensions; expected 2"));
  if (x.dims.size() != 2)
    return Wrong(Str("its input has ", x.dims.size(), " dimensions, expected 2; put a Flatten before it"));
  if (TRY(Int("transA", 0)) != 0) {
    if (x.batch().has_value()) return Wrong("transA mixes rows: each row is answered alone here");
    x = Seen{.layer = TRY(Turned(x.layer, x.row(), {1, 0})), .dims = {x.dims[1], x.dims[0]}};
  }
  const bool turned = TRY(Int("transB", 0)) != 0;
  std::vector<float> values = matrix.Floats();
  if (!turned) values = Turn(values, static_cast<std::size_t>(matrix.dims[0]));
  const double alpha = TRY(Float("alpha", 1));
  for (float& value : values) value = static_cast<float>(value * alpha);
  Seen made = TRY(Dense(x, std::move(values), matrix.dims[turned ? 0 : 1]));
  if (Has(2)) {
    const Tensor& bias = *TRY(Weights(2, "bias"));
    const std::int64_t outputs = made.dims.back(), last = bias.dims.empty() ? 1 : bias.dims.back();
    if (last != 1 && last != outputs) return Wrong(Str("a bias of ", last, " numbers for ", outputs, " outputs"));
    made = TRY(Plus(made, bias, TRY(Float("beta", 1))));
  }
  Give(std::move(made));
  return {};
}

Result<void> ImportGraph::MatMul() {
  const Seen x = TRY(In());
  const Tensor& matrix = *TRY(Weights(1, "matrix"));
  Dims dims = matrix.dims;
  while (dims.size() > 2 && dims[0] == 1 && dims.size() <= x.dims.size()) dims.erase(dims.begin());
  if (dims.empty() || dims.size() > 2 || x.dims.size() < dims.size())
    return Wrong(Str("its matrix has ", dims.size(), " dimensions; expected 2"));
  const std::int64_t outputs = dims.size() == 2 ? dims[1] : 1;
  Seen made = TRY(Dense(x, Turn(matrix.Floats(), static_cast<std::size_t>(dims[0])), outputs));
  if (dims.size() == 1) made.dims.pop_back();
  Give(std::move(made));
  return {};
}

// Kernel, strides, pads and dilations of convolutions and pools, over an image or a sequence.
Result<void> ImportGraph::Window(Layer& layer, const Shape& row) {
  const bool flat = row.size() == 2;
  const auto pair = [&](std::string_view name, Pair otherwise) -> Result<Pair> {
    const Dims values = TRY(Ints(name, flat ? Dims{otherwise[1]} : Dims{otherwise[0], otherwise[1]}));
    return flat ? Pair{otherwise[0], values[0]} : Pair{values[0], values[1]};
  };
  layer.kernel = TRY(pair("kernel_shape", layer.kernel));
  layer.stride = TRY(pair("strides", {1, 1}));
  layer.dilation = TRY(pair("dilations", {1, 1}));
  const Dims pads = TRY(Ints("pads", Dims(flat ? 2 : 4, 0)));
  layer.pad = flat ? Pair{0, pads[0]} : Pair{pads[0], pads[1]};
  layer.pad_end = flat ? Pair{0, pads[1]} : Pair{pads[2], pads[3]};
  const std::string automatic = Text("auto_pad", "NOTSET");
  if (automatic == "NOTSET") return {};
  if (automatic != "VALID" && automatic != "SAME_UPPER" && automatic != "SAME_LOWER")
    return Wrong(Str("auto_pad ", Quoted(automatic), "; expected NOTSET, VALID, SAME_UPPER or SAME_LOWER"));
  layer.pad = layer.pad_end = {0, 0};
  if (automatic == "VALID") return {};
  const Shape image = AsImage(row);
  for (std::size_t d = 0; d < 2; ++d) {
    if (layer.stride[d] < 1 || layer.kernel[d] < 1 || layer.dilation[d] < 1 || layer.kernel[d] > 4096 ||
        layer.dilation[d] > 4096 || layer.stride[d] > 4096)
      return Wrong("kernel, stride and dilation must be 1 to 4096");
    const std::int64_t windows = (image[d + 1] + layer.stride[d] - 1) / layer.stride[d];
    const std::int64_t span = (layer.kernel[d] - 1) * layer.dilation[d] + 1;
    const std::int64_t all = std::max<std::int64_t>((windows - 1) * layer.stride[d] + span - image[d + 1], 0);
    layer.pad[d] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
    layer.pad_end[d] = all - layer.pad[d];
  }
  return {};
}

Result<void> ImportGraph::Conv() {
  const Seen x = TRY(In());
  const Shape row = TRY(Image(x, "batch, channels, height and width"));
  const Tensor& kernels = *TRY(Weights(1, "kernels"));
  if (row.size() < 2 || row.size() > 3 || kernels.dims.size() != row.size() + 1)
    return Wrong(Str("its kernels have ", kernels.dims.size(), " dimensions, its input ", row.size() + 1,
                     "; expected 4 both, or 3 for sequences: only images and sequences are known here"));
  Layer layer{.op = Op::kConvolution, .bias = false};
  layer.outputs = kernels.dims[0];
  layer.kernel = {row.size() == 3 ? kernels.dims[2] : 1, kernels.dims.back()};
  const Pair of_weights = layer.kernel;
  TRY(Window(layer, row));
  if (layer.kernel != of_weights) return Wrong("kernel_shape differs from the shape of its weights");
  layer.groups = TRY(Int("group", 1));
  layer.bias = Has(2);
  std::vector<float> bias;
  if (layer.bias) {
    bias = TRY(Weights(2, "bias"))->Floats();
    if (std::ssize(bias) != layer.outputs)
      return Wrong(Str("a bias of ", bias.size(), " numbers for ", layer.outputs, " outputs"));
  }
  layer.inputs = {TRY(Shaped(x.layer, AsImage(row)))};
  const int number = TRY(Put(std::move(layer)));
  TRY(Keep(number, "weight", kernels.Floats()));
  if (Has(2)) TRY(Keep(number, "bias", std::move(bias)));
  const Shape& made = facts.back().shape;
  Give(Seen{.layer = number,
            .dims = row.size() == 2 ? Dims{x.dims[0], made[0], made[2]} : Dims{x.dims[0], made[0], made[1], made[2]}});
  return {};
}

Result<void> ImportGraph::Pool() {
  const Seen x = TRY(In());
  const Shape row = TRY(Image(x, "batch, channels, height and width"));
  if (row.size() < 2 || row.size() > 3) return Wrong("only images and sequences are known here");
  const bool most = node_->op == "MaxPool";
  Layer layer{.op = most ? Op::kMaxPool : Op::kAveragePool};
  if (node_->Find("kernel_shape") == nullptr) return Wrong("kernel_shape is missing");
  TRY(Window(layer, row));
  layer.ceil = TRY(Int("ceil_mode", 0)) != 0;
  layer.include_padding = !most && TRY(Int("count_include_pad", 0)) != 0;
  const Shape image = AsImage(row);
  for (std::size_t d = 0; d < 2 && layer.ceil && layer.include_padding; ++d) {
    const std::int64_t room = image[d + 1] + layer.pad[d] + layer.pad_end[d] - layer.kernel[d];
    if (layer.stride[d] > 0 && room > 0 && room % layer.stride[d] != 0 &&
        (room / layer.stride[d] + 1) * layer.stride[d] < image[d + 1] + layer.pad[d])
      return Wrong("windows that hang over the padding they count: programs disagree about these");
  }
  layer.inputs = {TRY(Shaped(x.layer, image))};
  const int number = TRY(Put(std::move(layer)));
  const Shape& made = facts.back().shape;
  Give(Seen{.layer = number,
            .dims = row.size() == 2 ? Dims{x.dims[0], made[0], made[2]} : Dims{x.dims[0], made[0], made[1], made[2]}});
  return {};
}

Result<void> ImportGraph::GlobalPool() {
  const Seen x = TRY(In());
  const Shape row = TRY(Image(x, "batch, channels, height and width"));
  if (row.size() < 2 || row.size() > 3) return Wrong("only images and sequences are known here");
  const Shape image = AsImage(row);
  Layer layer{.op = Op::kGlobalAveragePool};
  if (node_->op == "GlobalMaxPool") {
    layer.op = Op::kMaxPool;
    layer.kernel = layer.stride = {image[1], image[2]};
  }
  layer.inputs = {TRY(Shaped(x.layer, image))};
  Dims dims = x.dims;
  std::fill(dims.begin() + 2, dims.end(), 1);
  return Give(std::move(layer), std::move(dims));
}

Result<void> ImportGraph::Lrn() {
  const Seen x = TRY(In());
  Layer layer{.op = Op::kLrn};
  layer.size = TRY(Int("size", 0));
  layer.alpha = TRY(Float("alpha", 1e-4));
  layer.beta = TRY(Float("beta", 0.75));
  layer.k = TRY(Float("bias", 1));
  layer.inputs = {TRY(Shaped(x.layer, TRY(Image(x, "batch, channels, height and width"))))};
  return Give(std::move(layer), x.dims);
}

Result<void> ImportGraph::BatchNorm() {
  const Seen x = TRY(In());
  if (TRY(Int("training_mode", 0)) != 0) return Wrong("it is in training mode; export the model for inference");
  Layer layer{.op = Op::kBatchNorm};
  layer.epsilon = TRY(Float("epsilon", 1e-5));
  // There the share of the old statistics, here of the new; a float's error is rounded away.
  layer.momentum = std::round((1 - TRY(Float("momentum", 0.9))) * 1e6) / 1e6;
  layer.inputs = {TRY(Shaped(x.layer, AsImage(TRY(Image(x, "batch and channels")))))};
  const int number = TRY(Put(std::move(layer)));
  std::size_t i = 1;
  for (const char* const what : {"scale", "shift", "mean", "variance"})
    TRY(Keep(number, what, TRY(Weights(i++, what))->Floats()));
  Give(Seen{.layer = number, .dims = x.dims});
  return {};
}

}  // namespace freshet::model::onnx
