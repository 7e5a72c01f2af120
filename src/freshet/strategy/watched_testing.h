#pragma once

#include <functional>

#include "model/model.h"

namespace freshet::strategy {

// Another model, with something done before each of its gradients.
class Watched final : public model::Model {
 public:
  using Before = std::function<void(const data::Batch& batch)>;
  Watched(const Model& inside, Before before)
      : Model(inside.config(), inside.loss()), inside_(inside), before_(std::move(before)) {}

  model::Traits traits() const override { return inside_.traits(); }
  std::vector<optimize::Block> Blocks() const override { return inside_.Blocks(); }
  Result<void> Prepare(optimize::Parameters& parameters, const data::Batch& batch) const override {
    return inside_.Prepare(parameters, batch);
  }
  void Predict(const optimize::Parameters& parameters, const data::Batch& batch, model::Workspace& workspace,
               std::span<float> out) const override {
    inside_.Predict(parameters, batch, workspace, out);
  }
  double LossAndGradient(const optimize::Parameters& parameters, const data::Batch& batch, model::Workspace& workspace,
                         optimize::Gradient& gradient, std::span<float> out) const override {
    before_(batch);
    return inside_.LossAndGradient(parameters, batch, workspace, gradient, out);
  }
  double Update(optimize::Parameters& parameters, const data::Batch& batch, optimize::Optimizer& optimizer,
                model::Workspace& workspace, std::span<float> out,
                optimize::Optimizer::Sharing sharing) const override {
    return inside_.Update(parameters, batch, optimizer, workspace, out, sharing);
  }
  void Touch(const optimize::Parameters& parameters, const data::Batch& batch,
             optimize::RowSets& touched) const override {
    inside_.Touch(parameters, batch, touched);
  }
  void Observe(optimize::Parameters& parameters, const data::Batch& batch,
               optimize::Optimizer& optimizer) const override {
    inside_.Observe(parameters, batch, optimizer);
  }
  Observes observes(const optimize::Parameters& parameters, const optimize::Optimizer& optimizer) const override {
    return inside_.observes(parameters, optimizer);
  }
  void Apply(optimize::Parameters& parameters, optimize::Gradient& gradient, double weight,
             optimize::Optimizer& optimizer, model::Workspace& workspace) const override {
    inside_.Apply(parameters, gradient, weight, optimizer, workspace);
  }
  Result<optimize::Gradient> NewGradient(optimize::Memory& memory, const optimize::Portion& portion) const override {
    return inside_.NewGradient(memory, portion);
  }
  bool GivesFactors(std::size_t block) const override { return inside_.GivesFactors(block); }
  bool Supervised() const override { return inside_.Supervised(); }

 private:
  const Model& inside_;
  const Before before_;
};

}  // namespace freshet::strategy
