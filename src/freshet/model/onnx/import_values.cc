// Values on their way through the graph: constants, and layers as the file sees them.

#include <algorithm>
#include <numeric>

#include "model/onnx/import_graph.h"

namespace freshet::model::onnx {

using network::Layer;
using network::Op;
using network::Shape;

std::optional<std::size_t> Seen::batch() const {
  const auto at = std::find(dims.begin(), dims.end(), kBatch);
  if (at == dims.end()) return std::nullopt;
  return static_cast<std::size_t>(at - dims.begin());
}

Shape Seen::row() const {
  Shape shape;
  for (const std::int64_t dim : dims)
    if (dim != kBatch) shape.push_back(dim);
  if (shape.empty()) shape.push_back(1);
  return shape;
}

Result<Seen> ImportGraph::InSymbols(std::size_t i) {
  if (!Has(i)) return Wrong(Str("input ", i, " is missing"));
  const auto found = values_.find(node_->inputs[i]);
  if (found == values_.end())
    return Wrong(
        Str("input ", i, ", ", Quoted(node_->inputs[i]), ", is a constant; expected something made of the input"));
  if (!found->second.complement) return found->second;
  // Somebody wants 1 - x after all.
  Seen& seen = found->second;
  const Seen x{.layer = seen.layer, .dims = seen.dims};
  seen = TRY(Affine(x, Shape(x.row().size(), 1), {-1}, {1}));
  return seen;
}

Result<Seen> ImportGraph::In(std::size_t i) {
  Seen seen = TRY(InSymbols(i));
  if (seen.symbols) return Wrong("it reads whole numbers; only Gather, as an embedding, can do that here");
  return seen;
}

const Tensor* ImportGraph::ConstantAt(std::size_t i) const {
  if (!Has(i)) return nullptr;
  const auto found = constants_.find(node_->inputs[i]);
  return found == constants_.end() ? nullptr : found->second;
}

Result<const Tensor*> ImportGraph::Weights(std::size_t i, std::string_view what) const {
  const Tensor* const tensor = ConstantAt(i);
  if (tensor == nullptr) return Wrong(Str("its ", what, ", input ", i, ", must be a constant in the file"));
  if (tensor->outside.has_value())
    return Wrong(Str("its ", what, " lies in the file ", Quoted(tensor->outside->file), ", which was not read"));
  if (!tensor->IsReal()) return Wrong(Str("its ", what, " is of ", NameOf(tensor->type), "; expected FLOAT"));
  if (tensor->bytes.empty()) return Wrong(Str("its ", what, " is empty"));
  return tensor;
}

Result<std::optional<Dims>> ImportGraph::Numbers(std::string_view attribute, std::size_t input) const {
  if (const Attribute* const found = node_->Find(attribute)) {
    if (found->kind != Attribute::Kind::kInts) return Wrong(Str("attribute ", attribute, " is no list"));
    return std::optional<Dims>(found->ints);
  }
  if (!Has(input)) return std::optional<Dims>();
  const Tensor* const tensor = ConstantAt(input);
  if (tensor == nullptr || !tensor->IsWhole())
    return Wrong(Str("its ", attribute, ", input ", input,
                     ", must be whole numbers that the file and the shape of the ", "input settle"));
  return std::optional<Dims>(tensor->Ints());
}

// The node's name, or its output's, in letters that every text can hold.
std::string ImportGraph::NewName(std::string_view what) {
  constexpr std::size_t kMostName = 100;
  std::string name = (node_->name.empty() ? node_->outputs[0] : node_->name).substr(0, kMostName);
  for (std::size_t i = 1; name.empty() && i < node_->outputs.size(); ++i) name = node_->outputs[i].substr(0, kMostName);
  for (char& c : name) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!plain && std::string_view("_-./:").find(c) == std::string_view::npos) c = '_';
  }
  if (!what.empty()) name += Str("/", what);
  std::string free = name;
  for (int number = 2; !names_.insert(free).second; ++number) free = Str(name, "_", number);
  return free;
}

Result<int> ImportGraph::Put(Layer layer, std::string_view what) {
  if (graph.layers.size() >= network::kMostLayers)
    return Wrong(Str("more than ", network::kMostLayers, " layers would be needed"));
  layer.name = NewName(what);
  for (const int input : layer.inputs) ++uses_[static_cast<std::size_t>(input)];
  const int number = graph.Add(std::move(layer));
  auto fact = network::InferNext(graph, facts);
  if (!fact.ok()) return Wrong(fact.error().text);  // a graph that makes no sense is the file's fault
  facts.push_back(std::move(fact).value());
  called_.emplace_back();
  uses_.push_back(0);
  return number;
}

