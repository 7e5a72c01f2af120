#include "deploy/state.h"

#include <cmath>

#include "train/trainer.h"

namespace freshet::deploy {

Result<std::unique_ptr<State>> State::Make(const model::Model& model, const optimize::OptimizerOptions& options,
                                           optimize::Memory& memory, const data::Moments& moments) {
  auto optimizer = TRY(optimize::Optimizer::Make(options, memory));
  auto parameters = TRY(model.NewParameters(memory, optimizer->slots()));
  TRY(optimizer->Follow(parameters));
  return std::unique_ptr<State>(new State(std::move(parameters), std::move(optimizer), moments));
}

bool State::CanTake(const State& other) const {
  for (std::size_t b = 0; b < parameters.blocks(); ++b)
    if (parameters.rows(b) > other.parameters.rows(b)) return false;
  return true;
}

Result<void> State::CopyFrom(const State& other) {
  CHECK(CanTake(other));
  for (std::size_t b = 0; b < parameters.blocks(); ++b) {
    CHECK(parameters.stride(b) == other.parameters.stride(b));
    TRY(parameters.Grow(b, other.parameters.rows(b)));
    parameters.CopyRows(other.parameters, b, 0, other.parameters.rows(b));
  }
  TRY(optimizer->Follow(parameters));
  const optimize::Parameters& from = other.optimizer->state();
  for (std::size_t b = 0; b < from.blocks(); ++b) optimizer->state().CopyRows(from, b, 0, from.rows(b));
  optimizer->SetScale(1);
  optimizer->SetStep(other.optimizer->step());
  moments = other.moments;
  return {};
}

Result<double> State::Learn(const model::Model& model, data::Rows& rows, std::vector<float>& scores) {
  if (moments.columns() > 0) train::Standardise(moments, rows);
  return Update(model, rows, scores);
}

Result<double> State::Repeat(const model::Model& model, data::Rows& rows, double scale, std::vector<float>& scores) {
  if (moments.columns() > 0) train::ApplyMoments(moments, rows);
  optimizer->SetScale(scale);
  auto loss = Update(model, rows, scores);
  optimizer->SetScale(1);
  return loss;
}

Result<double> State::Update(const model::Model& model, const data::Rows& rows, std::vector<float>& scores) {
  const data::Batch batch = rows.batch();
  TRY(model.Prepare(parameters, batch));
  TRY(optimizer->Follow(parameters));
  scores.resize(batch.rows * model.scores());
  return model.Update(parameters, batch, *optimizer, workspace_, scores, optimize::Optimizer::Sharing::kAlone);
}

}  // namespace freshet::deploy
