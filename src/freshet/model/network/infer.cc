// Shapes, parameters and cost of every layer, and every reason a graph can be wrong.

#include <algorithm>
#include <limits>
#include <set>

#include "model/network/graph.h"

namespace freshet::model::network {
namespace {

constexpr std::int64_t kMostExtent = 1 << 24;

// The product of extents, or kMostElements + 1 when it is larger than that.
std::int64_t Product(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) {
    if (extent > kMostElements / product) return kMostElements + 1;
    product *= extent;
  }
  return product;
}

std::string Show(const Shape& shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += Str(text.empty() ? "" : " x ", extent);
  return text;
}

class Inference {
 public:
  Inference(const Graph& graph, const std::vector<Facts>& facts) : graph_(graph), facts_(facts) {}

  Result<Facts> Next() {
    layer_ = &graph_.layers[facts_.size()];
    TRY(One(facts_.size()));
    TRY(CheckSizes());
    return std::move(now_);
  }

  Result<void> CheckNames() {
    std::set<std::string_view> names;
    for (const Layer& layer : graph_.layers) {
      layer_ = &layer;
      if (layer.name.empty() || !names.insert(layer.name).second) return Wrong("the name is empty or taken");
    }
    return {};
  }

  // When all layers are known.
  Result<void> CheckHeads() {
    if (graph_.heads.empty()) return Error{Code::kInvalid, "network: it has no head, so nothing to learn"};
    for (const Head& head : graph_.heads) {
      if (head.layer < 0 || head.layer >= static_cast<int>(facts_.size()))
        return Error{Code::kInvalid, Str("network: head at layer ", head.layer, " of ", facts_.size())};
      layer_ = &graph_.layers[static_cast<std::size_t>(head.layer)];
      const Shape& shape = facts_[static_cast<std::size_t>(head.layer)].shape;
      const Shape& first = facts_[static_cast<std::size_t>(graph_.heads[0].layer)].shape;
      if (Product(shape) != Product(first)) return Wrong("this head's size differs from the first one's");
      const auto same = [&](const Head& other) { return other.layer == head.layer; };
      if (std::count_if(graph_.heads.begin(), graph_.heads.end(), same) > 1) return Wrong("it is a head twice");
      if (!(head.weight >= 0 && head.weight <= 1e6)) return Wrong(Str("the weight of this head is ", head.weight));
      if (graph_.target == Target::kInput && Product(shape) != Product(graph_.input))
        return Wrong(Str("the target is the input, ", Show(graph_.input), ", but the head gives ", Show(shape)));
      if (graph_.target == Target::kNext &&
          (shape.size() != 2 || graph_.input.size() != 1 || shape[0] != graph_.input[0]))
        return Wrong("target next: expected a sequence of symbols as input and scores for each of its steps");
    }
    return {};
  }

  Result<void> CheckPlaces() {
    for (std::size_t i = 1; i < graph_.layers.size(); ++i) {
      layer_ = &graph_.layers[i];
      if (layer_->place.empty() != !graph_.placed())
        return Wrong(layer_->place.empty()
                         ? "it has no place, and layers before it have; say place = \"…\" here, too"
                         : Str("its place is ", Quoted(layer_->place),
                               ", and layers before it have none; say place = \"…\" at the first layer, too"));
    }
    return {};
  }

 private:
  Error Wrong(const std::string& what) const {
    return {Code::kInvalid, Str("network, layer ", Quoted(layer_->name), " (", NameOf(layer_->op), "): ", what)};
  }
  const Shape& In(std::size_t i = 0) const { return facts_[static_cast<std::size_t>(layer_->inputs[i])].shape; }

  Result<void> CheckSizes() {
    if (now_.shape.empty() || now_.shape.size() > 3) return Wrong(Str("has ", now_.shape.size(), " extents; 1 to 3"));
    for (const std::int64_t extent : now_.shape)
      if (extent < 1 || extent > kMostExtent) return Wrong(Str("its output would be ", Show(now_.shape)));
    if (Product(now_.shape) > kMostElements) return Wrong(Str("its output, ", Show(now_.shape), ", is too large"));
    for (const optimize::Block& block : now_.blocks)
      if (block.width > static_cast<std::uint64_t>(kMostElements) ||
          block.rows > static_cast<std::uint64_t>(kMostElements) / std::max<std::uint64_t>(block.width, 1))
        return Wrong(Str("its parameters ", block.name, ", ", block.rows, " x ", block.width, ", are too large"));
    return {};
  }

