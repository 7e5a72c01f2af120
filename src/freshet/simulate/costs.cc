#include "simulate/costs.h"

#include <algorithm>

#include "model/network/layer_costs.h"

namespace freshet::simulate {

Result<DescribedCosts> DescribedCosts::Make(const model::network::Graph& graph, const fabric::sim::Platform& platform) {
  DescribedCosts costs(platform);
  const std::vector<model::network::Facts> facts = TRY(model::network::Infer(graph));
  for (std::size_t l = 0; l < facts.size(); ++l) {
    Layer layer{.flops = facts[l].flops, .bytes = 0, .weight_bytes = 0, .blocks = facts[l].blocks.size()};
    double elements = static_cast<double>(facts[l].elements());
    for (const int from : graph.layers[l].inputs)
      elements += static_cast<double>(facts[static_cast<std::size_t>(from)].elements());
    layer.backward = model::network::BackwardTimes(graph, facts, l);
    layer.bytes = elements * sizeof(float);
    layer.weight_bytes = static_cast<double>(facts[l].parameters()) * sizeof(float);
    costs.layers_.push_back(layer);
  }
  return costs;
}

double DescribedCosts::Seconds(const Layer& layer, std::size_t rows, int cores) const {
  const auto r = static_cast<double>(rows), c = static_cast<double>(cores);
  const double computing = r * layer.flops / (c * platform_.core_gflops * 1e9 * platform_.EfficiencyAt(r));
  const double share = platform_.memory_gb_s * 1e9 * std::min(1.0, c / platform_.cores);
  return std::max(computing, (r * layer.bytes + layer.weight_bytes) / share);
}

StepCost DescribedCosts::Of(std::size_t rows, int cores) const {
  StepCost cost;
  double parameters = 0;
  for (const Layer& layer : layers_) {
    cost.compute += Seconds(layer, rows, cores);
    parameters += layer.weight_bytes;
  }
  for (std::size_t l = layers_.size(); l-- > 0;) {
    cost.compute += layers_[l].backward * Seconds(layers_[l], rows, cores);
    cost.finished.insert(cost.finished.begin(), layers_[l].blocks, cost.compute);
  }
  cost.apply = 5 * parameters / (platform_.memory_gb_s * 1e9 * std::min(1.0, 1.0 * cores / platform_.cores));
  return cost;
}

std::optional<Costs::OfLayer> DescribedCosts::OfOneLayer(std::size_t layer, std::size_t rows, int cores) const {
  const double forward = Seconds(layers_[layer], rows, cores);
  return OfLayer{forward, layers_[layer].backward * forward};
}

StepCost DescribedSparseCosts::Of(std::size_t rows, int) const {
  constexpr double kLine = 64;
  const double places = static_cast<double>(rows) * entries_;
  const double share = platform_.memory_gb_s * 1e9 / platform_.cores;  // updates are made in order, by one core
  StepCost cost;
  cost.compute = 2 * places * kLine / share;
  cost.apply = 2 * places * kLine / share;
  cost.finished.assign(blocks_, cost.compute);
  return cost;
}

}  // namespace freshet::simulate
