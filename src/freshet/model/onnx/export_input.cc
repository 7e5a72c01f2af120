// What an input description does to numbers, as the first steps of a graph. Constants have no dimension for the batch:
// not every program can repeat one along it.

#include <algorithm>

#include "model/onnx/export_kinds.h"

namespace freshet::model::onnx {
namespace {

using Dims = std::vector<std::int64_t>;

// What has been learned of the columns, in the order of Moments::Save.
struct Columns {
  std::vector<float> shift, scale;
  bool missing = false;  // some values were, so that they can be expected
};

Columns ColumnsOf(const data::Moments& moments) {
  const std::vector<double> saved = moments.Save();
  const std::size_t count = moments.columns();
  const auto part = [&](std::size_t k) { return saved.begin() + 1 + static_cast<std::ptrdiff_t>(k * count); };
  return {{part(3), part(4)}, {part(4), part(5)}, std::any_of(part(0), part(1), [&](double seen) {
            return seen < moments.rows();
          })};
}

// (x - mean) / deviation, held within ten deviations; a missing value becomes the mean.
std::string Standardised(Builder& builder, const data::Moments& moments, const std::string& raw, const Dims& dims) {
  const Columns columns = ColumnsOf(moments);
  const std::string centred = builder.Node("Sub", {raw, builder.Floats("input.mean", dims, columns.shift)});
  const std::string scaled = builder.Node("Mul", {centred, builder.Floats("input.scale", dims, columns.scale)});
  const std::string held =
      builder.Node("Clip", {scaled, builder.Scalar("input.least", -10), builder.Scalar("input.most", 10)});
  if (!columns.missing) return held;
  return builder.Node("Where", {builder.Node("IsNaN", {raw}), builder.Scalar("input.missing", 0), held});
}

// The middle of an image, less the means, over the deviations.
std::string Shown(Builder& builder, const data::View& view, const std::string& image, const Dims& shape) {
  std::string value = image;
  if (!view.means.empty()) {
    const bool by_place = view.means.size() > static_cast<std::size_t>(shape[0]);
    const Dims dims = by_place ? shape : Dims{shape[0], 1, 1};
    value = builder.Node("Sub", {value, builder.Floats("input.means", dims, view.means)});
  }
  if (!view.deviations.empty()) {
    std::vector<float> inverses;
    for (const float deviation : view.deviations) inverses.push_back(1 / deviation);
    value = builder.Node("Mul", {value, builder.Floats("input.inverses", {shape[0], 1, 1}, std::move(inverses))});
  }
  if (view.crop == 0) return value;
  const auto side = static_cast<std::int64_t>(view.crop);
  const std::int64_t top = (shape[1] - side) / 2, left = (shape[2] - side) / 2;
  return builder.Node(
      "Slice", {value, builder.Ints("input.begin", {top, left}), builder.Ints("input.end", {top + side, left + side}),
                builder.Ints("input.axes", {2, 3})});
}

}  // namespace

Result<std::string> AddInput(Builder& builder, const data::Description& description, const Dims& dims) {
  const data::View& view = description.view;
  const Dims whole = view.any() ? Dims(description.shape.begin(), description.shape.end()) : dims;
  std::string value = builder.Input("input", Type::kFloat, whole);
  if (description.scale != 1)
    value = builder.Node("Mul", {value, builder.Scalar("input.factor", static_cast<float>(description.scale))});
  if (view.any()) {
    if (whole.size() != 3)
      return Error{Code::kInvalid, "the model was trained on parts of images, but its rows are no images"};
    value = Shown(builder, view, value, whole);
    return dims.size() == 3 ? value : builder.Node("Flatten", {value}, {IntAttribute("axis", 1)});
  }
  if (!description.standardise) return value;
  const auto numeric = static_cast<std::int64_t>(description.moments.columns());
  std::int64_t width = 1;
  for (const std::int64_t dim : dims) width *= dim;
  if (numeric == width) return Standardised(builder, description.moments, value, dims);
  if (dims.size() != 1 || numeric > width)
    return Error{Code::kInvalid, Str("the model standardises ", numeric, " columns, but reads ", width,
                                     " numbers; train it again on this data")};
  const std::vector<std::string> parts =
      builder.Nodes("Split", {value, builder.Ints("input.parts", {numeric, width - numeric})}, {"numbers", "others"},
                    {IntAttribute("axis", 1)});
  return builder.Node("Concat", {Standardised(builder, description.moments, parts[0], {numeric}), parts[1]},
                      {IntAttribute("axis", 1)});
}

}  // namespace freshet::model::onnx
