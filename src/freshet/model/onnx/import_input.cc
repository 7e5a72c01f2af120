// Steps at the very beginning of a graph that an input description can do: a scale, means and deviations, the middle of
// an image. They must come in this order, as the description does them; what comes otherwise becomes layers.

#include <algorithm>
#include <cmath>

#include "model/onnx/import_graph.h"

namespace freshet::model::onnx {

using network::Shape;

namespace {

// One number for each channel, or for each place, of images: [1, C, 1, 1] or [C, 1, 1], and with H and W.
bool OfImage(const Tensor& tensor, const Shape& shape, bool by_place) {
  Dims dims = tensor.dims;
  if (dims.size() == 4 && dims[0] == 1) dims.erase(dims.begin());
  return shape.size() == 3 && dims == (by_place ? shape : Shape{shape[0], 1, 1});
}

}  // namespace

// Does the node read all of the input, and nothing else does?
bool ImportGraph::Prepares(const Seen& x, std::size_t input) const {
  const auto readers = readers_.find(node_->inputs[input]);
  return x.layer == 0 && x.batch() == 0 && ReadOnce(0) && view.crop == 0 && readers != readers_.end() &&
         x.row() == graph.input && readers->second == 1;
}

bool ImportGraph::TakeScale(const Seen& x, std::size_t input, const Tensor& factor, bool inverse) {
  if (!Prepares(x, input)) return false;
  std::vector<float> factors = factor.Floats();
  for (float& value : factors) {
    if (!std::isfinite(value) || value == 0) return false;
    if (inverse) value = 1 / value;
  }
  if (factor.elements() == 1 && scale == 1 && view.means.empty()) {
    const double one = Plainly(factor.Floats()[0]);
    scale = inverse ? 1 / one : one;
    return true;
  }
  if (!OfImage(factor, graph.input, false) || !view.deviations.empty()) return false;
  if (view.means.empty()) view.means.assign(factors.size(), 0);
  for (const float value : factors) view.deviations.push_back(1 / value);
  return true;
}

bool ImportGraph::TakeMeans(const Seen& x, std::size_t input, const Tensor& means) {
  const bool known = OfImage(means, graph.input, false) || OfImage(means, graph.input, true);
  if (!Prepares(x, input) || !known || !view.means.empty()) return false;
  const std::vector<float> values = means.Floats();
  if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) return false;
  view.means = values;
  return true;
}

// The middle square of an image.
bool ImportGraph::TakeCrop(const Seen& x) {
  if (!Prepares(x, 0)) return false;
  Dims numbers[3];  // begin, end, axes
  for (std::size_t i = 0; i < 3; ++i) {
    const Tensor* const tensor = ConstantAt(i + 1);
    if (tensor == nullptr || !tensor->IsWhole() || tensor->elements() != 2) return false;
    numbers[i] = tensor->Ints();
  }
  const Shape& shape = graph.input;
  const std::int64_t side = numbers[1][0] - numbers[0][0];
  const bool middle = shape.size() == 3 && numbers[2] == Dims{2, 3} && side >= 1 && side <= shape[1] &&
                      side <= shape[2] && numbers[0][0] == (shape[1] - side) / 2 &&
                      numbers[0][1] == (shape[2] - side) / 2 && numbers[1][1] - numbers[0][1] == side && !Has(4);
  if (!middle) return false;
  view.crop = static_cast<std::uint64_t>(side);
  graph.input = {shape[0], side, side};
  facts[0].shape = graph.input;
  return true;
}

}  // namespace freshet::model::onnx
