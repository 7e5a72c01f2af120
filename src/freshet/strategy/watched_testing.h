#pragma once

#include <functional>

#include "model/partials.h"

namespace freshet::strategy {

// Another model, with something done before each of its gradients.
class Watched final : public model::Model, public model::Partials {
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

  const model::Partials* partials() const override { return inside_.partials() == nullptr ? nullptr : this; }
  Cut cut(std::size_t block) const override { return inside_.partials()->cut(block); }
  std::size_t width() const override { return inside_.partials()->width(); }
  void Begin(std::span<float> partials) const override { inside_.partials()->Begin(partials); }
  void Merge(const optimize::Parameters& own, const data::Batch& batch, model::Workspace& workspace,
             std::span<float> partials) const override {
    inside_.partials()->Merge(own, batch, workspace, partials);
  }
  double Close(optimize::Parameters& own, const data::Batch& batch, model::Workspace& workspace,
               std::span<float> partials, std::size_t first, std::size_t last, std::span<float> out) const override {
    return inside_.partials()->Close(own, batch, workspace, partials, first, last, out);
  }
  void AddGradient(const optimize::Parameters& own, const data::Batch& batch, model::Workspace& workspace,
                   std::span<const float> closed, optimize::Gradient& gradient) const override {
    before_(batch);
    inside_.partials()->AddGradient(own, batch, workspace, closed, gradient);
  }

 private:
  const Model& inside_;
  const Before before_;
};

}  // namespace freshet::strategy
