#include "simulate/costed_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace freshet::simulate {

CostedModel::CostedModel(const model::Model& inner, const Costs& costs, Values values, Spend spend, Told told,
                         int members)
    : Model(inner.config(), inner.loss()),
      inner_(inner),
      costs_(costs),
      values_(values),
      spend_(std::move(spend)),
      told_(std::move(told)),
      members_(members) {}

model::Traits CostedModel::traits() const {
  model::Traits traits = inner_.traits();
  if (!real()) traits.sums_over_workers = false;  // there is nothing to sum while nothing is computed
  return traits;
}

Result<void> CostedModel::Prepare(optimize::Parameters& parameters, const data::Batch& batch) const {
  return real() ? inner_.Prepare(parameters, batch) : Result<void>();
}

void CostedModel::Predict(const optimize::Parameters& parameters, const data::Batch& batch, model::Workspace& workspace,
                          std::span<float> out) const {
  if (real()) inner_.Predict(parameters, batch, workspace, out);
}

Result<void> CostedModel::Reserve(std::size_t rows, model::Workspace& workspace) const {
  return real() ? inner_.Reserve(rows, workspace) : Result<void>();
}

double CostedModel::LossAndGradient(const optimize::Parameters& parameters, const data::Batch& batch,
                                    model::Workspace& workspace, optimize::Gradient& gradient,
                                    std::span<float> out) const {
  const auto finished = std::exchange(workspace.finished, nullptr);
  double loss = 0;
  if (real())
    loss = inner_.LossAndGradient(parameters, batch, workspace, gradient, out);
  else
    for (optimize::BlockGradient& block : gradient.blocks) block.SetFull();
  if (batch.rows == 0) return loss;
  const StepCost cost = costs_.Of(batch.rows, workspace.threads);
  std::vector<std::size_t> order(cost.finished.size());
  std::iota(order.rbegin(), order.rend(), 0);  // the last first, where several are complete at once
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return cost.finished[a] < cost.finished[b]; });
  double spent = 0;
  for (const std::size_t block : order) {
    if (!finished) break;
    spend_(cost.finished[block] - std::exchange(spent, cost.finished[block]), workspace.threads);
    finished(block);
  }
  spend_(cost.compute - spent, workspace.threads);
  workspace.finished = finished;
  if (told_) told_(loss, batch.rows);
  return loss;
}

double CostedModel::Update(optimize::Parameters& parameters, const data::Batch& batch, optimize::Optimizer& optimizer,
                           model::Workspace& workspace, std::span<float> out,
                           optimize::Optimizer::Sharing sharing) const {
  CHECK(real());  // rows one by one are computed or not simulated
  const StepCost cost = costs_.Of(batch.rows, workspace.threads);
  spend_(cost.compute + cost.apply, workspace.threads);
  const double loss = inner_.Update(parameters, batch, optimizer, workspace, out, sharing);
  if (told_) told_(loss, batch.rows);
  return loss;
}

void CostedModel::Touch(const optimize::Parameters& parameters, const data::Batch& batch,
                        optimize::RowSets& touched) const {
  inner_.Touch(parameters, batch, touched);
}

void CostedModel::Observe(optimize::Parameters& parameters, const data::Batch& batch,
                          optimize::Optimizer& optimizer) const {
  if (real()) inner_.Observe(parameters, batch, optimizer);
}

model::Model::Observes CostedModel::observes(const optimize::Parameters& parameters,
                                             const optimize::Optimizer& optimizer) const {
  return real() ? inner_.observes(parameters, optimizer) : Observes::kNothing;
}

void CostedModel::Apply(optimize::Parameters& parameters, optimize::Gradient& gradient, double weight,
                        optimize::Optimizer& optimizer, model::Workspace& workspace) const {
  // What touches rows takes as long as it has rows.
  const auto rows = static_cast<std::size_t>(config().dense ? 1 : std::max(std::round(weight), 1.0));
  spend_(costs_.Of(rows, workspace.threads).apply / members_, workspace.threads);
  if (real())
    inner_.Apply(parameters, gradient, weight, optimizer, workspace);
  else
    optimizer.BeginStep();
}

void CostedModel::SpendHalf(std::size_t rows, int threads) const {
  if (rows > 0) spend_(costs_.Of(rows, threads).compute / (2 * members_), threads);
}

void CostedModel::Merge(const optimize::Parameters& own, const data::Batch& batch, model::Workspace& workspace,
                        std::span<float> partials) const {
  inner_.partials()->Merge(own, batch, workspace, partials);
  SpendHalf(batch.rows, workspace.threads);
}

double CostedModel::Close(optimize::Parameters& own, const data::Batch& batch, model::Workspace& workspace,
                          std::span<float> partials, std::size_t first, std::size_t last, std::span<float> out) const {
  const double loss = inner_.partials()->Close(own, batch, workspace, partials, first, last, out);
  if (told_ && last > first) told_(loss, last - first);
  return loss;
}

void CostedModel::AddGradient(const optimize::Parameters& own, const data::Batch& batch, model::Workspace& workspace,
                              std::span<const float> closed, optimize::Gradient& gradient) const {
  inner_.partials()->AddGradient(own, batch, workspace, closed, gradient);
  SpendHalf(batch.rows, workspace.threads);
}

Result<optimize::Gradient> CostedModel::NewGradient(optimize::Memory& memory, const optimize::Portion& portion) const {
  if (real()) return inner_.NewGradient(memory, portion);
  return optimize::Gradient::Dense(portion.Of(Blocks()), memory);
}

Result<optimize::Parameters> CostedModel::NewParameters(optimize::Memory& memory, int slots,
                                                        const optimize::Portion& portion) const {
  return real() ? inner_.NewParameters(memory, slots, portion) : Model::NewParameters(memory, slots, portion);
}

}  // namespace freshet::simulate
