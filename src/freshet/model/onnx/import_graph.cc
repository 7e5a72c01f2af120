// The walk over the nodes, and the attributes of one.

#include "model/onnx/import_graph.h"

#include <algorithm>
#include <charconv>

namespace freshet::model::onnx {

using network::Op;

namespace {

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
  if (document_.opset < 7 || document_.opset > 23)
    return Error{Code::kBadInput, Str("operator set ", document_.opset, "; expected 7 to 23. Export the model anew")};
  TRY(Names());
  TRY(FindInput());
  FindOutput();
  TakeTarget();
  const std::vector<bool> needed = TRY(Needed());
  for (std::size_t i = 0; i < document_.nodes.size(); ++i)
    if (needed[i] && document_.nodes[i].op != "Shape")  // which does not read the numbers
      for (const std::string& input : document_.nodes[i].inputs) ++readers_[input];
  ++readers_[output_];
  for (std::size_t i = 0; i < document_.nodes.size(); ++i) {
    if (!needed[i]) continue;
    node_ = &document_.nodes[i];
    for (const std::string& input : node_->inputs)
      if (!input.empty() && !values_.contains(input) && !constants_.contains(input) && !zeros_.contains(input))
        return Wrong(Str("reads ", Quoted(input),
                         ", which nothing before it gives: the graph has a cycle, its nodes are "
                         "out of order, or a part is missing"));
    TRY(One());
  }
  const auto found = values_.find(output_);
  if (found == values_.end() || found->second.symbols)
    return Error{Code::kBadInput, Str("the output ", Quoted(output_), " does not depend on the input, or is no FLOAT")};
  if (found->second.complement)
    return Error{Code::kBadInput, Str("the output ", Quoted(output_), " is 1 less a probability alone")};
  const Dims& dims = found->second.dims;
  if (std::any_of(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(found->second.batch().value_or(0)),
                  [](std::int64_t dim) { return dim != 1; }))
    return Error{Code::kBadInput, Str("the output ", Quoted(output_), ": the batch is not its first dimension")};
  graph.AddHead(found->second.layer);
  return {};
}

// Every value has one name that no other has.
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
    room_ += 2 * tensor.bytes.size() / sizeof(float);
  }
  for (const Node& node : document_.nodes) {
    for (const std::string& output : node.outputs)
      if (!output.empty()) TRY(take(output));
    for (const Attribute& attribute : node.attributes)
      room_ += attribute.floats.size() + (attribute.t ? attribute.t->bytes.size() / sizeof(float) : 0);
  }
  for (const Value& input : document_.inputs)
    if (!constants_.contains(input.name)) TRY(take(input.name));  // old files list constants as inputs, too
  if (document_.outputs.empty()) return Error{Code::kBadInput, "the graph has no output"};
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
  const bool symbols = input->type == Type::kInt64 || input->type == Type::kInt32;
  const std::size_t rank = input->dims.size();
  if ((!symbols && input->type != Type::kFloat) || rank < 1)
    return Error{Code::kBadInput, Str("input ", Quoted(input->name), ": ", rank, " dimensions of ", NameOf(input->type),
                                      "; expected FLOAT, or whole numbers for an embedding",
                                      options_.one_row ? "" : ", the batch first")};
  Seen seen{.dims = input->dims, .symbols = symbols};
  if (!options_.one_row) {
    fixed_batch_ = seen.dims[0];
    seen.dims[0] = kBatch;
  }
  network::Shape row = seen.row();
  std::int64_t elements = 1;
  for (const std::int64_t dim : row) {
    if (dim < 1 || dim > kMostExtent || elements > network::kMostElements / dim)
      return Error{Code::kBadInput,
                   Str("input ", Quoted(input->name),
                       ": only the batch, its first dimension, may be left open or large; fix the others")};
    elements *= dim;
  }
  if (row.size() > 3) row = {elements};  // layers have no more extents; the graph may still make fewer of them
  graph = network::Graph(std::move(row));
  auto fact = network::InferNext(graph, facts);
  if (!fact.ok()) return Error{Code::kBadInput, std::move(fact).error().text};
  facts.push_back(std::move(fact).value());
  raw = graph.input;
  names_.insert(graph.layers[0].name);
  called_.push_back({input->name});
  uses_.push_back(0);
  values_.emplace(input->name, std::move(seen));
  return {};
}

