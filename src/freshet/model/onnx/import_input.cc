// Steps at the very beginning of a graph that an input description can do: a scale, means and deviations, the middle of
// an image. They must come in this order, as the description does them.

#include <cmath>

#include "model/onnx/import_graph.h"

namespace freshet::model::onnx {

using network::Shape;

namespace {

// One number for each channel, or for each place, of images: [1, C, 1, 1] or [C, 1, 1], and with H and W.
bool OfImage(const Tensor& tensor, const Shape& shape, bool by_place) {
  std::vector<std::int64_t> dims = tensor.dims;
  if (dims.size() == 4 && dims[0] == 1) dims.erase(dims.begin());
  return shape.size() == 3 && dims == (by_place ? shape : Shape{shape[0], 1, 1});
}

}  // namespace

// The input, if the node reads all of it and nothing else does.
Result<void> ImportGraph::CheckPreparation(std::size_t which) {
  if (TRY(In(which)) != 0 || readers_[node_->inputs[which]] != 1 || view.crop > 0)
    return Wrong("known here only as a preparation of the input, before anything else reads it");
  return {};
}

Result<void> ImportGraph::Mul() {
  const std::size_t which = ConstantAt(0) != nullptr ? 1 : 0;
  const Tensor& tensor = *TRY(Weights(1 - which, "factor"));
  TRY(CheckPreparation(which));
  const std::vector<float> factors = tensor.Floats();
  for (const float factor : factors)
    if (!std::isfinite(factor) || factor == 0) return Wrong("a factor is 0 or no number");
  if (tensor.elements() == 1 && scale == 1 && view.means.empty()) {
    scale = Plainly(factors[0]);
    return Alias();
  }
  if (!OfImage(tensor, graph.input, false) || !view.deviations.empty())
    return Wrong("the input can be multiplied by one number, then by one for each channel of an image");
  if (view.means.empty()) view.means.assign(factors.size(), 0);
  for (const float factor : factors) view.deviations.push_back(1 / factor);
  return Alias();
}

Result<void> ImportGraph::Sub() {
  const Tensor& means = *TRY(Weights(1, "means"));
  TRY(CheckPreparation(0));
  const bool known = OfImage(means, graph.input, false) || OfImage(means, graph.input, true);
  if (!known || !view.means.empty())
    return Wrong("from the input, only one mean for each channel or each place of an image can be subtracted, once");
  view.means = means.Floats();
  return Alias();
}

// The middle square of an image.
Result<void> ImportGraph::Slice() {
  TRY(CheckPreparation(0));
  std::vector<std::int64_t> numbers[3];  // begin, end, axes
  for (std::size_t i = 0; i < 3; ++i) {
    const Tensor* const tensor = ConstantAt(i + 1);
    if (tensor == nullptr || tensor->type != Type::kInt64 || tensor->elements() != 2)
      return Wrong("expected two constants each as begin, end and axes");
    numbers[i] = tensor->Ints();
  }
  const Shape& shape = graph.input;
  const std::int64_t side = numbers[1][0] - numbers[0][0];
  const bool middle = shape.size() == 3 && numbers[2] == std::vector<std::int64_t>{2, 3} && side >= 1 &&
                      side <= shape[1] && side <= shape[2] && numbers[0][0] == (shape[1] - side) / 2 &&
                      numbers[0][1] == (shape[2] - side) / 2 && numbers[1][1] - numbers[0][1] == side && !Has(4);
  if (!middle) return Wrong("of the input, only the middle square of an image can be taken");
  view.crop = static_cast<std::uint64_t>(side);
  graph.input = {shape[0], side, side};
  return Alias();
}

}  // namespace freshet::model::onnx
