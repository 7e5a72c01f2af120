// Constants made of constants and of shapes: what exporters write to say where the batch goes, and weights that are
// turned or reshaped before they are used.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/onnx/import_graph.h"

namespace freshet::model::onnx {
namespace {

template <class T>
Tensor Made(Type type, Dims dims, const std::vector<T>& values) {
  auto bytes =
      std::make_shared<const std::string>(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return {.name = "", .type = type, .dims = std::move(dims), .bytes = *bytes, .own = bytes};
}

Tensor WholeNumbers(Dims dims, const Dims& values) { return Made(Type::kInt64, std::move(dims), values); }
Tensor RealNumbers(Dims dims, const std::vector<float>& values) { return Made(Type::kFloat, std::move(dims), values); }

bool Mentions(const Dims& values) { return std::find(values.begin(), values.end(), kBatch) != values.end(); }

}  // namespace

Result<void> ImportGraph::Fold() {
  const std::string& op = node_->op;
  if (op == "Constant") {
    Give(TRY(FoldConstant()));
    return {};
  }
  const Tensor* const first = ConstantAt(0);
  if (first == nullptr) return Wrong("input 0 is missing");
  if (first->bytes.empty() && first->elements() > 0)
    return Wrong(Str("its constant is of ", NameOf(first->type), ", which is not known here"));
  if (op == "Identity") {
    constants_.insert_or_assign(node_->outputs[0], first);
    return {};
  }
  Result<Tensor> (ImportGraph::*fold)() = nullptr;
  if (op == "Gather") fold = &ImportGraph::FoldGather;
  if (op == "Slice") fold = &ImportGraph::FoldSlice;
  if (op == "Concat") fold = &ImportGraph::FoldConcat;
  if (op == "Transpose") fold = &ImportGraph::FoldTranspose;
  if (op == "Cast") fold = &ImportGraph::FoldCast;
  if (op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" || op == "Flatten") fold = &ImportGraph::FoldReshape;
  if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div") fold = &ImportGraph::FoldArithmetic;
  if (fold == nullptr) return Wrong("its inputs are constants alone; expected something made of the input");
  Give(TRY((this->*fold)()));
  return {};
}

Result<Tensor> ImportGraph::FoldConstant() {
  for (const Attribute& attribute : node_->attributes) {
    if (attribute.name == "value" && attribute.t.has_value()) return *attribute.t;
    if (attribute.name == "value_int") return WholeNumbers({}, {attribute.i});
    if (attribute.name == "value_ints") return WholeNumbers({std::ssize(attribute.ints)}, attribute.ints);
    if (attribute.name == "value_float") return RealNumbers({}, {attribute.f});
    if (attribute.name == "value_floats") return RealNumbers({std::ssize(attribute.floats)}, attribute.floats);
  }
  return Wrong("only constants given as a tensor or as numbers are known here");
}

Result<void> ImportGraph::ShapeOf() {
  Dims dims;
  if (const Tensor* const constant = ConstantAt(0))
    dims = constant->dims;
  else
    dims = TRY(InSymbols(0)).dims;
  const std::int64_t rank = std::ssize(dims);
  const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t begin = place(TRY(Int("start", 0))), end = std::max(begin, place(TRY(Int("end", rank))));
  dims = Dims(dims.begin() + begin, dims.begin() + end);
  Give(WholeNumbers({std::ssize(dims)}, dims));
  return {};
}

// ConstantOfShape and Expand: one number everywhere. With the batch in the shape, only zeros, for states.
Result<void> ImportGraph::Filled() {
  const bool expand = node_->op == "Expand";
  const Tensor* const shape = ConstantAt(expand ? 1 : 0);
  if (shape == nullptr || !shape->IsWhole()) return Wrong("its shape must follow from the file and the input's shape");
  Dims dims = shape->Ints();
  if (expand && values_.contains(node_->inputs[0])) {
    const Seen x = TRY(InSymbols(0));
    const bool same = dims.size() <= x.dims.size() &&
                      std::equal(dims.rbegin(), dims.rend(), x.dims.rbegin(),
                                 [](std::int64_t asked, std::int64_t is) { return asked == 1 || asked == is; });
    return same ? Alias() : Wrong("it repeats what depends on the input, which is not known here");
  }
  std::vector<float> values = {0};
  const Attribute* const given = node_->Find("value");
  const Tensor* const from = expand ? ConstantAt(0) : given != nullptr && given->t.has_value() ? &*given->t : nullptr;
  const bool whole = from != nullptr && from->IsWhole();
  if (from != nullptr && from->IsReal()) values = from->Floats();
  if (whole)
    for (values.clear(); const std::int64_t value : from->Ints()) values.push_back(static_cast<float>(value));
  if (values.empty() || std::any_of(values.begin(), values.end(), [&](float value) { return value != values[0]; }))
    return Wrong("expected one number everywhere");
  if (Mentions(dims)) {
    if (values[0] != 0) return Wrong("only zeros can be made for each row");
    zeros_.insert(node_->outputs[0]);
    return {};
  }
  std::size_t elements = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 0 || (dim > 0 && elements > (std::size_t{1} << 31) / static_cast<std::size_t>(dim)))
      return Wrong(Str("a dimension of size ", dim));
    elements *= static_cast<std::size_t>(dim);
  }
  TRY(Spend(elements));
  if (whole)
    Give(WholeNumbers(std::move(dims), Dims(elements, static_cast<std::int64_t>(values[0]))));
  else
    Give(RealNumbers(std::move(dims), std::vector<float>(elements, values[0])));
  return {};
}

Result<Tensor> ImportGraph::Picked(const Tensor& from, const std::vector<std::size_t>& places, Dims dims) {
  TRY(Spend(places.size()));
  const std::size_t size = from.elements() == 0 ? 0 : from.bytes.size() / from.elements();
  auto bytes = std::make_shared<std::string>();
  bytes->reserve(places.size() * size);
  for (const std::size_t place : places) bytes->append(from.bytes.substr(place * size, size));
  return Tensor{.name = "", .type = from.type, .dims = std::move(dims), .bytes = *bytes, .own = bytes};
}

// Of a list, some of its numbers.
Result<Tensor> ImportGraph::FoldGather() {
  const Tensor &from = *ConstantAt(0), *const which = ConstantAt(1);
  if (from.dims.size() != 1 || which == nullptr || !which->IsWhole() || which->dims.size() > 1 ||
      TRY(Int("axis", 0)) > 0)
    return Wrong("of constants, only some numbers of a list can be taken here");
  std::vector<std::size_t> places;
  for (const std::int64_t at : which->Ints()) {
    const std::int64_t place = at < 0 ? at + from.dims[0] : at;
    if (place < 0 || place >= from.dims[0]) return Wrong(Str("place ", at, " of ", from.dims[0]));
    places.push_back(static_cast<std::size_t>(place));
  }
  return Picked(from, places, which->dims);
}

Result<Tensor> ImportGraph::FoldSlice() {
  const Tensor& from = *ConstantAt(0);
  const auto begins = TRY(Numbers("starts", 1)), ends = TRY(Numbers("ends", 2)), steps = TRY(Numbers("steps", 4));
  const std::int64_t step = steps.has_value() && steps->size() == 1 ? (*steps)[0] : 1;
  if (from.dims.size() != 1 || !begins || begins->size() != 1 || !ends || ends->size() != 1 || step < 1)
    return Wrong("of constants, only a part of a list can be taken here");
  const std::int64_t size = from.dims[0];
  const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size); };
  std::vector<std::size_t> places;
  const std::int64_t end = place((*ends)[0]);
  for (std::int64_t at = place((*begins)[0]); at<end; at = step> size ? end : at + step)
    places.push_back(static_cast<std::size_t>(at));
  return Picked(from, places, {std::ssize(places)});
}

