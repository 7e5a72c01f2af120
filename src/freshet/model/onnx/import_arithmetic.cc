// Sums, differences, products and quotients, of layers and with constants.

#include <algorithm>
#include <cmath>

#include "model/onnx/import_graph.h"

namespace freshet::model::onnx {

using network::Layer;
using network::Op;
using network::Shape;

namespace {

// Neighbours that are repeated alike are one, so that three extents are enough for most.
void Merge(Shape& row, Shape& pattern) {
  Shape merged_row, merged_pattern;
  for (std::size_t d = 0; d < row.size(); ++d) {
    if (row[d] == 1 && !merged_row.empty()) continue;
    const bool repeated = pattern[d] == 1;
    if (!merged_row.empty() && (merged_row.back() == 1 || repeated == (merged_pattern.back() == 1))) {
      merged_row.back() *= row[d];
      merged_pattern.back() *= pattern[d];
    } else {
      merged_row.push_back(row[d]);
      merged_pattern.push_back(pattern[d]);
    }
  }
  row = std::move(merged_row);
  pattern = std::move(merged_pattern);
}

std::vector<float> Each(const std::vector<float>& values, float (*function)(float)) {
  std::vector<float> out(values.size());
  std::transform(values.begin(), values.end(), out.begin(), function);
  return out;
}

}  // namespace

// For every dimension of a row, 1 where the constant is repeated along it.
Result<Shape> ImportGraph::Pattern(const Seen& x, const Tensor& constant) const {
  if (constant.dims.size() > x.dims.size()) return Wrong("the constant has more dimensions than what it meets");
  Shape pattern;
  const std::size_t missing = x.dims.size() - constant.dims.size();
  for (std::size_t d = 0; d < x.dims.size(); ++d) {
    const std::int64_t dim = d < missing ? 1 : constant.dims[d - missing];
    if (x.dims[d] == kBatch) {
      if (dim != 1) return Wrong("the constant differs from row to row: each row is answered alone here");
      continue;
    }
    if (dim != 1 && dim != x.dims[d]) return Wrong("the constant has not the shape of what it meets");
    pattern.push_back(dim);
  }
  if (pattern.empty()) pattern.push_back(1);
  return pattern;
}

Result<Seen> ImportGraph::Affine(const Seen& x, const Shape& pattern, std::vector<float> scale_by,
                                 std::vector<float> shift_by) {
  Shape row = x.row(), small = pattern;
  const std::size_t numbers = std::max(scale_by.size(), shift_by.size());
  scale_by.resize(numbers, scale_by.empty() ? 1.0f : scale_by[0]);
  shift_by.resize(numbers, shift_by.empty() ? 0.0f : shift_by[0]);
  if (numbers == 1) {
    row = facts[static_cast<std::size_t>(x.layer)].shape;
    small = Shape(row.size(), 1);
  } else if (row.size() > 3) {
    Merge(row, small);
  }
  const int from = TRY(Shaped(x.layer, row));
  const int layer = TRY(Put({.op = Op::kAffine, .inputs = {from}, .shape = std::move(small)}));
  TRY(Keep(layer, "scale", std::move(scale_by)));
  TRY(Keep(layer, "shift", std::move(shift_by)));
  return Seen{.layer = layer, .dims = x.dims};
}

// A constant added to a layer that can have a bias is one.
Result<Seen> ImportGraph::Plus(const Seen& x, const Tensor& constant, double sign) {
  const Shape pattern = TRY(Pattern(x, constant));
  std::vector<float> values = constant.Floats();
  for (float& value : values) value = static_cast<float>(value * sign);
  Layer& layer = graph.layers[static_cast<std::size_t>(x.layer)];
  const Shape& shape = facts[static_cast<std::size_t>(x.layer)].shape;
  const bool takes = (layer.op == Op::kDense || layer.op == Op::kConvolution) && !layer.bias && ReadOnce(x.layer);
  const std::size_t channels = layer.op == Op::kDense ? shape.size() - 1 : 0;
  bool bias = takes && x.row() == shape;
  for (std::size_t d = 0; bias && d < pattern.size(); ++d) bias = d == channels || pattern[d] == 1;
  if (!bias) return Affine(x, pattern, {}, std::move(values));
  values.resize(static_cast<std::size_t>(layer.outputs), values[0]);
  layer.bias = true;
  TRY(Keep(x.layer, "bias", std::move(values)));
  return x;
}

Result<Seen> ImportGraph::Times(const Seen& x, const Tensor& constant, bool inverse) {
  const Shape pattern = TRY(Pattern(x, constant));
  std::vector<float> factors = constant.Floats();
  if (inverse) factors = Each(factors, [](float value) { return 1 / value; });
  return Affine(x, pattern, std::move(factors), {});
}

Result<Seen> ImportGraph::Sum(const std::vector<Seen>& parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<int> from;
  const Shape& shape = facts[static_cast<std::size_t>(parts[0].layer)].shape;
  for (const Seen& part : parts) {
    if (part.dims != parts[0].dims) return Wrong("its inputs are of different shapes; only equal ones are known here");
    from.push_back(TRY(Shaped(part.layer, Shape(shape))));
  }
  return Seen{.layer = TRY(Put({.op = Op::kSum, .inputs = std::move(from)})), .dims = parts[0].dims};
}

Result<void> ImportGraph::Add() {
  std::vector<Seen> parts;
  std::vector<const Tensor*> constants;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
    if (ConstantAt(i) != nullptr)
      constants.push_back(TRY(Weights(i, "constant")));
    else
      parts.push_back(TRY(In(i)));
  }
  if (node_->op == "Add" && node_->inputs.size() != 2) return Wrong("expected two inputs");
  Seen sum = TRY(Sum(parts));
  for (const Tensor* const constant : constants) sum = TRY(Plus(sum, *constant));
  Give(std::move(sum));
  return {};
}

