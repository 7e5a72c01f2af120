// Functions without weights: activations, softmax, means.

#include <algorithm>

#include "model/onnx/import_graph.h"

namespace freshet::model::onnx {

using network::Layer;
using network::Op;
using network::Shape;

Result<void> ImportGraph::Plain(Op op) {
  const Seen x = TRY(In());
  Layer layer{.op = op, .inputs = {x.layer}};
  if (node_->op == "LeakyRelu") layer.slope = TRY(Float("alpha", 0.01));
  if (op == Op::kGelu) {
    const std::string approximate = Text("approximate", "none");
    if (approximate != "none" && approximate != "tanh")
      return Wrong(Str("approximate ", Quoted(approximate), "; expected none or tanh"));
    layer.approximate = approximate == "tanh";
  }
  return Give(std::move(layer), x.dims);
}

// Bounds are attributes in older files, inputs in newer ones, and may be left out.
Result<void> ImportGraph::Clip() {
  const Seen x = TRY(In());
  Layer layer{.op = Op::kClip, .inputs = {x.layer}};
  if (document_.opset < 11) {
    layer.least = TRY(Float("min", layer.least));
    layer.most = TRY(Float("max", layer.most));
  }
  for (std::size_t i = 1; i <= 2; ++i) {
    if (!Has(i)) continue;
    const Tensor& bound = *TRY(Weights(i, i == 1 ? "min" : "max"));
    if (bound.elements() != 1) return Wrong("a bound is one number");
    (i == 1 ? layer.least : layer.most) = Plainly(bound.Floats()[0]);
  }
  return Give(std::move(layer), x.dims);
}

Result<void> ImportGraph::HardSigmoid() {
  const Seen x = TRY(In());
  const auto alpha = static_cast<float>(TRY(Float("alpha", 0.2))), beta = static_cast<float>(TRY(Float("beta", 0.5)));
  const Seen line = TRY(Affine(x, Shape(x.row().size(), 1), {alpha}, {beta}));
  return Give({.op = Op::kClip, .inputs = {line.layer}, .least = 0, .most = 1}, x.dims);
}

// Ours is over the last of two extents, or over the first of three; other places are brought there.
Result<void> ImportGraph::Softmax(Op op) {
  const Seen x = TRY(In());
  const bool flattens = document_.opset < 13;  // before, everything from `axis` on was one dimension
  const std::size_t axis = TRY(Axis(x, TRY(Int("axis", flattens ? 1 : -1))));
  const Shape row = x.row();
  std::int64_t before = 1, classes = row[axis], after = 1;
  for (std::size_t d = 0; d < axis; ++d) before *= row[d];
  for (std::size_t d = axis + 1; d < row.size(); ++d) (flattens ? classes : after) *= row[d];
  const Shape& shape = facts[static_cast<std::size_t>(x.layer)].shape;
  if (before == 1 && shape.size() == 3 && shape[0] == classes) return Give({.op = op, .inputs = {x.layer}}, x.dims);
  if (before == 1 || after == 1) {
    const Shape wanted = after > 1 ? Shape{classes, 1, after} : before == 1 ? Shape{classes} : Shape{before, classes};
    return Give({.op = op, .inputs = {TRY(Shaped(x.layer, wanted))}}, x.dims);
  }
  const int turned = TRY(Turned(x.layer, {before, classes, after}, {0, 2, 1}));
  const int made = TRY(Put({.op = op, .inputs = {TRY(Shaped(turned, {before * after, classes}))}}));
  Give(Seen{.layer = TRY(Turned(made, {before, after, classes}, {0, 2, 1})), .dims = x.dims});
  return {};
}

// The mean over the last dimensions is that over an image's pixels; others are brought there.
Result<void> ImportGraph::ReduceMean() {
  const Seen x = TRY(In());
  Dims axes = TRY(Numbers("axes", 1)).value_or(Dims{});
  if (axes.empty() && TRY(Int("noop_with_empty_axes", 0)) != 0) return Alias();
  if (axes.empty())
    for (std::size_t d = 0; d < x.dims.size(); ++d) axes.push_back(static_cast<std::int64_t>(d));
  const Shape row = x.row();
  std::vector<bool> over(row.size(), false);
  std::vector<bool> goes(x.dims.size(), false);
  for (const std::int64_t axis : axes) {
    over[TRY(Axis(x, axis))] = true;
    goes[static_cast<std::size_t>(axis < 0 ? axis + std::ssize(x.dims) : axis)] = true;
  }
  Shape order;
  std::int64_t kept = 1, meant = 1;
  for (const bool last : {false, true})
    for (std::size_t d = 0; d < row.size(); ++d)
      if (over[d] == last) {
        order.push_back(static_cast<std::int64_t>(d));
        (last ? meant : kept) *= row[d];
      }
  const bool keeps = TRY(Int("keepdims", 1)) != 0;
  Dims dims;
  for (std::size_t d = 0; d < x.dims.size(); ++d) {
    if (!goes[d]) dims.push_back(x.dims[d]);
    if (goes[d] && keeps) dims.push_back(1);
  }
  const int turned = TRY(Turned(x.layer, row, order));
  const Shape& shape = facts[static_cast<std::size_t>(turned)].shape;
  const bool image = shape.size() == 3 && shape[0] == kept;
  const int from = image ? turned : TRY(Shaped(turned, {kept, 1, meant}));
  return Give({.op = Op::kGlobalAveragePool, .inputs = {from}}, std::move(dims));
}

Result<void> ImportGraph::Dropout() {
  const Seen x = TRY(In());
  Layer layer{.op = Op::kDropout, .inputs = {x.layer}};
  layer.rate = TRY(Float("ratio", 0.5));
  if (Has(1)) {
    const Tensor& rate = *TRY(Weights(1, "ratio"));
    if (rate.elements() != 1) return Wrong("its ratio is no number");
    layer.rate = Plainly(rate.Floats()[0]);
  }
  if (Has(2)) {
    const Tensor* const training = ConstantAt(2);
    const bool known = training != nullptr && training->IsWhole() && training->elements() == 1;
    if (!known || (training->Ints()[0] != 0 && layer.rate != 0))
      return Wrong("it is in training mode, which drops values at random; export the model for inference");
  }
  return Give(std::move(layer), x.dims);
}

}  // namespace freshet::model::onnx
