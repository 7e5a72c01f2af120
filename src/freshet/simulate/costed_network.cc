#include "simulate/costed_network.h"

#include <algorithm>

#include "base/option.h"

namespace freshet::simulate {
namespace {

using model::network::Call;
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
                 Str(Option("strategy"), " ring is simulated of networks whose layers have a cost each, ",
                     "as described for a platform")};
  std::vector<std::size_t> blocks;
  double floats = 0;
  for (const model::network::Facts& facts : TRY(model::network::Infer(*graph))) {
    blocks.push_back(facts.blocks.size());
    floats += static_cast<double>(facts.parameters());
  }
  return std::unique_ptr<CostedNetwork>(
      new CostedNetwork(inner, *graph, floats, costs, std::move(blocks), cores, spend));
}

CostedNetwork::CostedNetwork(const model::Model& inner, const model::network::Graph& graph, double floats,
                             const Costs& costs, std::vector<std::size_t> blocks, int cores, const Spend& spend)
    : CostedModel(inner, costs, Values::kNone, spend),
      graph_(graph),
      floats_(floats),
      costs_(costs),
      spend_(spend),
      backend_(costs, std::move(blocks), cores, spend) {}

void CostedNetwork::Apply(optimize::Parameters&, optimize::Gradient& gradient, double, optimize::Optimizer& optimizer,
                          model::Workspace& workspace) const {
  double mine = 0;
  for (const optimize::BlockGradient& block : gradient.blocks) mine += static_cast<double>(block.memory().size());
  spend_(costs_.Of(1, workspace.threads).apply * mine / std::max(floats_, 1.0), workspace.threads);
  optimizer.BeginStep();
}

}  // namespace freshet::simulate
