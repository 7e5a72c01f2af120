// The layers of a network as nodes, each named after its layer, in the order of the graph.

#include <cmath>

#include "model/onnx/export_kinds.h"

namespace freshet::model::onnx {
namespace {

using network::Facts;
using network::Graph;
using network::Layer;
using network::Op;
using network::Pair;
using network::Shape;

std::vector<std::int64_t> PadsOf(const Pair& pad, const Pair& pad_end) {
  return {pad[0], pad[1], pad_end[0], pad_end[1]};
}

class LayerExport {
 public:
  LayerExport(Builder& builder, const Graph& graph, const optimize::Parameters& parameters,
              const std::vector<Facts>& facts)
      : builder_(builder), graph_(graph), parameters_(parameters), facts_(facts), values_(graph.layers.size()) {}

  Result<std::string> Run(const std::string& input) {
    const auto head = static_cast<std::size_t>(graph_.heads[0].layer);
    const std::vector<bool> needed = Needed(head);
    values_[0] = input;
    for (number_ = 1; number_ <= head; ++number_) {
      layer_ = &graph_.layers[number_];
      if (needed[number_]) values_[number_] = TRY(One());
    }
    return values_[head];
  }

 private:
  // The layers that the first head depends on.
  std::vector<bool> Needed(std::size_t head) const {
    std::vector<bool> needed(graph_.layers.size());
    needed[head] = true;
    for (std::size_t i = head + 1; i-- > 0;)
      if (needed[i])
        for (const int from : graph_.layers[i].inputs) needed[static_cast<std::size_t>(from)] = true;
    return needed;
  }

  std::size_t From(std::size_t i = 0) const { return static_cast<std::size_t>(layer_->inputs[i]); }
  const Shape& InShape() const { return facts_[From()].shape; }
  std::string In() const { return values_[From()]; }

  std::string Add(std::string_view op, std::vector<std::string> inputs, std::vector<Attribute> attributes = {}) {
    return builder_.Node(op, std::move(inputs), std::move(attributes), layer_->name);
  }
  // A step before the one that carries the layer's name.
  std::string Before(std::string_view what, std::string_view op, std::vector<std::string> inputs,
                     std::vector<Attribute> attributes = {}) {
    return builder_.Node(op, std::move(inputs), std::move(attributes), Str(layer_->name, "/", what));
  }
  std::size_t FindBlock(std::string_view what) const {
    const auto found = parameters_.Find(Str(layer_->name, ".", what));
    CHECK(found.has_value());
    return *found;
  }
  std::string Block(std::string_view what, std::vector<std::int64_t> dims) {
    return builder_.Block(parameters_, FindBlock(what), std::move(dims));
  }

  Result<std::string> One() {
    switch (layer_->op) {
      case Op::kDense:
        return layer_->per_step ? PerStep() : Dense();
      case Op::kConvolution:
        return Convolution();
      case Op::kMaxPool:
      case Op::kAveragePool:
        return Pool();
      case Op::kGlobalAveragePool:
        return Add("GlobalAveragePool", {In()});
      case Op::kLrn:
        return Add("LRN", {In()},
                   {FloatAttribute("alpha", layer_->alpha), FloatAttribute("beta", layer_->beta),
                    FloatAttribute("bias", layer_->k), IntAttribute("size", layer_->size)});
      case Op::kBatchNorm:
        return BatchNorm();
      case Op::kRelu:
        if (layer_->slope == 0) return Add("Relu", {In()});
        return Add("LeakyRelu", {In()}, {FloatAttribute("alpha", layer_->slope)});
      case Op::kTanh:
        return Add("Tanh", {In()});
      case Op::kSigmoid:
        return Add("Sigmoid", {In()});
      case Op::kSoftmax:
        return Add("Softmax", {In()}, {IntAttribute("axis", InShape().size() == 2 ? 2 : 1)});
      case Op::kClip:
        return Clip();
      case Op::kHardSwish:
        return Add("Mul", {In(), Before("gate", "HardSigmoid", {In()},
                                        {FloatAttribute("alpha", 1.0 / 6), FloatAttribute("beta", 0.5)})});
      case Op::kGelu:
        return Gelu();
      case Op::kErf:
        return Add("Erf", {In()});
      case Op::kLogSoftmax:
        return Add("LogSoftmax", {In()}, {IntAttribute("axis", InShape().size() == 2 ? 2 : 1)});
      case Op::kProduct:
        return Add("Mul", Ins());
      case Op::kAffine:
        return Add("Add",
                   {Before("scaled", "Mul", {In(), Block("scale", layer_->shape)}), Block("shift", layer_->shape)});
      case Op::kReshape:
        return Reshape();
      case Op::kTranspose:
        return Transpose();
      case Op::kDropout:
        return In();
      case Op::kConcat:
        return Add("Concat", Ins(), {IntAttribute("axis", 1)});
      case Op::kSum:
        return Add(layer_->inputs.size() == 2 ? "Add" : "Sum", Ins());
      case Op::kFlatten:
        return Add("Flatten", {In()}, {IntAttribute("axis", 1)});
      case Op::kEmbedding:
        return Embedding();
      case Op::kLstm:
      case Op::kGru:
        return Recurrent();
      default:
        return Error{Code::kInvalid, Str("layer ", Quoted(layer_->name), " (", network::NameOf(layer_->op),
                                         ") has no counterpart in ONNX here")};
    }
  }

