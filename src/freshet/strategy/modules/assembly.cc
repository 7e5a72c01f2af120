#include "strategy/modules/assembly.h"

#include <algorithm>
#include <map>

#include "model/network/layer_costs.h"

namespace freshet::strategy::modules {
namespace {

using model::network::Graph;

// By layer, the module it belongs to. Layers that no head depends on lie with those before them, and the input with the
// first.
std::vector<std::size_t> ModuleOfLayers(const std::vector<Module>& modules, std::size_t layers) {
  std::vector<std::size_t> of(layers, 0);
  for (std::size_t m = 0; m < modules.size(); ++m)
    for (int layer = modules[m].layers.first; layer < modules[m].layers.last; ++layer)
      of[static_cast<std::size_t>(layer)] = m;
  return of;
}

}  // namespace

std::vector<ring::LayerRange> Assembly::HeldBy(int member) const {
  std::vector<ring::LayerRange> held;
  for (const Module& module : modules)
    if (module.member == member) held.push_back(module.layers);
  return held;
}

std::vector<ring::Crossing> Assembly::Tensors(const std::vector<std::size_t>& of) const {
  std::vector<ring::Crossing> tensors;
  for (const std::size_t link : of) tensors.push_back(links[link].tensor);
  return tensors;
}

Result<Assembly> Assemble(const Graph& graph, const std::vector<model::network::Facts>& facts, std::size_t rows,
                          std::size_t micros) {
  if (!graph.placed())
    return Error{Code::kInvalid,
                 "the network does not say who holds its layers; say place = \"…\" at the first layer of each place in "
                 "its text (docs/modules.md)"};
  Assembly assembly;
  const std::vector<bool> used = model::network::Used(graph), learning = model::network::Learning(graph, facts);
  const std::vector<double> costs = model::network::TrainingCosts(graph, facts, rows, micros);
  for (std::size_t layer = 1; layer < graph.layers.size(); ++layer) {
    if (!used[layer]) continue;
    const std::string& place = graph.layers[layer].place;
    const auto known = std::find(assembly.places.begin(), assembly.places.end(), place);
    const auto member = static_cast<int>(known - assembly.places.begin());
    if (known == assembly.places.end()) assembly.places.push_back(place);
    const auto number = static_cast<int>(layer);
    if (assembly.modules.empty() || assembly.modules.back().member != member) {
      if (!assembly.modules.empty()) assembly.modules.back().layers.last = number;
      assembly.modules.push_back(
          {.layers = {assembly.modules.empty() ? 0 : number, number}, .member = member, .enters = {}, .leaves = {}});
    }
    assembly.modules.back().cost += costs[layer];
  }
  if (assembly.modules.size() > kMostModules)
    return Error{Code::kInvalid, Str("the network's places change ", assembly.modules.size() - 1,
                                     " times from layer to layer; at most ", kMostModules - 1, " times")};
  assembly.modules.back().layers.last = static_cast<int>(graph.layers.size());

  const std::vector<std::size_t> module_of = ModuleOfLayers(assembly.modules, graph.layers.size());
  std::map<int, std::vector<std::size_t>> readers;  // by layer
  for (std::size_t layer = 1; layer < graph.layers.size(); ++layer) {
    const std::size_t reader = module_of[layer];
    for (const int input : graph.layers[layer].inputs) {
      if (!used[layer] || input == 0 || module_of[static_cast<std::size_t>(input)] == reader) continue;
      std::vector<std::size_t>& of = readers[input];
      if (of.empty() || of.back() != reader) of.push_back(reader);
    }
  }
  std::size_t edges = 0;
  for (auto& [layer, to] : readers) {
    const auto at = static_cast<std::size_t>(layer);
    const std::size_t link = assembly.links.size();
    assembly.modules[module_of[at]].leaves.push_back(link);
    for (const std::size_t reader : to) assembly.modules[reader].enters.push_back(link);
    assembly.links.push_back({{layer, facts[at].elements(), learning[at]}, module_of[at], std::move(to), edges});
    edges += assembly.links.back().to.size();
  }
  if (edges > kMostEdges)
    return Error{Code::kInvalid, Str("between the network's places ", edges, " tensors travel; at most ", kMostEdges)};
  return assembly;
}

}  // namespace freshet::strategy::modules
