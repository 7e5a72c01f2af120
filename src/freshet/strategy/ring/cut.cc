#include "strategy/ring/cut.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/option.h"
#include "model/network/layer_costs.h"

namespace freshet::strategy::ring {
namespace {

using model::network::Facts;
using model::network::Graph;

constexpr double kSlack = 1.05;  // of the dearest stage, for which fewer bytes may travel

// Can it be cut into so many stages, none of them dearer?
bool Fits(const Places& places, std::size_t stages, double most) {
  std::size_t needed = 1, first = 0;
  for (std::size_t k = 0; k < places.count(); ++k)
    if (places.CostBetween(first, k + 1) > most) {
      if (k == first || ++needed > stages) return false;
      first = k;
    }
  return true;
}

double CheapestDearest(const Places& places, std::size_t stages) {
  double low = places.dearest(), high = places.CostBetween(0, places.count());
  if (Fits(places, stages, low)) return low;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (Fits(places, stages, middle) ? high : low) = middle;
  }
  return high;
}

// Where stages begin, of all ways in which none is dearer than `most` that by which the least travels, and of these the
// most equal one.
std::vector<std::size_t> Begins(const Places& places, std::size_t stages, double most) {
  using Worth = std::pair<double, double>;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const std::size_t count = places.count();
  std::vector<Worth> best(count + 1, {kNever, kNever});  // of the first k layers in so many stages
  std::vector<std::vector<std::size_t>> from(stages + 1, std::vector<std::size_t>(count + 1, 0));
  best[0] = {0, 0};
  for (std::size_t stage = 1; stage <= stages; ++stage) {
    std::vector<Worth> with(count + 1, {kNever, kNever});
    for (std::size_t k = stage; k <= count; ++k)
      for (std::size_t j = k; j-- > stage - 1 && places.CostBetween(j, k) <= most;) {
        const double cost = places.CostBetween(j, k);
        const Worth worth{best[j].first + (j == 0 ? 0 : places.floats(j)), best[j].second + cost * cost};
        if (worth < with[k]) {
          with[k] = worth;
          from[stage][k] = j;
        }
      }
    best = std::move(with);
  }
  CHECK(best[count].first < kNever);
  std::vector<std::size_t> begins(stages);
  for (std::size_t stage = stages, k = count; stage > 0; --stage) begins[stage - 1] = k = from[stage][k];
  return begins;
}

// How dear the dearest member is, and of equals how unequal all are.
std::pair<double, double> Dearest(const Places& places, const std::vector<std::size_t>& begins, std::size_t members) {
  std::vector<double> costs(members, 0);
  for (std::size_t s = 0; s < begins.size(); ++s)
    costs[s % members] += places.CostBetween(begins[s], s + 1 < begins.size() ? begins[s + 1] : places.count());
  std::pair<double, double> dearest(0, 0);
  for (const double cost : costs) {
    dearest.first = std::max(dearest.first, cost);
    dearest.second += cost * cost;
  }
  return dearest;
}

// Of members that hold several stages each, what all of one's cost together counts: edges move, one at a time, to where
// that makes the dearest member cheapest, until none does any more.
void Level(const Places& places, std::size_t members, std::vector<std::size_t>& begins) {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 1; s < begins.size(); ++s) {
      const std::size_t end = s + 1 < begins.size() ? begins[s + 1] : places.count(), here = begins[s];
      auto best = std::pair(Dearest(places, begins, members), here);
      for (std::size_t at = begins[s - 1] + 1; at < end; ++at) {
        begins[s] = at;
        if (const auto cost = Dearest(places, begins, members); cost < best.first) best = {cost, at};
      }
      begins[s] = best.second;
      moved = moved || best.second != here;
    }
  }
}

}  // namespace

