#pragma once

#include <functional>

#include "model/partials.h"
#include "simulate/costs.h"

namespace freshet::simulate {

// A model that takes the time its computing would. With real values it computes, too, and the results are its own; else
// parameters and gradients are hollow (base/hollow.h), nothing is computed, and only the moments at which gradients are
// complete are real.
//
// Ownership: borrows all it is given.
class CostedModel : public model::Model, public model::Partials {
 public:
  enum class Values { kReal, kNone };
  // `spend` takes so many seconds of so many cores.
  using Spend = std::function<void(double seconds, int cores)>;
  // Told the summed loss of rows before they are learned from, when that has taken its time.
  using Told = std::function<void(double loss, std::size_t rows)>;
  // `members` share in each row, where parameters are spread.
  CostedModel(const model::Model& inner, const Costs& costs, Values values, Spend spend, Told told = {},
              int members = 1);

  model::Traits traits() const override;
  std::vector<optimize::Block> Blocks() const override { return inner_.Blocks(); }
  Result<void> Prepare(optimize::Parameters& parameters, const data::Batch& batch) const override;
  Result<void> MakeRoom(optimize::Parameters& parameters, std::span<const std::uint64_t> rows) const override {
    return inner_.MakeRoom(parameters, rows);
  }
  void Predict(const optimize::Parameters& parameters, const data::Batch& batch, model::Workspace& workspace,
               std::span<float> out) const override;
  Result<void> Reserve(std::size_t rows, model::Workspace& workspace) const override;
  double LossAndGradient(const optimize::Parameters& parameters, const data::Batch& batch, model::Workspace& workspace,
                         optimize::Gradient& gradient, std::span<float> out) const override;
  double Update(optimize::Parameters& parameters, const data::Batch& batch, optimize::Optimizer& optimizer,
                model::Workspace& workspace, std::span<float> out, optimize::Optimizer::Sharing sharing) const override;
  void Touch(const optimize::Parameters& parameters, const data::Batch& batch,
             optimize::RowSets& touched) const override;
  void Observe(optimize::Parameters& parameters, const data::Batch& batch,
               optimize::Optimizer& optimizer) const override;
  Observes observes(const optimize::Parameters& parameters, const optimize::Optimizer& optimizer) const override;
  void Apply(optimize::Parameters& parameters, optimize::Gradient& gradient, double weight,
             optimize::Optimizer& optimizer, model::Workspace& workspace) const override;
  Result<optimize::Gradient> NewGradient(optimize::Memory& memory,
                                         const optimize::Portion& portion = {}) const override;
  Result<optimize::Parameters> NewParameters(optimize::Memory& memory, int slots = 0,
                                             const optimize::Portion& portion = {}) const override;
  bool GivesFactors(std::size_t block) const override { return real() && inner_.GivesFactors(block); }
  bool Supervised() const override { return inner_.Supervised(); }
  bool WantsScaledLabels() const override { return inner_.WantsScaledLabels(); }

  const model::Partials* partials() const override { return real() && inner_.partials() != nullptr ? this : nullptr; }
  Cut cut(std::size_t block) const override { return inner_.partials()->cut(block); }
  std::size_t width() const override { return inner_.partials()->width(); }
  void Begin(std::span<float> partials) const override { inner_.partials()->Begin(partials); }
  void Merge(const optimize::Parameters& own, const data::Batch& batch, model::Workspace& workspace,
             std::span<float> partials) const override;
  double Close(optimize::Parameters& own, const data::Batch& batch, model::Workspace& workspace,
               std::span<float> partials, std::size_t first, std::size_t last, std::span<float> out) const override;
  void AddGradient(const optimize::Parameters& own, const data::Batch& batch, model::Workspace& workspace,
                   std::span<const float> closed, optimize::Gradient& gradient) const override;

 private:
  bool real() const { return values_ == Values::kReal; }
  void SpendHalf(std::size_t rows, int threads) const;  // of what a member computes of them

  const model::Model& inner_;
  const Costs& costs_;
  const Values values_;
  const Spend spend_;
  const Told told_;
  const int members_;
};

}  // namespace freshet::simulate
