#include "model/network/slicing.h"

#include "base/check.h"
#include "model/network/graph.h"
#include "model/network/layer_costs.h"

namespace freshet::model::network {
namespace {

using Cut = Slicing::Cut;

}  // namespace

std::size_t SliceBegin(std::size_t count, int worker, int workers) {
  return count * static_cast<std::size_t>(worker) / static_cast<std::size_t>(workers);
}

Amounts BringRows(const Slicing& slicing, std::size_t columns, bool cut) {
  const auto share = [&](int worker) {
    return cut ? SliceBegin(columns, worker + 1, slicing.size) - SliceBegin(columns, worker, slicing.size) : columns;
  };
  Amounts amounts;
  for (int worker = 0; worker < slicing.size; ++worker) {
    amounts.to.push_back(slicing.rows[static_cast<std::size_t>(slicing.rank)] * share(worker));
    amounts.from.push_back(slicing.rows[static_cast<std::size_t>(worker)] * share(slicing.rank));
  }
  return amounts;
}

double NumbersSent(Cut cut, const Wide& layer, int workers, std::size_t rows) {
  const auto in = static_cast<double>(layer.inputs), out = static_cast<double>(layer.outputs);
  const auto n = static_cast<double>(workers);
  const double others = (n - 1) / n;
  if (cut == Cut::kWhole) return 2 * others * in * out;
  const double enters = cut == Cut::kInputs ? in / n : in, leaves = cut == Cut::kOutputs ? out / n : out;
  return others * static_cast<double>(rows) * (enters + 2 * leaves + (layer.wanted ? enters : 0));
}

std::vector<Cut> CutIntoSlices(const Graph& graph, const std::vector<Facts>& facts, int workers, std::size_t rows,
                               bool always) {
  std::vector<Cut> cuts(graph.layers.size(), Cut::kWhole);
  const auto least = static_cast<std::size_t>(workers);
  const std::vector<bool> learning = Learning(graph, facts);
  for (std::size_t i = 0; i < cuts.size() && workers > 1; ++i) {
    const Layer& layer = graph.layers[i];
    if (layer.op != Op::kDense || layer.per_step) continue;
    const std::size_t in = facts[i].blocks[0].width, out = facts[i].blocks[0].rows;
    const Wide wide{in, out, learning[static_cast<std::size_t>(layer.inputs[0])]};
    const auto sent = [&](Cut cut) { return NumbersSent(cut, wide, workers, rows); };
    Cut best = Cut::kWhole;
    for (const Cut cut : {Cut::kInputs, Cut::kOutputs}) {
      if ((cut == Cut::kInputs ? in : out) < least) continue;
      if (sent(cut) < sent(best) || (always && best == Cut::kWhole)) best = cut;
    }
    cuts[i] = best;
  }
  return cuts;
}

optimize::Portion PortionOf(const Slicing& slicing, const std::vector<Facts>& facts) {
  CHECK(slicing.cuts.size() == facts.size());
  optimize::Portion portion;
  portion.ranges.emplace();
  std::size_t block = 0;
  for (std::size_t i = 0; i < facts.size(); ++i)
    for (std::size_t k = 0; k < facts[i].blocks.size(); ++k, ++block) {
      optimize::Portion::Range range{.block = block};
      const auto slice = [&](std::size_t count, std::uint64_t& first, std::uint64_t& size) {
        first = SliceBegin(count, slicing.rank, slicing.size);
        size = SliceBegin(count, slicing.rank + 1, slicing.size) - first;
      };
      if (k == 0 && slicing.cuts[i] == Cut::kOutputs) slice(facts[i].blocks[0].rows, range.first_row, range.rows);
      if (k == 0 && slicing.cuts[i] == Cut::kInputs) slice(facts[i].blocks[0].width, range.first_column, range.columns);
      portion.ranges->push_back(range);
    }
  return portion;
}

}  // namespace freshet::model::network
