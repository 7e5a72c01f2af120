// Operators without weights: activations, and those that arrange values.

#include <algorithm>

#include "model/onnx/import_graph.h"

namespace freshet::model::onnx {

using network::Facts;
using network::Layer;
using network::Op;

Result<void> ImportGraph::Plain(Op op) {
  Layer layer{.op = op, .inputs = {TRY(In())}};
  if (node_->op == "LeakyRelu") layer.slope = TRY(Float("alpha", 0.01));
  Give(std::move(layer));
  return {};
}

// Another name for the same thing.
Result<void> ImportGraph::Alias() {
  if (const Tensor* const constant = ConstantAt(0); constant != nullptr && node_->inputs.size() == 1) {
    constants_.emplace(node_->outputs[0], constant);
    return {};
  }
  const std::size_t which = ConstantAt(0) != nullptr ? 1 : 0;
  layers_.emplace(node_->outputs[0], TRY(In(which)));
  if (readers_[node_->outputs[0]] != 1) readers_[node_->inputs[which]] += readers_[node_->outputs[0]] - 1;
  return {};
}

Result<void> ImportGraph::Constant() {
  const Attribute* const value = node_->Find("value");
  if (value == nullptr || !value->t.has_value())
    return Wrong("only constants given as a tensor (value) are known here");
  constants_.emplace(node_->outputs[0], &*value->t);
  return {};
}

Result<void> ImportGraph::Dropout() {
  Layer layer{.op = Op::kDropout, .inputs = {TRY(In())}};
  layer.rate = TRY(Float("ratio", 0.5));
  if (const Tensor* const rate = ConstantAt(1); rate != nullptr) {
    if (rate->type != Type::kFloat || rate->elements() != 1) return Wrong("its ratio is no number");
    layer.rate = Plainly(rate->Floats()[0]);
  }
  Give(std::move(layer));
  return {};
}

// Over the channels of images, else over the last dimension.
Result<void> ImportGraph::Softmax() {
  const int from = TRY(In());
  const bool flattens = document_.opset < 13;  // before, everything from `axis` on was one dimension
  const std::int64_t axis = TRY(Int("axis", flattens ? 1 : -1));
  expectations.push_back([node = node_, from, axis, flattens](const std::vector<Facts>& facts) -> Result<void> {
    const network::Shape& shape = facts[static_cast<std::size_t>(from)].shape;
    const auto rank = static_cast<std::int64_t>(shape.size()) + 1;
    const std::int64_t from_front = axis < 0 ? axis + rank : axis;
    const bool one_pixel = rank == 4 && shape[1] == 1 && shape[2] == 1;
    if (from_front == (rank == 3 ? 2 : 1) && (!flattens || rank != 4 || one_pixel)) return {};
    return Error{Code::kBadInput, Str("node ", node->Label(), ": axis ", axis, " of ", rank,
                                      " dimensions; expected the channels of an image, or the last dimension")};
  });
  Give({.op = Op::kSoftmax, .inputs = {from}});
  return {};
}

Result<void> ImportGraph::Concat() {
  std::vector<int> from;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) from.push_back(TRY(In(i)));
  if (from.empty()) return Wrong("it has no inputs");
  const std::int64_t axis = TRY(Int("axis", 0));
  if (axis >= 0 && axis != 1) return Wrong(Str("axis ", axis, "; expected 1, the channels"));
  if (axis < 0) ExpectRank(from[0], static_cast<std::size_t>(-std::max<std::int64_t>(axis, -10)));
  Give({.op = Op::kConcat, .inputs = std::move(from)});
  return {};
}

Result<void> ImportGraph::Flatten() {
  if (const std::int64_t axis = TRY(Int("axis", 1)); axis != 1) return Wrong(Str("axis ", axis, "; expected 1"));
  Give({.op = Op::kFlatten, .inputs = {TRY(In())}});
  return {};
}

// To one row of numbers for each row: [0, -1], [N, -1], [-1, D].
Result<void> ImportGraph::Reshape() {
  const int from = TRY(In());
  const Tensor* const shape = ConstantAt(1);
  if (shape == nullptr || shape->type != Type::kInt64 || shape->elements() != 2)
    return Wrong("expected a constant shape of two numbers, like [0, -1]: a row of numbers for each row");
  const std::vector<std::int64_t> dims = shape->Ints();
  expectations.push_back([node = node_, from, dims](const std::vector<Facts>& facts) -> Result<void> {
    const std::int64_t elements = facts[static_cast<std::size_t>(from)].elements();
    if (dims[1] == elements || (dims[1] == -1 && dims[0] >= 0)) return {};
    return Error{Code::kBadInput, Str("node ", node->Label(), ": shape [", dims[0], ", ", dims[1], "]; its input has ",
                                      elements, " numbers a row")};
  });
  Give({.op = Op::kFlatten, .inputs = {from}});
  return {};
}

}  // namespace freshet::model::onnx