Result<Tensor> ImportGraph::FoldConcat() {
  Dims numbers;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
    const Tensor* const part = ConstantAt(i);
    if (part == nullptr || !part->IsWhole() || part->dims.size() != 1)
      return Wrong("of constants, only lists of whole numbers can be joined here");
    const Dims more = part->Ints();
    TRY(Spend(more.size()));
    numbers.insert(numbers.end(), more.begin(), more.end());
  }
  return WholeNumbers({std::ssize(numbers)}, numbers);
}

Result<Tensor> ImportGraph::FoldTranspose() {
  const Tensor& from = *ConstantAt(0);
  const std::size_t rank = from.dims.size();
  Dims order(rank);
  std::iota(order.rbegin(), order.rend(), 0);
  order = TRY(Ints("perm", order));
  Dims sorted = order, dims;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t d = 0; d < rank; ++d)
    if (sorted[d] != static_cast<std::int64_t>(d)) return Wrong("perm must name each dimension once");
  std::vector<std::size_t> strides(rank, 1), at(rank, 0);
  for (std::size_t d = rank; d-- > 1;) strides[d - 1] = strides[d] * static_cast<std::size_t>(from.dims[d]);
  for (const std::int64_t d : order) dims.push_back(from.dims[static_cast<std::size_t>(d)]);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < from.elements(); ++i) {
    std::size_t place = 0;
    for (std::size_t d = 0; d < rank; ++d) place += at[d] * strides[static_cast<std::size_t>(order[d])];
    places.push_back(place);
    for (std::size_t d = rank; d-- > 0 && ++at[d] == static_cast<std::size_t>(dims[d]);) at[d] = 0;
  }
  return Picked(from, places, std::move(dims));
}

Result<Tensor> ImportGraph::FoldCast() {
  const Tensor& from = *ConstantAt(0);
  const std::int64_t to = TRY(Int("to", 0));
  TRY(Spend(from.elements()));
  if (to == static_cast<std::int64_t>(Type::kInt64) || to == static_cast<std::int64_t>(Type::kInt32)) {
    if (from.IsWhole()) return WholeNumbers(from.dims, from.Ints());
    Dims numbers;
    for (const float value : from.Floats()) {
      if (!(std::abs(value) < 1e15f)) return Wrong("a constant is too large to be a whole number");
      numbers.push_back(static_cast<std::int64_t>(value));
    }
    return WholeNumbers(from.dims, numbers);
  }
  if (to != static_cast<std::int64_t>(Type::kFloat)) return Wrong(Str("to element type ", to, " is not known here"));
  if (from.IsReal()) return RealNumbers(from.dims, from.Floats());
  const Dims numbers = from.Ints();
  if (Mentions(numbers)) return Wrong("it computes with the number of rows, which is not known");
  return RealNumbers(from.dims, std::vector<float>(numbers.begin(), numbers.end()));
}