Result<void> ImportGraph::Sub() {
  if (ConstantAt(1) != nullptr) {
    const Seen x = TRY(In(0));
    const Tensor& constant = *TRY(Weights(1, "constant"));
    Give(TakeMeans(x, 0, constant) ? x : TRY(Plus(x, constant, -1)));
    return {};
  }
  Seen x = TRY(In(1));
  const Shape ones(x.row().size(), 1);
  if (ConstantAt(0) != nullptr) {
    const Tensor& constant = *TRY(Weights(0, "constant"));
    const bool one = constant.elements() == 1 && constant.Floats()[0] == 1 && constant.dims.size() <= x.dims.size();
    x.complement = one && graph.layers[static_cast<std::size_t>(x.layer)].op == Op::kSigmoid;
    Give(x.complement ? x : TRY(Affine(x, TRY(Pattern(x, constant)), {-1}, constant.Floats())));
    return {};
  }
  const Seen first = TRY(In(0));
  Give(TRY(Sum({first, TRY(Affine(x, ones, {-1}, {}))})));
  return {};
}

Result<void> ImportGraph::Mul() {
  if (node_->inputs.size() != 2) return Wrong("expected two inputs");
  const std::size_t which = ConstantAt(0) != nullptr ? 1 : 0;
  if (ConstantAt(1 - which) != nullptr) {
    const Seen x = TRY(In(which));
    const Tensor& constant = *TRY(Weights(1 - which, "factor"));
    Give(TakeScale(x, which, constant, false) ? x : TRY(Times(x, constant, false)));
    return {};
  }
  Seen a = TRY(In(0)), b = TRY(In(1));
  const auto fits = [](const Seen& large, const Seen& small) {
    bool good = large.dims.size() == small.dims.size() && large.batch() == small.batch();
    for (std::size_t d = 0; good && d < large.dims.size(); ++d)
      good = small.dims[d] == large.dims[d] || small.dims[d] == 1;
    return good;
  };
  if (!fits(a, b)) std::swap(a, b);
  if (!fits(a, b))
    return Wrong("its inputs are of different shapes; one may have extents of 1 where the other has more");
  Shape row = a.row(), small = b.row();
  if (row == small) row = small = facts[static_cast<std::size_t>(a.layer)].shape;
  if (row.size() > 3) Merge(row, small);
  const int first = TRY(Shaped(a.layer, row)), second = TRY(Shaped(b.layer, small));
  return Give({.op = Op::kProduct, .inputs = {first, second}}, a.dims);
}

Result<void> ImportGraph::Div() {
  if (ConstantAt(1) == nullptr) return Wrong("a quotient is known here only with a constant below");
  const Seen x = TRY(In(0));
  const Tensor& constant = *TRY(Weights(1, "divisor"));
  const std::vector<float> values = constant.Floats();
  if (std::any_of(values.begin(), values.end(), [](float value) { return !(std::abs(value) > 0); }))
    return Wrong("its divisor is 0 or no number");
  Give(TakeScale(x, 0, constant, true) ? x : TRY(Times(x, constant, true)));
  return {};
}

}  // namespace freshet::model::onnx
