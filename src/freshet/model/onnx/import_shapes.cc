// Operators that arrange values. What only renames dimensions, or moves the batch among them, adds no layer.

#include <algorithm>
#include <numeric>

#include "model/onnx/import_graph.h"

namespace freshet::model::onnx {

using network::Layer;
using network::Op;
using network::Shape;

namespace {

std::int64_t Product(const Dims& dims, std::size_t first, std::size_t last) {
  std::int64_t product = 1;
  for (std::size_t d = first; d < last; ++d)
    if (dims[d] != kBatch) product *= dims[d];
  return product;
}

}  // namespace

// Another name for the same thing.
Result<void> ImportGraph::Alias() {
  Give(TRY(InSymbols(0)));
  return {};
}

Result<void> ImportGraph::Cast() {
  Seen x = TRY(InSymbols(0));
  const std::int64_t to = TRY(Int("to", 0));
  const auto is = [&](Type type) { return to == static_cast<std::int64_t>(type); };
  if (is(Type::kInt64) || is(Type::kInt32)) {
    if (x.layer != 0) return Wrong("only symbols of the input can be made whole numbers here");
    x.symbols = true;
  } else if (is(Type::kFloat) || is(Type::kDouble)) {
    if (x.symbols && x.layer != 0) return Wrong("only symbols of the input are known here");
    x.symbols = false;
  } else {
    return Wrong(Str("to element type ", to, "; expected FLOAT (1), or INT64 (7) for an embedding"));
  }
  Give(std::move(x));
  return {};
}

// The same numbers in these dimensions. A row that becomes flat is a layer, so that a network reads as it was written.
Result<void> ImportGraph::View(const Seen& x, Dims dims) {
  Seen seen{.layer = x.layer, .dims = std::move(dims), .symbols = x.symbols};
  const auto before = x.batch(), after = seen.batch();
  if (before.has_value() != after.has_value() ||
      (before.has_value() && Product(x.dims, 0, *before) != Product(seen.dims, 0, *after)) ||
      Product(x.dims, 0, x.dims.size()) != Product(seen.dims, 0, seen.dims.size()))
    return Wrong("it mixes rows: each row is answered alone here");
  if (seen.row().size() == 1 && !x.symbols) {
    const Shape& shape = facts[static_cast<std::size_t>(x.layer)].shape;
    if (shape != seen.row()) {
      seen.layer = TRY(Put({.op = Op::kFlatten, .inputs = {x.layer}}));
      shaped_.emplace(std::pair(x.layer, seen.row()), seen.layer);
    }
  }
  Give(std::move(seen));
  return {};
}

Result<void> ImportGraph::Flatten() {
  const Seen x = TRY(In());
  const auto rank = static_cast<std::int64_t>(x.dims.size());
  const std::int64_t axis = TRY(Int("axis", 1)), from_front = axis < 0 ? axis + rank : axis;
  if (from_front < 0 || from_front > rank) return Wrong(Str("axis ", axis, " of ", rank, " dimensions"));
  const auto at = static_cast<std::size_t>(from_front);
  Dims dims = {Product(x.dims, 0, at), Product(x.dims, at, x.dims.size())};
  if (const auto batch = x.batch(); batch.has_value()) {
    std::int64_t& joined = dims[*batch < at ? 0 : 1];
    if (joined != 1) return Wrong(Str("axis ", axis, " joins the batch with others: each row is answered alone here"));
    joined = kBatch;
  }
  return View(x, std::move(dims));
}

// Where the batch goes may be said by 0 (as it was), by what Shape gave, by -1 when all else is fixed, or by the number
// that the file has for it.
Result<void> ImportGraph::Reshape() {
  const Seen x = TRY(In());
  const auto asked = TRY(Numbers("shape", 1));
  if (!asked.has_value() || asked->empty() || asked->size() > 8) return Wrong("expected a constant shape of 1 to 8");
  Dims dims = *asked;
  if (TRY(Int("allowzero", 0)) == 0)
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (dims[d] == 0) {
        if (d >= x.dims.size()) return Wrong("a 0 in its shape has no counterpart");
        dims[d] = x.dims[d];
      }
  for (const std::int64_t dim : dims)
    if (dim != kBatch && (dim < -1 || dim == 0 || dim > network::kMostElements))
      return Wrong(Str("a dimension of size ", dim));
  const auto open = std::find(dims.begin(), dims.end(), -1);
  const bool batched = x.batch().has_value(), said = std::find(dims.begin(), dims.end(), kBatch) != dims.end();
  const std::int64_t elements = facts[static_cast<std::size_t>(x.layer)].elements();
  std::int64_t product = 1;
  for (const std::int64_t dim : dims)
    if (dim != kBatch && dim != -1) {
      if (product > network::kMostElements / dim) return Wrong("its shape is too large");
      product *= dim;
    }
  if (batched && !said) {
    const auto fixed = std::find(dims.begin(), dims.end(), fixed_batch_);
    if (open != dims.end() && product == elements) {
      *open = kBatch;
    } else if (fixed != dims.end() && fixed_batch_ > 0) {
      *fixed = kBatch;
      product /= fixed_batch_;
    }
  }
  if (open != dims.end() && *open == -1) {
    if (elements % product != 0) return Wrong(Str("its input has ", elements, " numbers a row, which do not fit"));
    *open = elements / product;
  }
  return View(x, std::move(dims));
}

Result<void> ImportGraph::Squeeze() {
  const Seen x = TRY(InSymbols(0));
  const auto axes = TRY(Numbers("axes", 1));
  std::vector<bool> goes(x.dims.size());
  if (axes.has_value())
    for (const std::int64_t axis : *axes) {
      const std::int64_t at = axis < 0 ? axis + std::ssize(x.dims) : axis;
      if (at < 0 || at >= std::ssize(x.dims) || x.dims[static_cast<std::size_t>(at)] != 1)
        return Wrong(Str("axis ", axis, " is not of size 1"));
      goes[static_cast<std::size_t>(at)] = true;
    }
  else
    for (std::size_t d = 0; d < x.dims.size(); ++d) goes[d] = x.dims[d] == 1;
  Seen seen{.layer = x.layer, .symbols = x.symbols};
  for (std::size_t d = 0; d < x.dims.size(); ++d)
    if (!goes[d]) seen.dims.push_back(x.dims[d]);
  Give(std::move(seen));
  return {};
}

Result<void> ImportGraph::Unsqueeze() {
  const Seen x = TRY(InSymbols(0));
  const auto axes = TRY(Numbers("axes", 1));
  if (!axes.has_value() || axes->size() > 8) return Wrong("its axes are missing, or too many");
  const std::size_t rank = x.dims.size() + axes->size();
  std::vector<bool> comes(rank);
  for (const std::int64_t axis : *axes) {
    const std::int64_t at = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
    if (at < 0 || at >= static_cast<std::int64_t>(rank) || comes[static_cast<std::size_t>(at)])
      return Wrong(Str("axis ", axis, " of ", rank, " dimensions"));
    comes[static_cast<std::size_t>(at)] = true;
  }
  Seen seen{.layer = x.layer, .symbols = x.symbols};
  for (std::size_t d = 0, from = 0; d < rank; ++d) seen.dims.push_back(comes[d] ? 1 : x.dims[from++]);
  Give(std::move(seen));
  return {};
}

Result<void> ImportGraph::Transpose() {
  const Seen x = TRY(In());
  Dims usual(x.dims.size());
  std::iota(usual.rbegin(), usual.rend(), 0);
  const Dims order = TRY(Ints("perm", usual));
  Dims sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::reverse(sorted.begin(), sorted.end());
  if (sorted != usual) return Wrong("perm must name each dimension once");
  Seen seen{.layer = x.layer};
  Shape of_row;  // the order of what is not the batch
  const auto batch = x.batch();
  for (const std::int64_t d : order) {
    const auto at = static_cast<std::size_t>(d);
    seen.dims.push_back(x.dims[at]);
    if (batch != at) of_row.push_back(batch.has_value() && *batch < at ? d - 1 : d);
  }
  if (!of_row.empty()) seen.layer = TRY(Turned(x.layer, x.row(), of_row));
  Give(std::move(seen));
  return {};
}

// Along any dimension but the batch; ours is along the first extent, so that others are brought there and back.
Result<void> ImportGraph::Concat() {
  if (node_->inputs.empty()) return Wrong("it has no inputs");
  if (node_->inputs.size() == 2 && values_.contains(node_->inputs[0]) && values_.contains(node_->inputs[1])) {
    // Both probabilities of two classes: the second says it all.
    const Seen &no = values_.find(node_->inputs[0])->second, &yes = values_.find(node_->inputs[1])->second;
    if (no.complement && !yes.complement && no.layer == yes.layer && yes.row() == Shape{1}) {
      Give(Seen(yes));
      return {};
    }
  }
  std::vector<Seen> parts;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) parts.push_back(TRY(In(i)));
  const Shape row = parts[0].row();
  const std::size_t axis = TRY(Axis(parts[0], TRY(Int("axis", 1))));
  std::int64_t before = 1, sum = 0;
  for (std::size_t d = 0; d < axis; ++d) before *= row[d];
  std::vector<int> from;
  for (const Seen& part : parts) {
    Shape here = part.row();
    if (part.batch() != parts[0].batch() || here.size() != row.size())
      return Wrong("its inputs are of different shapes");
    for (std::size_t d = 0; d < row.size(); ++d)
      if (d != axis && here[d] != row[d]) return Wrong("its inputs are of different shapes");
    std::int64_t after = 1;
    for (std::size_t d = axis + 1; d < here.size(); ++d) after *= here[d];
    sum += here[axis];
    if (before > 1) {
      from.push_back(
          TRY(Shaped(TRY(Turned(part.layer, {before, here[axis], after}, {1, 0, 2})), {here[axis], before * after})));
      continue;
    }
    here.erase(here.begin(), here.begin() + static_cast<std::ptrdiff_t>(axis));
    if (here.size() > 3) here = {here[0], after};
    from.push_back(TRY(Shaped(part.layer, here)));
  }
  int layer = TRY(Put({.op = Op::kConcat, .inputs = std::move(from)}));
  Seen seen{.dims = parts[0].dims};
  std::int64_t after = 1;
  for (std::size_t d = axis + 1; d < row.size(); ++d) after *= row[d];
  if (before > 1) layer = TRY(Turned(layer, {sum, before, after}, {1, 0, 2}));
  seen.layer = layer;
  const auto batch = seen.batch();
  seen.dims[axis + (batch.has_value() && *batch <= axis ? 1 : 0)] = sum;
  Give(std::move(seen));
  return {};
}