  Result<void> One(std::size_t number) {
    now_ = {};
    if (layer_->op == Op::kInput) {
      if (number != 0) return Wrong("only layer 0 can be the input");
      now_.shape = graph_.input;
      return {};
    }
    const bool many = layer_->op == Op::kConcat || layer_->op == Op::kSum;
    const std::size_t wanted = layer_->op == Op::kProduct ? 2 : 1;
    if (layer_->inputs.empty() || (!many && layer_->inputs.size() != wanted) || layer_->inputs.size() > 1000)
      return Wrong(Str(layer_->inputs.size(), " inputs; expected ", many ? "1 to 1000" : Str(wanted)));
    for (const int input : layer_->inputs)
      if (input < 0 || static_cast<std::size_t>(input) >= number)
        return Wrong(Str("reads layer ", input, ", which does not come before it"));
    switch (layer_->op) {
      case Op::kDense:
        return Dense();
      case Op::kConvolution:
        return Convolution();
      case Op::kMaxPool:
      case Op::kAveragePool:
        return Pool();
      case Op::kGlobalAveragePool:
        if (In().size() != 3) return Wrong(Str("expected an image, got ", Show(In())));
        now_.shape = {In()[0], 1, 1};
        now_.flops = static_cast<double>(Product(In()));
        return {};
      case Op::kLrn:
        return Lrn();
      case Op::kBatchNorm:
        return BatchNorm();
      case Op::kConcat:
        return Concat();
      case Op::kSum:
        return Sum();
      case Op::kFlatten:
        now_.shape = {Product(In())};
        return {};
      case Op::kEmbedding:
        return Embedding();
      case Op::kLstm:
      case Op::kGru:
        return Recurrent();
      case Op::kProduct:
        if (!Repeats(In(1), In())) return Wrong(Str("cannot multiply ", Show(In()), " by ", Show(In(1))));
        return Elementwise();
      case Op::kAffine:
        return Affine();
      case Op::kReshape:
        return Reshape();
      case Op::kTranspose:
        return Transpose();
      default:
        return Elementwise();
    }
  }

  Result<void> Elementwise() {
    if (layer_->op == Op::kDropout && !(layer_->rate >= 0 && layer_->rate < 1))
      return Wrong(Str("rate ", layer_->rate, "; expected 0 or more and less than 1"));
    if (layer_->op == Op::kRelu && !(layer_->slope >= 0 && layer_->slope <= 1))
      return Wrong(Str("slope ", layer_->slope, "; expected 0 to 1"));
    if (layer_->op == Op::kClip && !(layer_->least <= layer_->most))
      return Wrong(Str("least ", layer_->least, ", most ", layer_->most, "; expected the smaller first"));
    now_.shape = In();
    now_.flops = static_cast<double>(Product(In()));
    return {};
  }

  // Can `small` be repeated to `shape`?
  static bool Repeats(const Shape& small, const Shape& shape) {
    bool fits = small.size() == shape.size();
    for (std::size_t d = 0; fits && d < shape.size(); ++d) fits = small[d] == 1 || small[d] == shape[d];
    return fits;
  }

  Result<void> Affine() {
    if (!Repeats(layer_->shape, In()))
      return Wrong(Str("numbers of ", Show(layer_->shape), " for ", Show(In()),
                       "; expected as many extents, each of them 1 or as there"));
    now_.shape = In();
    now_.flops = 2.0 * static_cast<double>(Product(In()));
    AddBlock("scale", 1, Product(layer_->shape));
    AddBlock("shift", 1, Product(layer_->shape));
    return {};
  }

  Result<void> Reshape() {
    const bool whole = std::all_of(layer_->shape.begin(), layer_->shape.end(), [](std::int64_t e) { return e >= 1; });
    if (layer_->shape.empty() || !whole || Product(layer_->shape) != Product(In()))
      return Wrong(Str("from ", Show(In()), " to ", Show(layer_->shape), ", which has not as many values"));
    now_.shape = layer_->shape;
    return {};
  }

  Result<void> Transpose() {
    const Shape& order = layer_->shape;
    std::vector<bool> taken(In().size());
    for (const std::int64_t d : order)
      if (d >= 0 && d < std::ssize(In())) taken[static_cast<std::size_t>(d)] = true;
    if (order.size() != In().size() || std::count(taken.begin(), taken.end(), true) != std::ssize(In()))
      return Wrong(Str("expected each of the ", In().size(), " extents once, counted from 0"));
    for (const std::int64_t d : order) now_.shape.push_back(In()[static_cast<std::size_t>(d)]);
    return {};
  }

  Result<void> CheckOutputs() {
    if (layer_->outputs >= 1 && layer_->outputs <= kMostExtent) return {};
    return Wrong(Str("outputs ", layer_->outputs, "; expected 1 to ", kMostExtent));
  }