  std::vector<std::string> Ins() const {
    std::vector<std::string> all;
    for (const int from : layer_->inputs) all.push_back(values_[static_cast<std::size_t>(from)]);
    return all;
  }

  // A bound that is not there is left out.
  std::string Clip() {
    const auto bound = [&](std::string_view what, double value) {
      return std::isfinite(value) ? builder_.Scalar(Str(layer_->name, ".", what), static_cast<float>(value)) : "";
    };
    return Add("Clip", {In(), bound("least", layer_->least), bound("most", layer_->most)});
  }

  // x · (1 + erf(x / √2)) / 2, or the same by tanh(√(2/π) · (x + 0.044715 x³)): Gelu itself came with operator set 20.
  std::string Gelu() {
    const auto number = [&](std::string_view what, float value) {
      return builder_.Scalar(Str(layer_->name, ".", what), value);
    };
    std::string inner;
    if (layer_->approximate) {
      const std::string cubed = Before("cubed", "Mul", {In(), Before("squared", "Mul", {In(), In()})});
      const std::string bent =
          Before("bent", "Add", {In(), Before("part", "Mul", {cubed, number("cubic", 0.044715f)})});
      inner = Before("tanh", "Tanh", {Before("inner", "Mul", {bent, number("root", 0.7978845608f)})});
    } else {
      inner = Before("erf", "Erf", {Before("inner", "Mul", {In(), number("root", 0.7071067812f)})});
    }
    const std::string half = Before("half", "Mul", {In(), number("half", 0.5f)});
    return Add("Mul", {half, Before("weight", "Add", {inner, number("one", 1)})});
  }

  std::string Reshape() {
    std::vector<std::int64_t> shape = {0};  // the batch, as it is
    shape.insert(shape.end(), layer_->shape.begin(), layer_->shape.end());
    return Add("Reshape", {In(), builder_.Ints(Str(layer_->name, ".shape"), shape)});
  }

  std::string Transpose() {
    std::vector<std::int64_t> order = {0};
    for (const std::int64_t d : layer_->shape) order.push_back(d + 1);
    return Add("Transpose", {In()}, {IntsAttribute("perm", order)});
  }

  std::string Dense() {
    const std::string flat =
        InShape().size() == 1 ? In() : Before("flatten", "Flatten", {In()}, {IntAttribute("axis", 1)});
    std::vector<std::string> inputs = {flat, Block("weight", {layer_->outputs, facts_[From()].elements()})};
    if (layer_->bias) inputs.push_back(Block("bias", {layer_->outputs}));
    return Add("Gemm", std::move(inputs), {IntAttribute("transB", 1)});
  }

  std::string PerStep() {
    const std::int64_t features = InShape()[1], outputs = layer_->outputs;
    const std::string weight = Block("weight", {outputs, features});
    const std::string turned = Before("turned", "Transpose", {weight}, {IntsAttribute("perm", {1, 0})});
    if (!layer_->bias) return Add("MatMul", {In(), turned});
    const std::string product = Before("product", "MatMul", {In(), turned});
    return Add("Add", {product, Block("bias", {outputs})});
  }

  std::string Convolution() {
    std::vector<std::string> inputs = {
        In(), Block("weight", {layer_->outputs, InShape()[0] / layer_->groups, layer_->kernel[0], layer_->kernel[1]})};
    if (layer_->bias) inputs.push_back(Block("bias", {layer_->outputs}));
    return Add("Conv", std::move(inputs),
               {IntsAttribute("kernel_shape", {layer_->kernel[0], layer_->kernel[1]}),
                IntsAttribute("strides", {layer_->stride[0], layer_->stride[1]}),
                IntsAttribute("pads", PadsOf(layer_->pad, layer_->pad_end)),
                IntsAttribute("dilations", {layer_->dilation[0], layer_->dilation[1]}),
                IntAttribute("group", layer_->groups)});
  }

  // A window that hangs over begins inside the image here; ONNX has no such rule. Where it would add a window that lies
  // in the padding alone, that much of the padding is left out.
  Result<Pair> PoolPadEnd() const {
    Pair end = layer_->pad_end;
    for (std::size_t d = 0; d < 2; ++d) {
      const std::int64_t room = InShape()[d + 1] + layer_->pad[d] + layer_->pad_end[d] - layer_->kernel[d];
      const std::int64_t rest = room % layer_->stride[d];
      const std::int64_t windows = facts_[number_].shape[d + 1];
      if (!layer_->ceil || rest == 0 || windows == room / layer_->stride[d] + 2) continue;
      if (rest > end[d])
        return Error{Code::kInvalid, Str("layer ", Quoted(layer_->name),
                                         ": its windows cannot be said in ONNX; use ceil = false, or less padding")};
      end[d] -= rest;
    }
    return end;
  }

