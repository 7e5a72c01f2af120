#pragma once

#include "model/network/backend.h"
#include "model/network/network.h"
#include "simulate/costed_model.h"

namespace freshet::simulate {

// A back-end whose layers take the time their computing would and compute nothing: what comes out is zeros, and the
// gradients of parameters are only said to be there.
//
// Threads: one at a time. Ownership: borrows costs.
class CostedBackend final : public model::network::Backend {
 public:
  // `blocks`: of each layer, how many it has. `cores`: that each layer is computed with.
  CostedBackend(const Costs& costs, std::vector<std::size_t> blocks, int cores, CostedModel::Spend spend)
      : costs_(costs), blocks_(std::move(blocks)), cores_(cores), spend_(std::move(spend)) {}

  std::string_view name() const override { return "costs"; }
  std::shared_ptr<model::network::Context> MakeContext() const override;
  model::network::Layout PlainLayout(std::size_t rows, const model::network::Shape& shape) const override;
  bool CanFuse(const model::network::Layer&, const model::network::Layer&) const override { return false; }
  Result<std::unique_ptr<model::network::Kernel>> MakeKernel(const model::network::KernelSpec& spec) const override;
  Result<std::unique_ptr<model::network::Kernel>> MakePlain(const model::network::KernelSpec& spec) const override;
  int UseThreads(int threads) const override { return threads; }
  void InParallel(std::size_t, std::size_t, model::network::RangeWork) const override {}
  void AddInto(float*, const float*, std::size_t) const override {}

 private:
  const Costs& costs_;
  const std::vector<std::size_t> blocks_;
  const int cores_;
  const CostedModel::Spend spend_;
};

// A network of such layers, for strategies that run its layers themselves or cut them. An update takes its time for the parameters of
// which there is a gradient.
class CostedNetwork final : public CostedModel, public model::network::Layered {
 public:
  // kInvalid when the model is no network, or what its layers cost is not known one by one.
  static Result<std::unique_ptr<CostedNetwork>> Make(const model::Model& inner, const Costs& costs, int cores,
                                                     const Spend& spend);

  const model::network::Graph& graph() const override { return graph_; }
  const model::network::Backend& backend() const override { return backend_; }
  // With slices the rows that go to and fro between them do, too, at the moments at which they would.
  double LossAndGradient(const optimize::Parameters& parameters, const data::Batch& batch, model::Workspace& workspace,
                         optimize::Gradient& gradient, std::span<float> out) const override;
  void Apply(optimize::Parameters& parameters, optimize::Gradient& gradient, double weight,
             optimize::Optimizer& optimizer, model::Workspace& workspace) const override;

 private:
  CostedNetwork(const model::Model& inner, const model::network::Graph& graph, std::vector<model::network::Facts> facts,
                const Costs& costs, int cores, const Spend& spend);
  void RunLayer(std::size_t layer, bool backward, std::size_t rows, model::Workspace& workspace) const;

  const model::network::Graph& graph_;
  const std::vector<model::network::Facts> facts_;
  const std::vector<bool> learning_;
  const Costs& costs_;
  const int cores_;
  const Spend spend_;
  const CostedBackend backend_;
};

}  // namespace freshet::simulate