  void AddBlock(std::string_view what, std::int64_t rows, std::int64_t width, float follow = 0) {
    now_.blocks.push_back({.name = Str(layer_->name, ".", what),
                           .rows = static_cast<std::uint64_t>(rows),
                           .width = static_cast<std::uint64_t>(width),
                           .follow = follow});
  }

  Result<void> Dense() {
    TRY(CheckOutputs());
    if (layer_->per_step && In().size() != 2) return Wrong(Str("per step: expected a sequence, got ", Show(In())));
    const std::int64_t steps = layer_->per_step ? In()[0] : 1, features = Product(In()) / steps;
    now_.shape = layer_->per_step ? Shape{steps, layer_->outputs} : Shape{layer_->outputs};
    AddBlock("weight", layer_->outputs, features);
    if (layer_->bias) AddBlock("bias", 1, layer_->outputs);
    now_.flops =
        2.0 * static_cast<double>(steps) * static_cast<double>(features) * static_cast<double>(layer_->outputs);
    return {};
  }

  Result<void> CheckWindow() {
    if (In().size() != 3) return Wrong(Str("expected an image (channels, height, width), got ", Show(In())));
    for (int d = 0; d < 2; ++d) {
      const auto at = static_cast<std::size_t>(d);
      if (layer_->kernel[at] < 1 || layer_->stride[at] < 1 || layer_->dilation[at] < 1 || layer_->pad[at] < 0 ||
          layer_->pad_end[at] < 0 || layer_->kernel[at] > 4096 || layer_->stride[at] > 4096 ||
          layer_->dilation[at] > 4096 || layer_->pad[at] > 4096 || layer_->pad_end[at] > 4096)
        return Wrong("kernel, stride and dilation must be 1 to 4096, pad 0 to 4096");
    }
    return {};
  }

  // The number of windows along one direction; 0 when not even one fits.
  std::int64_t Windows(std::size_t d) const {
    const std::int64_t span = layer_->dilation[d] * (layer_->kernel[d] - 1) + 1;
    const std::int64_t room = In()[d + 1] + layer_->pad[d] + layer_->pad_end[d] - span;
    if (room < 0) return 0;
    std::int64_t windows = room / layer_->stride[d] + 1;
    // A window that hangs over must at least begin inside.
    if (layer_->ceil && room % layer_->stride[d] != 0 && windows * layer_->stride[d] < In()[d + 1] + layer_->pad[d])
      ++windows;
    return windows;
  }

  Result<void> Convolution() {
    TRY(CheckOutputs());
    TRY(CheckWindow());
    if (layer_->ceil) return Wrong("convolutions know no ceil mode");
    const std::int64_t channels = In()[0];
    if (layer_->groups < 1 || channels % layer_->groups != 0 || layer_->outputs % layer_->groups != 0)
      return Wrong(
          Str(layer_->groups, " groups do not divide ", channels, " channels and ", layer_->outputs, " outputs"));
    now_.shape = {layer_->outputs, Windows(0), Windows(1)};
    if (now_.shape[1] == 0 || now_.shape[2] == 0)
      return Wrong(Str("the kernel is larger than its input, ", Show(In())));
    const std::int64_t width = channels / layer_->groups * layer_->kernel[0] * layer_->kernel[1];
    AddBlock("weight", layer_->outputs, width);
    if (layer_->bias) AddBlock("bias", 1, layer_->outputs);
    now_.flops = 2.0 * static_cast<double>(width) * static_cast<double>(Product(now_.shape));
    return {};
  }

  Result<void> Pool() {
    TRY(CheckWindow());
    for (std::size_t d = 0; d < 2; ++d) {
      if (layer_->dilation[d] != 1) return Wrong("pools know no dilation");
      if (layer_->pad[d] >= layer_->kernel[d] || layer_->pad_end[d] >= layer_->kernel[d])
        return Wrong("the padding must be smaller than the kernel");
    }
    now_.shape = {In()[0], Windows(0), Windows(1)};
    if (now_.shape[1] == 0 || now_.shape[2] == 0)
      return Wrong(Str("the kernel is larger than its input, ", Show(In())));
    now_.flops = static_cast<double>(Product(now_.shape) * layer_->kernel[0] * layer_->kernel[1]);
    return {};
  }