Result<Tensor> ImportGraph::FoldReshape() {
  Tensor tensor = *ConstantAt(0);
  const auto elements = static_cast<std::int64_t>(tensor.elements());
  Dims dims;
  if (node_->op == "Flatten") {
    const std::int64_t axis = TRY(Int("axis", 1));
    if (axis < 0 || axis > std::ssize(tensor.dims)) return Wrong(Str("axis ", axis));
    dims = {1, 1};
    for (std::int64_t d = 0; d < std::ssize(tensor.dims); ++d)
      dims[d < axis ? 0 : 1] *= tensor.dims[static_cast<std::size_t>(d)];
  } else if (node_->op == "Reshape") {
    dims = TRY(Numbers("shape", 1)).value_or(Dims{});
    std::int64_t product = 1;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == 0 && d < tensor.dims.size()) dims[d] = tensor.dims[d];
      if (dims[d] < -1 || dims[d] > network::kMostElements) return Wrong(Str("a dimension of size ", dims[d]));
      if (dims[d] > 0) product = product > network::kMostElements / dims[d] ? elements + 1 : product * dims[d];
    }
    const auto open = std::find(dims.begin(), dims.end(), -1);
    if (open != dims.end()) *open = product > 0 ? elements / product : 0;
  } else {
    const Dims axes = TRY(Numbers("axes", 1)).value_or(Dims{});
    const bool takes = node_->op == "Squeeze";
    if (axes.size() > 8) return Wrong("too many axes");
    const std::int64_t rank = std::ssize(tensor.dims) + (takes ? 0 : std::ssize(axes));
    std::vector<bool> marked(static_cast<std::size_t>(rank));
    for (const std::int64_t axis : axes) {
      const std::int64_t at = axis < 0 ? axis + rank : axis;
      if (at < 0 || at >= rank) return Wrong(Str("axis ", axis, " of ", rank, " dimensions"));
      marked[static_cast<std::size_t>(at)] = true;
    }
    std::size_t from = 0;
    for (std::size_t d = 0; d < marked.size(); ++d) {
      const bool one = takes && axes.empty() ? tensor.dims[d] == 1 : marked[d];
      if (takes && !one) dims.push_back(tensor.dims[d]);
      if (!takes) dims.push_back(one || from >= tensor.dims.size() ? 1 : tensor.dims[from++]);
    }
  }
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) product = dim > 0 && product > network::kMostElements / dim ? -1 : product * dim;
  if (product != elements || dims.size() > 8) return Wrong("the constant has not the numbers for its new shape");
  tensor.dims = std::move(dims);
  return tensor;
}

// Of numbers side by side, or of one with many.
Result<Tensor> ImportGraph::FoldArithmetic() {
  const Tensor &a = *ConstantAt(0), *const b = ConstantAt(1);
  if (b == nullptr || node_->inputs.size() != 2) return Wrong("expected two inputs");
  const std::size_t left = a.elements(), right = b->elements(), count = std::max(left, right);
  if (left == 0 || right == 0 || (left != 1 && right != 1 && a.dims != b->dims))
    return Wrong("constants of different shapes cannot be computed with here");
  TRY(Spend(count));
  const Dims& dims = left > right || (left == right && a.dims.size() >= b->dims.size()) ? a.dims : b->dims;
  const char op = node_->op[0] == 'S' ? '-' : node_->op[0] == 'A' ? '+' : node_->op[0] == 'M' ? '*' : '/';
  if (a.IsWhole() && b->IsWhole()) {
    const Dims x = a.Ints(), y = b->Ints();
    if (Mentions(x) || Mentions(y)) return Wrong("it computes with the number of rows, which is not known");
    Dims out;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t p = x[left == 1 ? 0 : i], q = y[right == 1 ? 0 : i];
      constexpr std::int64_t kMost = std::int64_t{1} << 31;
      if (p > kMost || p < -kMost || q > kMost || q < -kMost || (op == '/' && q == 0))
        return Wrong("numbers out of range");
      out.push_back(op == '+' ? p + q : op == '-' ? p - q : op == '*' ? p * q : p / q);
    }
    return WholeNumbers(dims, out);
  }
  if (!a.IsReal() || !b->IsReal()) return Wrong("its constants are of different types");
  const std::vector<float> x = a.Floats(), y = b->Floats();
  std::vector<float> out;
  for (std::size_t i = 0; i < count; ++i) {
    const float p = x[left == 1 ? 0 : i], q = y[right == 1 ? 0 : i];
    out.push_back(op == '+' ? p + q : op == '-' ? p - q : op == '*' ? p * q : p / q);
  }
  return RealNumbers(dims, out);
}

}  // namespace freshet::model::onnx