// The first output; but of a classifier that names the class first, its scores.
void ImportGraph::FindOutput() {
  output_ = document_.outputs[0].name;
  if (document_.outputs[0].type == Type::kFloat) return;
  std::set<std::string_view> maps;
  for (const Node& node : document_.nodes)
    if (node.op == "ZipMap" && !node.outputs.empty()) maps.insert(node.outputs[0]);
  for (const Value& output : document_.outputs)
    if (output.type == Type::kFloat || maps.contains(output.name)) {
      output_ = output.name;
      return;
    }
}

// The nodes that the answer depends on. A cycle does no harm here.
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

// Does it read constants alone?
bool ImportGraph::IsConstant() const {
  return std::all_of(node_->inputs.begin(), node_->inputs.end(),
                     [&](const std::string& input) { return input.empty() || constants_.contains(input); });
}

Result<void> ImportGraph::One() {
  struct Entry {
    std::string_view op;
    Result<void> (*read)(ImportGraph& import);
    std::string_view domain = "";
  };
  static constexpr std::string_view kMl = "ai.onnx.ml";
  static constexpr Entry kRegistry[] = {
      {"Conv", [](ImportGraph& g) { return g.Conv(); }},
      {"Gemm", [](ImportGraph& g) { return g.Gemm(); }},
      {"MatMul", [](ImportGraph& g) { return g.MatMul(); }},
      {"Add", [](ImportGraph& g) { return g.Add(); }},
      {"Sum", [](ImportGraph& g) { return g.Add(); }},
      {"Mul", [](ImportGraph& g) { return g.Mul(); }},
      {"Sub", [](ImportGraph& g) { return g.Sub(); }},
      {"Div", [](ImportGraph& g) { return g.Div(); }},
      {"Relu", [](ImportGraph& g) { return g.Plain(Op::kRelu); }},
      {"LeakyRelu", [](ImportGraph& g) { return g.Plain(Op::kRelu); }},
      {"Tanh", [](ImportGraph& g) { return g.Plain(Op::kTanh); }},
      {"Sigmoid", [](ImportGraph& g) { return g.Plain(Op::kSigmoid); }},
      {"HardSwish", [](ImportGraph& g) { return g.Plain(Op::kHardSwish); }},
      {"Gelu", [](ImportGraph& g) { return g.Plain(Op::kGelu); }},
      {"Erf", [](ImportGraph& g) { return g.Plain(Op::kErf); }},
      {"HardSigmoid", [](ImportGraph& g) { return g.HardSigmoid(); }},
      {"Clip", [](ImportGraph& g) { return g.Clip(); }},
      {"Softmax", [](ImportGraph& g) { return g.Softmax(Op::kSoftmax); }},
      {"LogSoftmax", [](ImportGraph& g) { return g.Softmax(Op::kLogSoftmax); }},
      {"MaxPool", [](ImportGraph& g) { return g.Pool(); }},
      {"AveragePool", [](ImportGraph& g) { return g.Pool(); }},
      {"GlobalAveragePool", [](ImportGraph& g) { return g.GlobalPool(); }},
      {"GlobalMaxPool", [](ImportGraph& g) { return g.GlobalPool(); }},
      {"ReduceMean", [](ImportGraph& g) { return g.ReduceMean(); }},
      {"LRN", [](ImportGraph& g) { return g.Lrn(); }},
      {"BatchNormalization", [](ImportGraph& g) { return g.BatchNorm(); }},
      {"Dropout", [](ImportGraph& g) { return g.Dropout(); }},
      {"LSTM", [](ImportGraph& g) { return g.Recurrent(); }},
      {"GRU", [](ImportGraph& g) { return g.Recurrent(); }},
      {"Concat", [](ImportGraph& g) { return g.Concat(); }},
      {"Flatten", [](ImportGraph& g) { return g.Flatten(); }},
      {"Reshape", [](ImportGraph& g) { return g.Reshape(); }},
      {"Squeeze", [](ImportGraph& g) { return g.Squeeze(); }},
      {"Unsqueeze", [](ImportGraph& g) { return g.Unsqueeze(); }},
      {"Transpose", [](ImportGraph& g) { return g.Transpose(); }},
      {"Slice", [](ImportGraph& g) { return g.Slice(); }},
      {"Gather", [](ImportGraph& g) { return g.Gather(); }},
      {"Shape", [](ImportGraph& g) { return g.ShapeOf(); }},
      {"Cast", [](ImportGraph& g) { return g.Cast(); }},
      {"Identity", [](ImportGraph& g) { return g.Alias(); }},
      {"Constant", [](ImportGraph& g) { return g.Fold(); }},
      {"ConstantOfShape", [](ImportGraph& g) { return g.Filled(); }},
      {"Expand", [](ImportGraph& g) { return g.Filled(); }},
      {"LinearClassifier", [](ImportGraph& g) { return g.LinearClassifier(); }, kMl},
      {"LinearRegressor", [](ImportGraph& g) { return g.LinearRegressor(); }, kMl},
      {"Scaler", [](ImportGraph& g) { return g.Scaler(); }, kMl},
      {"Normalizer", [](ImportGraph& g) { return g.Normalizer(); }, kMl},
      {"ZipMap", [](ImportGraph& g) { return g.ZipMap(); }, kMl},
  };
  if (node_->outputs.empty()) return Wrong("it has no output");
  const bool several = node_->op == "LSTM" || node_->op == "GRU" || node_->op == "LinearClassifier";
  if (!several && node_->outputs[0].empty()) return Wrong("it has no output");
  for (std::size_t i = 1; i < node_->outputs.size() && !several; ++i)  // a pool's places, a mask: known to no layer
    if (!node_->outputs[i].empty() && readers_.contains(node_->outputs[i]))
      return Wrong(Str("its output ", Quoted(node_->outputs[i]), " is used; only the first is known here"));
  const bool arranges = node_->op == "Slice" || node_->op == "Squeeze" || node_->op == "Unsqueeze" ||
                        node_->op == "Transpose" || node_->op == "Identity" || node_->op == "Cast";
  if (arranges && !node_->inputs.empty() && zeros_.contains(node_->inputs[0])) {
    zeros_.insert(node_->outputs[0]);
    return {};
  }
  std::vector<std::string> known;
  for (const Entry& entry : kRegistry) {
    if (entry.op == node_->op && entry.domain == node_->domain) {
      const bool makes = node_->op == "Shape" || node_->op == "ConstantOfShape" || node_->op == "Expand";
      return IsConstant() && !makes && node_->domain.empty() ? Fold() : entry.read(*this);
    }
    known.emplace_back(entry.op);
  }
  return Wrong(Str("this operator is not known here; known are ", Join(known, ", ")));
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

std::string ImportGraph::Text(std::string_view name, std::string_view otherwise) const {
  const Attribute* const found = node_->Find(name);
  return found == nullptr || found->kind != Attribute::Kind::kString ? std::string(otherwise) : found->s;
}

Result<Dims> ImportGraph::Ints(std::string_view name, Dims otherwise) const {
  const Attribute* const found = node_->Find(name);
  if (found == nullptr) return otherwise;
  if (found->kind != Attribute::Kind::kInts || found->ints.size() != otherwise.size())
    return Wrong(Str("attribute ", name, ": expected ", otherwise.size(), " whole numbers"));
  return found->ints;
}

}  // namespace freshet::model::onnx