  Result<std::string> Pool() {
    const bool most = layer_->op == Op::kMaxPool;
    const auto pad_end = TRY(PoolPadEnd());  // not below: what is half made would be lost with an error
    std::vector<Attribute> attributes = {IntsAttribute("kernel_shape", {layer_->kernel[0], layer_->kernel[1]}),
                                         IntsAttribute("strides", {layer_->stride[0], layer_->stride[1]}),
                                         IntsAttribute("pads", PadsOf(layer_->pad, pad_end)),
                                         IntAttribute("ceil_mode", layer_->ceil ? 1 : 0)};
    if (!most) attributes.push_back(IntAttribute("count_include_pad", layer_->include_padding ? 1 : 0));
    return Add(most ? "MaxPool" : "AveragePool", {In()}, std::move(attributes));
  }

  std::string BatchNorm() {
    const std::int64_t channels = InShape()[0];
    return Add("BatchNormalization",
               {In(), Block("scale", {channels}), Block("shift", {channels}), Block("mean", {channels}),
                Block("variance", {channels})},
               {FloatAttribute("epsilon", layer_->epsilon), FloatAttribute("momentum", 1 - layer_->momentum)});
  }

  std::string Embedding() {
    const std::string numbers =
        Before("numbers", "Cast", {In()}, {IntAttribute("to", static_cast<std::int64_t>(Type::kInt64))});
    return Add("Gather", {Block("weight", {layer_->vocabulary, layer_->outputs}), numbers}, {IntAttribute("axis", 0)});
  }

  // The gates of a block in another order.
  std::vector<float> Gates(std::string_view what, const std::vector<std::size_t>& order) const {
    const std::vector<float> values = parameters_.Gather(FindBlock(what));
    const std::size_t gates = what == "bias" ? 4 : order.size(), size = values.size() / gates;
    std::vector<float> out;
    for (const std::size_t gate : order)
      out.insert(out.end(), values.begin() + static_cast<std::ptrdiff_t>(gate * size),
                 values.begin() + static_cast<std::ptrdiff_t>((gate + 1) * size));
    return out;
  }

  // Gates there: input, output, forget, candidate; and update, reset, candidate. Steps are outermost there.
  std::string Recurrent() {
    const bool lstm = layer_->op == Op::kLstm;
    const std::vector<std::size_t> order =
        lstm ? std::vector<std::size_t>{0, 3, 1, 2} : std::vector<std::size_t>{0, 1, 2};
    const auto gates = static_cast<std::int64_t>(order.size());
    const std::int64_t hidden = layer_->outputs, features = InShape()[1];
    std::vector<float> bias = Gates("bias", order);
    bias.resize(static_cast<std::size_t>(2 * gates * hidden));
    if (!lstm) {
      const std::vector<float> state = Gates("bias", {3});
      std::copy(state.begin(), state.end(), bias.end() - static_cast<std::ptrdiff_t>(hidden));
    }
    const std::string steps = Before("steps", "Transpose", {In()}, {IntsAttribute("perm", {1, 0, 2})});
    std::vector<Attribute> attributes = {IntAttribute("hidden_size", hidden)};
    if (!lstm) attributes.push_back(IntAttribute("linear_before_reset", 1));
    const std::string all = Str(layer_->name, "/all"), last = Str(layer_->name, "/last");
    const std::vector<std::string> outputs = builder_.Nodes(
        lstm ? "LSTM" : "GRU",
        {steps, builder_.Floats(Str(layer_->name, ".weight"), {1, gates * hidden, features}, Gates("weight", order)),
         builder_.Floats(Str(layer_->name, ".recurrent"), {1, gates * hidden, hidden}, Gates("recurrent", order)),
         builder_.Floats(Str(layer_->name, ".bias"), {1, 2 * gates * hidden}, std::move(bias))},
        layer_->sequence ? std::vector<std::string>{all} : std::vector<std::string>{"", last}, std::move(attributes));
    const std::string axis = builder_.Ints(Str(layer_->name, "/axis"), {layer_->sequence ? 1 : 0});
    if (!layer_->sequence) return Add("Squeeze", {outputs[1], axis});
    const std::string squeezed = Before("squeezed", "Squeeze", {outputs[0], axis});
    return Add("Transpose", {squeezed}, {IntsAttribute("perm", {1, 0, 2})});
  }

  Builder& builder_;
  const Graph& graph_;
  const optimize::Parameters& parameters_;
  const std::vector<Facts>& facts_;
  std::vector<std::string> values_;  // what each layer is called in the document
  std::size_t number_ = 0;
  const Layer* layer_ = nullptr;
};

}  // namespace

Result<std::string> AddLayers(Builder& builder, const Graph& graph, const optimize::Parameters& parameters,
                              const std::vector<Facts>& facts, const std::string& input) {
  return LayerExport(builder, graph, parameters, facts).Run(input);
}

}  // namespace freshet::model::onnx
