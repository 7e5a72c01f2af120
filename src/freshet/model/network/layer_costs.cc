#include "model/network/layer_costs.h"

#include <algorithm>

namespace freshet::model::network {

int BackwardTimes(const Graph& graph, const std::vector<Facts>& facts, std::size_t layer) {
  const std::vector<int>& inputs = graph.layers[layer].inputs;
  const bool reads_data = std::all_of(inputs.begin(), inputs.end(), [](int input) { return input == 0; });
  return (facts[layer].blocks.empty() ? 0 : 1) + (reads_data ? 0 : 1);
}

std::vector<double> TrainingCosts(const Graph& graph, const std::vector<Facts>& facts, std::size_t rows,
                                  std::size_t parts) {
  constexpr double kPassesOfAnUpdate = 5;
  std::vector<double> costs(facts.size(), 0);
  for (std::size_t layer = 1; layer < facts.size(); ++layer) {
    double numbers = static_cast<double>(facts[layer].elements());
    for (const int input : graph.layers[layer].inputs)
      numbers += static_cast<double>(facts[static_cast<std::size_t>(input)].elements());
    const double parameters = kOperationsOfANumber * static_cast<double>(facts[layer].parameters());
    const double forward = static_cast<double>(rows) * (facts[layer].flops + kOperationsOfANumber * numbers) +
                           static_cast<double>(parts) * parameters;
    costs[layer] = (1 + BackwardTimes(graph, facts, layer)) * forward + kPassesOfAnUpdate * parameters;
  }
  return costs;
}

std::vector<bool> Used(const Graph& graph) {
  std::vector<bool> used(graph.layers.size(), false);
  for (const Head& head : graph.heads) used[static_cast<std::size_t>(head.layer)] = true;
  for (std::size_t layer = used.size(); layer-- > 0;)
    if (used[layer])
      for (const int input : graph.layers[layer].inputs) used[static_cast<std::size_t>(input)] = true;
  return used;
}

std::vector<bool> Learning(const Graph& graph, const std::vector<Facts>& facts) {
  std::vector<bool> learning(facts.size(), false);
  for (std::size_t layer = 1; layer < facts.size(); ++layer) {
    const std::vector<int>& inputs = graph.layers[layer].inputs;
    learning[layer] = !facts[layer].blocks.empty() || std::any_of(inputs.begin(), inputs.end(), [&](int input) {
      return learning[static_cast<std::size_t>(input)];
    });
  }
  return learning;
}

}  // namespace freshet::model::network