Result<int> ImportGraph::Shaped(int layer, const Shape& shape) {
  if (facts[static_cast<std::size_t>(layer)].shape == shape) return layer;
  if (const auto known = shaped_.find({layer, shape}); known != shaped_.end()) return known->second;
  if (shape.size() > 3) return Wrong(Str("a row of ", shape.size(), " dimensions; at most 3 are known here"));
  Layer made{.op = shape.size() == 1 ? Op::kFlatten : Op::kReshape, .inputs = {layer}};
  if (made.op == Op::kReshape) made.shape = shape;
  return shaped_[{layer, shape}] = TRY(Put(std::move(made), "shaped"));
}

// Dimensions of 1 do not matter, and those that stay side by side are one.
Result<int> ImportGraph::Turned(int layer, const Shape& shape, const Shape& order) {
  std::vector<std::vector<std::int64_t>> groups;  // in the new order
  for (const std::int64_t d : order) {
    if (shape[static_cast<std::size_t>(d)] == 1) continue;
    std::int64_t after = groups.empty() ? -1 : groups.back().back() + 1;
    while (after >= 0 && after < d && shape[static_cast<std::size_t>(after)] == 1) ++after;
    if (groups.empty() || after != d) groups.emplace_back();
    groups.back().push_back(d);
  }
  if (groups.size() < 2) return layer;
  if (groups.size() > 3) return Wrong("it moves more than three dimensions at once");
  Shape places(groups.size()), before, turn;
  std::iota(places.begin(), places.end(), 0);
  std::sort(places.begin(), places.end(), [&](std::int64_t a, std::int64_t b) {
    return groups[static_cast<std::size_t>(a)] < groups[static_cast<std::size_t>(b)];
  });
  for (const std::int64_t place : places) {
    before.push_back(1);
    for (const std::int64_t d : groups[static_cast<std::size_t>(place)])
      before.back() *= shape[static_cast<std::size_t>(d)];
  }
  for (std::size_t g = 0; g < groups.size(); ++g)
    turn.push_back(std::find(places.begin(), places.end(), static_cast<std::int64_t>(g)) - places.begin());
  const int from = TRY(Shaped(layer, before));
  return Put({.op = Op::kTranspose, .inputs = {from}, .shape = std::move(turn)}, "turned");
}

void ImportGraph::Give(Seen seen, std::size_t output) {
  called_[static_cast<std::size_t>(seen.layer)].push_back(node_->outputs[output]);
  values_.insert_or_assign(node_->outputs[output], std::move(seen));
}

Result<void> ImportGraph::Give(Layer layer, Dims dims) {
  Give(Seen{.layer = TRY(Put(std::move(layer))), .dims = std::move(dims)});
  return {};
}

void ImportGraph::Give(Tensor constant) {
  made_.push_back(std::move(constant));
  constants_.insert_or_assign(node_->outputs[0], &made_.back());
}

bool ImportGraph::ReadOnce(int layer) const {
  const auto at = static_cast<std::size_t>(layer);
  return uses_[at] == 0 && std::all_of(called_[at].begin(), called_[at].end(), [&](const std::string& name) {
           const auto found = readers_.find(name);
           return found == readers_.end() || found->second <= 1;
         });
}

Result<std::size_t> ImportGraph::Axis(const Seen& seen, std::int64_t axis) const {
  const auto rank = static_cast<std::int64_t>(seen.dims.size());
  const std::int64_t from_front = axis < 0 ? axis + rank : axis;
  if (from_front < 0 || from_front >= rank) return Wrong(Str("axis ", axis, " of ", rank, " dimensions"));
  const auto at = static_cast<std::size_t>(from_front);
  const auto batch = seen.batch();
  if (batch == at) return Wrong(Str("axis ", axis, " is the batch: each row is answered alone here"));
  return batch.has_value() && *batch < at ? at - 1 : at;
}

Result<Shape> ImportGraph::Image(const Seen& seen, std::string_view what) const {
  const bool first = !seen.dims.empty() && (seen.dims[0] == kBatch || (!seen.batch().has_value() && seen.dims[0] == 1));
  if (!first || seen.dims.size() < 2)
    return Wrong(Str("its input must have the batch as first of ", what, "; it has ", seen.dims.size(), " dimensions"));
  return Shape(seen.dims.begin() + 1, seen.dims.end());
}

Result<void> ImportGraph::Spend(std::size_t numbers) {
  if (numbers > room_) return Wrong("too many nodes share their weights; export the model without sharing");
  room_ -= numbers;
  return {};
}

Result<void> ImportGraph::Keep(int layer, std::string_view what, std::vector<float> values) {
  TRY(Spend(values.size()));
  weights[Str(graph.layers[static_cast<std::size_t>(layer)].name, ".", what)] = std::move(values);
  return {};
}

}  // namespace freshet::model::onnx
