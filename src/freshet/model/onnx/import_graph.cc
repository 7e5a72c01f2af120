// The walk over the nodes, and what all operators share.

#include "model/onnx/import_graph.h"

#include <algorithm>
#include <charconv>

namespace freshet::model::onnx {

using network::Layer;
using network::Op;

namespace {

constexpr std::size_t kMostName = 100;
constexpr std::int64_t kMostExtent = 1 << 20;  // of the input; three of them fit a number

}  // namespace

double Plainly(float value) {
  const std::string text = Str(value);
  double number = value;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Error ImportGraph::Wrong(const std::string& what) const {
  return {Code::kBadInput, Str("node ", node_->Label(), ": ", what)};
}

Result<void> ImportGraph::Run() {
  if (document_.opset < 7 || document_.opset > 21)
    return Error{Code::kBadInput, Str("operator set ", document_.opset, "; expected 7 to 21. Export the model anew")};
  TRY(Names());
  TRY(FindInput());
  TakeTarget();
  const std::vector<bool> needed = TRY(Needed());
  for (std::size_t i = 0; i < document_.nodes.size(); ++i) {
    if (!needed[i]) continue;
    node_ = &document_.nodes[i];
    for (const std::string& input : node_->inputs)
      if (!input.empty() && !layers_.contains(input) && !constants_.contains(input))
        return Wrong(Str("reads ", Quoted(input),
                         ", which nothing before it gives: the graph has a cycle, its nodes are "
                         "out of order, or a part is missing"));
    TRY(One());
  }
  const auto found = layers_.find(output_);
  if (found == layers_.end())
    return Error{Code::kBadInput, Str("the output ", Quoted(output_), " does not depend on the input")};
  graph.AddHead(found->second);
  return {};
}

// Every value has one name that no other has; and how often each is read.
Result<void> ImportGraph::Names() {
  std::set<std::string_view> taken;
  const auto take = [&](std::string_view name) -> Result<void> {
    if (name.empty() || !taken.insert(name).second)
      return Error{Code::kBadInput, Str("two values are called ", Quoted(name), ", or one has no name")};
    return {};
  };
  for (const Tensor& tensor : document_.initializers) {
    TRY(take(tensor.name));
    constants_.emplace(tensor.name, &tensor);
    room_ += 2 * tensor.elements();
  }
  for (const Node& node : document_.nodes) {
    for (const std::string& output : node.outputs)
      if (!output.empty()) TRY(take(output));
    for (const std::string& input : node.inputs) ++readers_[input];
  }
  for (const Value& input : document_.inputs)
    if (!constants_.contains(input.name)) TRY(take(input.name));  // old files list constants as inputs, too
  if (document_.outputs.empty()) return Error{Code::kBadInput, "the graph has no output"};
  for (const Value& output : document_.outputs) ++readers_[output.name];
  return {};
}

Result<void> ImportGraph::FindInput() {
  const Value* input = nullptr;
  for (const Value& value : document_.inputs) {
    if (constants_.contains(value.name)) continue;
    if (input != nullptr)
      return Error{Code::kBadInput, Str("the graph has more than one input: ", Quoted(input->name), " and ",
                                        Quoted(value.name), "; freshet's networks have one")};
    input = &value;
  }
  if (input == nullptr) return Error{Code::kBadInput, "the graph has no input"};
  if (input->type != Type::kFloat || input->dims.size() < 2 || input->dims.size() > 4)
    return Error{Code::kBadInput, Str("input ", Quoted(input->name), ": ", input->dims.size(), " dimensions of ",
                                      NameOf(input->type), "; expected 2 to 4 of FLOAT, the batch first")};
  graph = network::Graph(network::Shape(input->dims.begin() + 1, input->dims.end()));
  for (const std::int64_t dim : graph.input)
    if (dim < 1 || dim > kMostExtent)
      return Error{Code::kBadInput,
                   Str("input ", Quoted(input->name),
                       ": only the batch, its first dimension, may be left open or large; fix the others")};
  raw = graph.input;
  names_.insert(graph.layers[0].name);
  layers_.emplace(input->name, 0);
  return {};
}

// The nodes that the first output depends on. A cycle does no harm here.
Result<std::vector<bool>> ImportGraph::Needed() const {
  std::map<std::string_view, std::size_t> makers;
  for (std::size_t i = 0; i < document_.nodes.size(); ++i)
    for (const std::string& output : document_.nodes[i].outputs) makers.emplace(output, i);
  std::vector<bool> needed(document_.nodes.size());
  std::vector<std::string_view> wanted = {output_};
  while (!wanted.empty()) {
    const auto maker = makers.find(wanted.back());
    wanted.pop_back();
    if (maker == makers.end() || needed[maker->second]) continue;
    needed[maker->second] = true;
    for (const std::string& input : document_.nodes[maker->second].inputs)
      if (!input.empty()) wanted.push_back(input);
  }
  return needed;
}

Result<void> ImportGraph::One() {
  struct Entry {
    std::string_view op;
    Result<void> (*read)(ImportGraph& import);
  };
  static constexpr Entry kRegistry[] = {
      {"Conv", [](ImportGraph& g) { return g.Conv(); }},
      {"Gemm", [](ImportGraph& g) { return g.Gemm(); }},
      {"MatMul", [](ImportGraph& g) { return g.MatMul(); }},
      {"Add", [](ImportGraph& g) { return g.AddOrSum(); }},
      {"Sum", [](ImportGraph& g) { return g.AddOrSum(); }},
      {"Mul", [](ImportGraph& g) { return g.Mul(); }},
      {"Sub", [](ImportGraph& g) { return g.Sub(); }},
      {"Slice", [](ImportGraph& g) { return g.Slice(); }},
      {"Relu", [](ImportGraph& g) { return g.Plain(Op::kRelu); }},
      {"LeakyRelu", [](ImportGraph& g) { return g.Plain(Op::kRelu); }},
      {"Tanh", [](ImportGraph& g) { return g.Plain(Op::kTanh); }},
      {"Sigmoid", [](ImportGraph& g) { return g.Plain(Op::kSigmoid); }},
      {"Softmax", [](ImportGraph& g) { return g.Softmax(); }},
      {"MaxPool", [](ImportGraph& g) { return g.Pool(); }},
      {"AveragePool", [](ImportGraph& g) { return g.Pool(); }},
      {"GlobalAveragePool", [](ImportGraph& g) { return g.Plain(Op::kGlobalAveragePool); }},
      {"LRN", [](ImportGraph& g) { return g.Lrn(); }},
      {"BatchNormalization", [](ImportGraph& g) { return g.BatchNorm(); }},
      {"Dropout", [](ImportGraph& g) { return g.Dropout(); }},
      {"Concat", [](ImportGraph& g) { return g.Concat(); }},
      {"Flatten", [](ImportGraph& g) { return g.Flatten(); }},
      {"Reshape", [](ImportGraph& g) { return g.Reshape(); }},
      {"Identity", [](ImportGraph& g) { return g.Alias(); }},
      {"Constant", [](ImportGraph& g) { return g.Constant(); }},
  };
  if (node_->outputs.empty() || node_->outputs[0].empty()) return Wrong("it has no output");
  std::vector<std::string> known;
  for (const Entry& entry : kRegistry) {
    if (entry.op == node_->op && node_->domain.empty()) {
      TRY(CheckOutputs());
      return entry.read(*this);
    }
    known.emplace_back(entry.op);
  }
  return Wrong(Str("this operator is not known here; known are ", Join(known, ", ")));
}

// What a second output would hold (a pool's places, a mask) is known to no layer of ours.
Result<void> ImportGraph::CheckOutputs() const {
  for (std::size_t i = 1; i < node_->outputs.size(); ++i)
    if (readers_.contains(node_->outputs[i]) && !node_->outputs[i].empty())
      return Wrong(Str("its output ", Quoted(node_->outputs[i]), " is used; only the first is known here"));
  return {};
}

Result<int> ImportGraph::In(std::size_t i) const {
  if (!Has(i)) return Wrong(Str("input ", i, " is missing"));
  const auto found = layers_.find(node_->inputs[i]);
  if (found != layers_.end()) return found->second;
  return Wrong(
      Str("input ", i, ", ", Quoted(node_->inputs[i]), ", is a constant; expected something made of the input"));
}

const Tensor* ImportGraph::ConstantAt(std::size_t i) const {
  if (!Has(i)) return nullptr;
  const auto found = constants_.find(node_->inputs[i]);
  return found == constants_.end() ? nullptr : found->second;
}

Result<const Tensor*> ImportGraph::Weights(std::size_t i, std::string_view what) const {
  const Tensor* const tensor = ConstantAt(i);
  if (tensor == nullptr) return Wrong(Str("its ", what, ", input ", i, ", must be a constant in the file"));
  if (tensor->type != Type::kFloat)
    return Wrong(Str("its ", what, " is of ", NameOf(tensor->type), "; expected FLOAT"));
  if (tensor->bytes.empty()) return Wrong(Str("its ", what, " is empty"));
  return tensor;
}

Result<void> ImportGraph::Keep(int layer, std::string_view what, std::vector<float> values) {
  if (values.size() > room_) return Wrong("too many nodes share their weights; export the model without sharing");
  room_ -= values.size();
  weights[Str(graph.layers[static_cast<std::size_t>(layer)].name, ".", what)] = std::move(values);
  return {};
}

Result<std::vector<float>> ImportGraph::Bias(const Tensor& tensor, std::int64_t outputs) const {
  std::vector<float> values = tensor.Floats();
  if (values.size() == 1) values.resize(static_cast<std::size_t>(outputs), values[0]);
  if (values.size() != static_cast<std::size_t>(outputs))
    return Wrong(Str("a bias of ", values.size(), " numbers for ", outputs, " outputs"));
  return values;
}

Result<std::int64_t> ImportGraph::Int(std::string_view name, std::int64_t otherwise) const {
  const Attribute* const found = node_->Find(name);
  if (found == nullptr) return otherwise;
  if (found->kind != Attribute::Kind::kInt) return Wrong(Str("attribute ", name, " is no whole number"));
  return found->i;
}

Result<double> ImportGraph::Float(std::string_view name, double otherwise) const {
  const Attribute* const found = node_->Find(name);
  if (found == nullptr) return otherwise;
  if (found->kind != Attribute::Kind::kFloat) return Wrong(Str("attribute ", name, " is no number"));
  return Plainly(found->f);
}

Result<std::vector<std::int64_t>> ImportGraph::Ints(std::string_view name, std::vector<std::int64_t> otherwise) const {
  const Attribute* const found = node_->Find(name);
  if (found == nullptr) return otherwise;
  if (found->kind != Attribute::Kind::kInts || found->ints.size() != otherwise.size())
    return Wrong(Str("attribute ", name, ": expected ", otherwise.size(), " whole numbers (only images are known)"));
  return found->ints;
}

// The node's name, or its output's, in letters that every text can hold.
std::string ImportGraph::NewName(const Node& node) {
  std::string name = (node.name.empty() ? node.outputs[0] : node.name).substr(0, kMostName);
  for (char& c : name) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!plain && std::string_view("_-./:").find(c) == std::string_view::npos) c = '_';
  }
  std::string free = name;
  for (int number = 2; !names_.insert(free).second; ++number) free = Str(name, "_", number);
  return free;
}

int ImportGraph::Give(Layer layer) {
  layer.name = NewName(*node_);
  const int number = graph.Add(std::move(layer));
  layers_.emplace(node_->outputs[0], number);
  return number;
}

void ImportGraph::ExpectRank(int layer, std::size_t rank) {
  expectations.push_back([node = node_, layer, rank](const std::vector<network::Facts>& facts) -> Result<void> {
    const std::size_t found = facts[static_cast<std::size_t>(layer)].shape.size();
    if (found == rank) return {};
    return Error{Code::kBadInput, Str("node ", node->Label(), ": its input has ", found + 1, " dimensions, expected ",
                                      rank + 1, rank == 1 ? "; put a Flatten before it" : "")};
  });
}

}  // namespace freshet::model::onnx
