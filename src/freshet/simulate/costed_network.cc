#include "simulate/costed_network.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/hollow.h"
#include "base/option.h"
#include "model/network/layer_costs.h"

namespace freshet::simulate {
namespace {

using model::network::Call;
using model::network::Facts;
using model::network::Kernel;
using model::network::KernelSpec;
using model::network::Layout;

class CostedKernel final : public Kernel {
 public:
  CostedKernel(const KernelSpec& spec, Layout out, std::size_t blocks, Costs::OfLayer cost, int cores,
               const CostedModel::Spend& spend)
      : inputs_(spec.layouts), blocks_(blocks), cost_(cost), cores_(cores), spend_(spend) {
    output = std::move(out);
    needs_input = false;
  }

  void Forward(const Call& call) override {
    std::fill_n(call.output, output.floats(), 0.0f);
    if (cost_.forward > 0) spend_(cost_.forward, cores_);
  }
  void Backward(const Call& call) override {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (call.input_gradients[i] != nullptr) std::fill_n(call.input_gradients[i], inputs_[i].floats(), 0.0f);
    for (std::size_t b = 0; b < blocks_; ++b) call.gradient->blocks[call.block + b].SetFull();
    if (cost_.backward > 0) spend_(cost_.backward, cores_);
  }

 private:
  const std::vector<Layout> inputs_;
  const std::size_t blocks_;
  const Costs::OfLayer cost_;
  const int cores_;
  const CostedModel::Spend& spend_;  // the back-end's
};

std::vector<std::size_t> BlocksOf(const std::vector<Facts>& facts) {
  std::vector<std::size_t> blocks;
  for (const Facts& layer : facts) blocks.push_back(layer.blocks.size());
  return blocks;
}

}  // namespace

std::shared_ptr<model::network::Context> CostedBackend::MakeContext() const {
  return std::make_shared<model::network::Context>();
}

Layout CostedBackend::PlainLayout(std::size_t rows, const model::network::Shape& shape) const {
  std::size_t floats = rows;
  for (const std::int64_t extent : shape) floats *= static_cast<std::size_t>(extent);
  return {std::make_shared<Layout::Inside>(), floats * sizeof(float), true};
}

Result<std::unique_ptr<Kernel>> CostedBackend::MakeKernel(const KernelSpec& spec) const {
  const auto cost = costs_.OfOneLayer(spec.number, spec.rows, cores_);
  CHECK(cost.has_value());
  return std::unique_ptr<Kernel>(std::make_unique<CostedKernel>(spec, PlainLayout(spec.rows, spec.output),
                                                                blocks_[spec.number], *cost, cores_, spend_));
}

Result<std::unique_ptr<Kernel>> CostedBackend::MakePlain(const KernelSpec& spec) const {
  return std::unique_ptr<Kernel>(
      std::make_unique<CostedKernel>(spec, PlainLayout(spec.rows, spec.output), 0, Costs::OfLayer(), cores_, spend_));
}

Result<std::unique_ptr<CostedNetwork>> CostedNetwork::Make(const model::Model& inner, const Costs& costs, int cores,
                                                           const Spend& spend) {
  const model::network::Graph* const graph = model::network::GraphOf(inner);
  if (graph == nullptr || !costs.OfOneLayer(0, 1, cores))
    return Error{Code::kInvalid,
                 Str(Option("strategy"), " ring or slices is simulated of networks whose layers have a cost each, ",
                     "as described for a platform")};
  return std::unique_ptr<CostedNetwork>(
      new CostedNetwork(inner, *graph, TRY(model::network::Infer(*graph)), costs, cores, spend));
}

CostedNetwork::CostedNetwork(const model::Model& inner, const model::network::Graph& graph, std::vector<Facts> facts,
                             const Costs& costs, int cores, const Spend& spend)
    : CostedModel(inner, costs, Values::kNone, spend),
      graph_(graph),
      facts_(std::move(facts)),
      learning_(model::network::Learning(graph_, facts_)),
      costs_(costs),
      cores_(cores),
      spend_(spend),
      backend_(costs, BlocksOf(facts_), cores, spend) {}

// A layer of which this worker has a slice computes that for the rows of all, and exchanges rows before and after; any
// other its own.
void CostedNetwork::RunLayer(std::size_t layer, bool backward, std::size_t rows, model::Workspace& workspace) const {
  using model::network::BringRows, model::network::SliceBegin, model::network::Slicing;
  const Slicing& slicing = *workspace.slicing;
  const auto spend = [&](std::size_t of, double share) {
    if (of == 0) return;
    const Costs::OfLayer cost = costs_.OfOneLayer(layer, of, cores_).value();
    const double seconds = share * (backward ? cost.backward : cost.forward);
    if (seconds > 0) spend_(seconds, cores_);
  };
  const Slicing::Cut cut = slicing.cuts[layer];
  if (cut == Slicing::Cut::kWhole) return spend(rows, 1);
  const std::size_t in = facts_[layer].blocks[0].width, out = facts_[layer].blocks[0].rows;
  const bool by_inputs = cut == Slicing::Cut::kInputs;
  const auto exchange = [&](const model::network::Amounts& amounts) {
    std::vector<std::span<const float>> to;
    std::vector<std::span<float>> from;
    for (const std::size_t floats : amounts.to) to.push_back(base::HollowFloats(floats));
    for (const std::size_t floats : amounts.from) from.push_back(base::HollowFloats(floats));
    workspace.exchange(to, from);
  };
  exchange(BringRows(slicing, backward ? out : in, by_inputs != backward));
  const std::size_t whole = by_inputs ? in : out;
  const std::size_t mine =
      SliceBegin(whole, slicing.rank + 1, slicing.size) - SliceBegin(whole, slicing.rank, slicing.size);
  spend(std::accumulate(slicing.rows.begin(), slicing.rows.end(), std::size_t{0}),
        static_cast<double>(mine) / static_cast<double>(whole));
  if (!backward) return exchange(BringRows(slicing, out, !by_inputs).Back());
  const auto before = static_cast<std::size_t>(graph_.layers[layer].inputs[0]);
  if (learning_[before]) exchange(BringRows(slicing, in, by_inputs).Back());
}

double CostedNetwork::LossAndGradient(const optimize::Parameters& parameters, const data::Batch& batch,
                                      model::Workspace& workspace, optimize::Gradient& gradient,
                                      std::span<float> out) const {
  if (!workspace.slicing) return CostedModel::LossAndGradient(parameters, batch, workspace, gradient, out);
  for (std::size_t layer = 0; layer < facts_.size(); ++layer) RunLayer(layer, false, batch.rows, workspace);
  std::size_t block = gradient.blocks.size();
  for (std::size_t layer = facts_.size(); layer-- > 0;) {
    RunLayer(layer, true, batch.rows, workspace);
    for (std::size_t b = facts_[layer].blocks.size(); b-- > 0;) {
      gradient.blocks[--block].SetFull();
      if (workspace.finished) workspace.finished(block);
    }
  }
  return 0;
}

void CostedNetwork::Apply(optimize::Parameters&, optimize::Gradient& gradient, double, optimize::Optimizer& optimizer,
                          model::Workspace& workspace) const {
  double mine = 0, all = 0;
  for (const optimize::BlockGradient& block : gradient.blocks) mine += static_cast<double>(block.memory().size());
  for (const Facts& facts : facts_) all += static_cast<double>(facts.parameters());
  spend_(costs_.Of(1, workspace.threads).apply * mine / std::max(all, 1.0), workspace.threads);
  optimizer.BeginStep();
}

}  // namespace freshet::simulate