// Steps begin … end of what a recurrent layer gave: the last one alone is what the layer can give itself.
Result<bool> ImportGraph::TakeLastStep(const Seen& x, std::size_t axis, std::int64_t begin, std::int64_t end,
                                       bool keep) {
  Layer& layer = graph.layers[static_cast<std::size_t>(x.layer)];
  const bool recurrent = (layer.op == Op::kLstm || layer.op == Op::kGru) && layer.sequence && ReadOnce(x.layer);
  const std::int64_t steps = x.dims[axis];
  const Shape row = x.row();
  if (!recurrent || steps != facts[static_cast<std::size_t>(x.layer)].shape[0] || steps == kBatch || end != steps ||
      begin != steps - 1)
    return false;
  const std::size_t at = TRY(Axis(x, static_cast<std::int64_t>(axis)));
  if (std::any_of(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(at), [](std::int64_t d) { return d != 1; }))
    return false;
  layer.sequence = false;
  facts[static_cast<std::size_t>(x.layer)].shape = {layer.outputs};
  Seen seen{.layer = x.layer, .dims = x.dims};
  seen.dims[axis] = 1;
  if (!keep) seen.dims.erase(seen.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  Give(std::move(seen));
  return true;
}

// The middle of an image that is the input, all of something, or the last step of a recurrent layer.
Result<void> ImportGraph::Slice() {
  const Seen x = TRY(In());
  if (TakeCrop(x)) {
    Give(Seen{.layer = 0, .dims = {kBatch, graph.input[0], graph.input[1], graph.input[2]}});
    return {};
  }
  const auto begins = TRY(Numbers("starts", 1)), ends = TRY(Numbers("ends", 2));
  const auto axes = TRY(Numbers("axes", 3)), steps = TRY(Numbers("steps", 4));
  if (begins.has_value() && ends.has_value() && begins->size() == 1 && ends->size() == 1 &&
      (!axes.has_value() || axes->size() == 1) && (!steps.has_value() || *steps == Dims{1})) {
    const std::int64_t axis = axes.has_value() ? (*axes)[0] : 0;
    const std::int64_t from_front = axis < 0 ? axis + std::ssize(x.dims) : axis;
    if (from_front < 0 || from_front >= std::ssize(x.dims)) return Wrong(Str("axis ", axis));
    const auto at = static_cast<std::size_t>(from_front);
    const std::int64_t size = x.dims[at] == kBatch ? std::numeric_limits<std::int64_t>::max() : x.dims[at];
    const auto place = [&](std::int64_t number) {
      return std::clamp<std::int64_t>(number < 0 && x.dims[at] != kBatch ? number + size : number, 0, size);
    };
    const std::int64_t begin = place((*begins)[0]), end = place((*ends)[0]);
    if (begin == 0 && end == size) return Alias();
    if (x.dims[at] != kBatch && TRY(TakeLastStep(x, at, begin, end, true))) return {};
  }
  return Wrong("known here as the middle square of an image that is the input, and as the last step of an LSTM or GRU");
}

// A row of a table for every symbol: an embedding. Or the last step of a recurrent layer.
Result<void> ImportGraph::Gather() {
  const std::int64_t axis = TRY(Int("axis", 0));
  if (ConstantAt(0) == nullptr) {
    const Seen x = TRY(In());
    const Tensor* const which = ConstantAt(1);
    const std::int64_t from_front = axis < 0 ? axis + std::ssize(x.dims) : axis;
    if (which != nullptr && which->IsWhole() && which->elements() == 1 && from_front >= 0 &&
        from_front < std::ssize(x.dims) && x.dims[static_cast<std::size_t>(from_front)] != kBatch &&
        which->dims.size() <= 1) {
      const auto at = static_cast<std::size_t>(from_front);
      const std::int64_t place = which->Ints()[0] < 0 ? which->Ints()[0] + x.dims[at] : which->Ints()[0];
      if (TRY(TakeLastStep(x, at, place, place + 1, !which->dims.empty()))) return {};
    }
    return Wrong("of what depends on the input, only the last step of an LSTM or GRU can be taken here");
  }
  const Tensor& table = *TRY(Weights(0, "table"));
  const Seen x = TRY(InSymbols(1));
  if (table.dims.size() != 2 || axis != 0 || !x.symbols || x.layer != 0)
    return Wrong("known here as an embedding: rows of a constant table, by whole numbers that are the input");
  const std::int64_t outputs = table.dims[1];
  const int from = TRY(Shaped(x.layer, {facts[static_cast<std::size_t>(x.layer)].elements()}));
  const int layer = TRY(Put({.op = Op::kEmbedding, .inputs = {from}, .outputs = outputs, .vocabulary = table.dims[0]}));
  TRY(Keep(layer, "weight", table.Floats()));
  Seen seen{.layer = layer, .dims = x.dims};
  seen.dims.push_back(outputs);
  Give(std::move(seen));
  return {};
}

}  // namespace freshet::model::onnx
