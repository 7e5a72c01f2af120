#include "model/network/remarks.h"

namespace freshet::model::network {
namespace {

std::vector<bool> Alive(const Graph& graph) {
  std::vector<bool> alive(graph.layers.size());
  alive[0] = true;
  for (const Head& head : graph.heads) alive[static_cast<std::size_t>(head.layer)] = true;
  for (std::size_t i = graph.layers.size(); i-- > 0;)
    if (alive[i])
      for (const int input : graph.layers[i].inputs) alive[static_cast<std::size_t>(input)] = true;
  return alive;
}

// The loss whose link this layer is, or nothing.
std::string_view LinkOf(Op op) {
  if (op == Op::kSoftmax) return "softmax";
  return op == Op::kSigmoid ? "logistic" : "";
}

}  // namespace

std::vector<std::string> Remarks(const Graph& graph, const std::vector<Facts>& facts, std::string_view loss,
                                 const std::vector<std::uint32_t>& lines) {
  std::vector<std::string> remarks;
  const auto at = [&](std::size_t layer) {
    const std::string name = Str("layer ", Quoted(graph.layers[layer].name), " (", NameOf(graph.layers[layer].op), ")");
    return layer < lines.size() ? Str("line ", lines[layer], ", ", name) : name;
  };
  for (const Head& head : graph.heads) {
    const auto layer = static_cast<std::size_t>(head.layer);
    const bool several = graph.target == Target::kNext || facts[layer].elements() > 1;
    const std::string_view by = !loss.empty() ? loss : graph.target != Target::kInput && several ? "softmax" : "";
    if (by.empty() || LinkOf(graph.layers[layer].op) != by) continue;
    remarks.push_back(Str(at(layer), ": the ", by, " loss applies ", NameOf(graph.layers[layer].op),
                          " itself, so that scores go through it twice and learning is slow; leave this one out"));
  }
  const std::vector<bool> alive = Alive(graph);
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    const Layer& layer = graph.layers[i];
    if (!alive[i])
      remarks.push_back(Str(at(i), ": no head depends on it, so that it learns nothing and changes nothing; ",
                            "join it to the others (concat, sum), make it a head, or leave it out"));
    if ((layer.op == Op::kSum || layer.op == Op::kConcat) && layer.inputs.size() == 1)
      remarks.push_back(
          Str(at(i), ": it joins one layer alone, which changes nothing; name the others, or leave it out"));
  }
  return remarks;
}

}  // namespace freshet::model::network