  Result<void> Lrn() {
    if (In().size() != 3) return Wrong(Str("expected an image, got ", Show(In())));
    if (layer_->size < 1 || layer_->size > 4096 || layer_->size % 2 == 0)
      return Wrong(Str("size ", layer_->size, "; expected an odd number"));
    if (!(layer_->alpha >= 0 && layer_->alpha <= 1e6 && layer_->beta >= 0 && layer_->beta <= 100 && layer_->k > 0))
      return Wrong("alpha and beta must be 0 or more, k above 0");
    now_.shape = In();
    now_.flops = 3.0 * static_cast<double>(layer_->size * Product(In()));
    return {};
  }

  Result<void> BatchNorm() {
    if (!(layer_->epsilon > 0) || !(layer_->momentum > 0 && layer_->momentum <= 1))
      return Wrong("epsilon must be above 0, momentum above 0 and at most 1");
    if (In().size() == 2) return Wrong("of sequences is not known here");
    now_.shape = In();
    const std::int64_t channels = In()[0];
    AddBlock("scale", 1, channels);
    AddBlock("shift", 1, channels);
    AddBlock("mean", 1, channels, static_cast<float>(layer_->momentum));
    AddBlock("variance", 1, channels, static_cast<float>(layer_->momentum));
    now_.flops = 4.0 * static_cast<double>(Product(In()));
    return {};
  }

  Result<void> Concat() {
    now_.shape = In();
    for (std::size_t i = 1; i < layer_->inputs.size(); ++i) {
      bool same = In(i).size() == now_.shape.size();
      for (std::size_t d = 1; same && d < now_.shape.size(); ++d) same = In(i)[d] == now_.shape[d];
      if (!same) return Wrong(Str("cannot join ", Show(In(0)), " and ", Show(In(i))));
      now_.shape[0] += In(i)[0];
    }
    return {};
  }

  Result<void> Sum() {
    for (std::size_t i = 1; i < layer_->inputs.size(); ++i)
      if (In(i) != In(0)) return Wrong(Str("cannot add ", Show(In(0)), " and ", Show(In(i))));
    now_.shape = In();
    now_.flops = static_cast<double>(Product(In())) * static_cast<double>(layer_->inputs.size() - 1);
    return {};
  }

  Result<void> Embedding() {
    TRY(CheckOutputs());
    if (In().size() != 1) return Wrong(Str("expected a sequence of whole numbers, got ", Show(In())));
    if (layer_->vocabulary < 1 || layer_->vocabulary > kMostExtent)
      return Wrong(Str("vocabulary ", layer_->vocabulary, "; expected 1 to ", kMostExtent));
    now_.shape = {In()[0], layer_->outputs};
    AddBlock("weight", layer_->vocabulary, layer_->outputs);
    return {};
  }

  Result<void> Recurrent() {
    TRY(CheckOutputs());
    if (In().size() != 2) return Wrong(Str("expected a sequence (steps, features), got ", Show(In())));
    const std::int64_t gates = layer_->op == Op::kLstm ? 4 : 3, hidden = layer_->outputs, features = In()[1];
    now_.shape = layer_->sequence ? Shape{In()[0], hidden} : Shape{hidden};
    AddBlock("weight", gates * hidden, features);
    AddBlock("recurrent", gates * hidden, hidden);
    AddBlock("bias", 4, hidden);  // gru: the candidate has one of its own for the state
    now_.flops = 2.0 * static_cast<double>(In()[0]) * static_cast<double>(gates * hidden) *
                 static_cast<double>(features + hidden);
    return {};
  }

  const Graph& graph_;
  const std::vector<Facts>& facts_;  // of the layers before
  const Layer* layer_ = nullptr;
  Facts now_;
};

}  // namespace

std::int64_t Facts::elements() const { return Product(shape); }

std::uint64_t Facts::parameters() const {
  std::uint64_t sum = 0;
  for (const optimize::Block& block : blocks) sum += block.rows * block.width;
  return sum;
}

Result<Facts> InferNext(const Graph& graph, const std::vector<Facts>& facts) {
  CHECK(facts.size() < graph.layers.size());
  return Inference(graph, facts).Next();
}

Result<std::vector<Facts>> Infer(const Graph& graph) {
  if (graph.layers.empty() || graph.layers[0].op != Op::kInput)
    return Error{Code::kInvalid, "network: layer 0 must be the input"};
  if (graph.layers.size() > kMostLayers)
    return Error{Code::kInvalid, Str("network: ", graph.layers.size(), " layers; at most ", kMostLayers)};
  std::vector<Facts> facts;
  Inference inference(graph, facts);
  TRY(inference.CheckNames());
  while (facts.size() < graph.layers.size()) facts.push_back(TRY(inference.Next()));
  TRY(inference.CheckHeads());
  TRY(inference.CheckPlaces());
  return facts;
}

}  // namespace freshet::model::network
