#include "model/onnx/import.h"

#include <nlohmann/json.hpp>

#include "model/network/program.h"
#include "model/onnx/import_graph.h"

namespace freshet::model::onnx {
namespace {

using network::Facts;
using network::Op;

// A Softmax (or its logarithm) of all scores, or a Sigmoid of one number, at the end is the link of a loss; returns
// that loss's name.
std::string TakeLink(network::Graph& graph, const std::vector<Facts>& facts) {
  const auto last = graph.layers.size() - 1;
  if (graph.heads[0].layer != static_cast<int>(last) || last == 0) return "";
  const Op op = graph.layers[last].op;
  const bool softmax = op == Op::kSoftmax || op == Op::kLogSoftmax;
  const network::Shape& shape = facts[last].shape;
  const std::int64_t classes = shape.size() == 2 ? shape[1] : shape[0];
  const bool link = softmax ? classes == facts[last].elements() : op == Op::kSigmoid && facts[last].elements() == 1;
  if (!link) return "";
  graph.heads[0].layer = graph.layers[last].inputs[0];
  graph.layers.pop_back();
  return softmax ? "softmax" : "logistic";
}

// Every block has its numbers; only then is room made for them.
Result<optimize::Parameters> Fill(const std::vector<Facts>& facts,
                                  const std::map<std::string, std::vector<float>>& weights, optimize::Memory& memory) {
  const std::vector<optimize::Block> blocks = network::Blocks(facts);
  for (const optimize::Block& block : blocks) {
    const auto found = weights.find(block.name);
    const std::size_t given = found == weights.end() ? 0 : found->second.size();
    if (given != block.rows * block.width)
      return Error{Code::kBadInput, Str("the weights ", Quoted(block.name), " are ", given, " numbers; ", block.rows,
                                        " x ", block.width, " are needed for what the node reads")};
  }
  auto parameters = TRY(optimize::Parameters::Create(blocks, memory));
  for (std::size_t b = 0; b < parameters.blocks(); ++b) parameters.Scatter(b, weights.at(blocks[b].name));
  if (!parameters.AllFinite()) return Error{Code::kBadInput, "some of the weights are not finite numbers"};
  return parameters;
}

std::vector<std::string> LabelsOf(const Document& document) {
  for (const auto& [key, value] : document.metadata) {
    if (key != "labels") continue;
    const auto json = nlohmann::json::parse(value, nullptr, false);
    if (!json.is_array()) return {};
    std::vector<std::string> labels;
    for (const auto& label : json)
      if (label.is_string()) labels.push_back(label.get<std::string>());
    return labels;
  }
  return {};
}

}  // namespace

Result<Imported> Import(const Document& document, optimize::Memory& memory, const ImportOptions& options) {
  ImportGraph import(document, options);
  TRY(import.Run());
  auto inferred = network::Infer(import.graph);
  if (!inferred.ok()) return Error{Code::kBadInput, std::move(inferred).error().text};  // the file's fault
  std::string loss = TakeLink(import.graph, inferred.value());
  inferred.value().resize(import.graph.layers.size());
  auto parameters = TRY(Fill(inferred.value(), import.weights, memory));
  std::vector<std::string> labels = LabelsOf(document);
  if (labels.empty()) labels = std::move(import.labels);
  return Imported{std::move(import.graph), std::move(parameters), std::move(loss),  import.raw, import.scale,
                  std::move(import.view),  import.target,         std::move(labels)};
}

}  // namespace freshet::model::onnx
