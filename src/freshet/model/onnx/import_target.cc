// The end of a regression as an export has it: its numbers times a deviation, plus a mean.

#include <algorithm>
#include <cmath>

#include "model/onnx/import_graph.h"

namespace freshet::model::onnx {

// The node that makes a value by `op` from something made of the input, which comes first, and one constant number.
const Node* ImportGraph::MakerByNumber(const std::string& value, std::string_view op, double& number) const {
  const auto maker = std::find_if(document_.nodes.begin(), document_.nodes.end(),
                                  [&](const Node& node) { return !node.outputs.empty() && node.outputs[0] == value; });
  if (maker == document_.nodes.end() || maker->op != op || !maker->domain.empty() || maker->inputs.size() != 2)
    return nullptr;
  const auto constant = constants_.find(maker->inputs[1]);
  if (constants_.contains(maker->inputs[0]) || constant == constants_.end()) return nullptr;
  if (!constant->second->IsReal() || constant->second->elements() != 1) return nullptr;
  number = constant->second->Floats()[0];
  return &*maker;
}

void ImportGraph::TakeTarget() {
  double mean = 0, deviation = 0;
  const Node* const add = MakerByNumber(output_, "Add", mean);
  const Node* const mul = add == nullptr ? nullptr : MakerByNumber(add->inputs[0], "Mul", deviation);
  if (mul == nullptr || values_.contains(mul->inputs[0])) return;
  std::ptrdiff_t readers = 0;
  for (const Node& node : document_.nodes)
    readers += std::count(node.inputs.begin(), node.inputs.end(), add->inputs[0]);
  if (readers > 1) return;
  if (!std::isfinite(mean) || !std::isfinite(deviation) || deviation <= 0) return;
  target = data::Target(mean, deviation);
  output_ = mul->inputs[0];
}

}  // namespace freshet::model::onnx