Places::Places(const Graph& graph, const std::vector<Facts>& facts, const model::network::Backend& backend,
               const CutOptions& options) {
  const std::vector<bool> used = model::network::Used(graph), learning = model::network::Learning(graph, facts);
  const std::vector<double> costs = model::network::TrainingCosts(graph, facts, options.rows, options.micros);
  for (std::size_t layer = 0; layer < graph.layers.size(); ++layer)
    layers_.push_back({facts[layer].elements(), facts[layer].parameters(), learning[layer], 0});
  std::vector<int> readers(graph.layers.size(), 0);
  for (std::size_t layer = 1; layer < graph.layers.size(); ++layer) {
    if (!used[layer]) continue;
    begins_.push_back(static_cast<int>(layer));
    before_.push_back(before_.back() + costs[layer]);
    for (const int input : graph.layers[layer].inputs) {
      layers_[static_cast<std::size_t>(input)].last_reader = static_cast<int>(layer);
      ++readers[static_cast<std::size_t>(input)];
    }
  }
  for (std::size_t place = 0; place < count(); ++place) {
    double floats = 0;
    for (const Crossing& crossing : At(place))
      floats += static_cast<double>(crossing.elements) * (crossing.learns ? 2 : 1);
    // An activation that is computed with the layer before it is better not cut off.
    const auto& layer = graph.layers[static_cast<std::size_t>(begins_[place])];
    const auto input = static_cast<std::size_t>(layer.inputs[0]);
    if (readers[input] == 1 && backend.CanFuse(graph.layers[input], layer)) floats *= 2;
    floats_.push_back(floats);
  }
}

double Places::dearest() const {
  double most = 0;
  for (std::size_t k = 0; k < count(); ++k) most = std::max(most, CostBetween(k, k + 1));
  return most;
}

// Layers that do not count lie with those before them.
int Places::LayerAt(std::size_t place) const {
  if (place == 0) return 0;
  return place == count() ? static_cast<int>(layers_.size()) : begins_[place];
}

std::size_t Places::PlaceOf(int layer) const {
  if (layer == 0) return 0;
  return static_cast<std::size_t>(std::lower_bound(begins_.begin(), begins_.end(), layer) - begins_.begin());
}

std::vector<Crossing> Places::At(std::size_t place) const {
  const int cut = place == 0 ? 1 : LayerAt(place);
  std::vector<Crossing> crossing;
  for (int layer = 1; layer < cut; ++layer) {
    const Layer& one = layers_[static_cast<std::size_t>(layer)];
    if (one.last_reader >= cut) crossing.push_back({layer, one.elements, one.learns});
  }
  return crossing;
}

StageCut Places::Between(std::size_t first, std::size_t last) const {
  StageCut stage;
  stage.first = LayerAt(first);
  stage.last = LayerAt(last);
  stage.cost = CostBetween(first, last);
  for (int layer = stage.first; layer < stage.last; ++layer)
    stage.parameters += layers_[static_cast<std::size_t>(layer)].parameters;
  stage.enters = At(first);
  return stage;
}

Result<std::vector<StageCut>> CutNetwork(const Graph& graph, const std::vector<Facts>& facts,
                                         const model::network::Backend& backend, const CutOptions& options) {
  const Places places(graph, facts, backend, options);
  const auto stages = static_cast<std::size_t>(options.members) * static_cast<std::size_t>(options.stages_each);
  if (places.count() < stages)
    return Error{Code::kInvalid,
                 Str("a network of ", places.count(), " layers cannot be cut into ", stages, " stages, ",
                     options.stages_each, " for each of ", options.members, " members of a ring; use fewer workers",
                     options.stages_each > 1 ? Str(" or ", Option("stages"), " 1") : "")};
  auto begins = Begins(places, stages, kSlack * CheapestDearest(places, stages));
  if (options.stages_each > 1) Level(places, static_cast<std::size_t>(options.members), begins);
  std::vector<StageCut> cut;
  for (std::size_t s = 0; s < stages; ++s)
    cut.push_back(places.Between(begins[s], s + 1 < stages ? begins[s + 1] : places.count()));
  return cut;
}

}  // namespace freshet::strategy::ring
