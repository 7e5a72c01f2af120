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
  for (std::size_t b = 0; b < parameters.blocks(); ++b) TRY(CopyRows(other, b, 0, other.parameters.rows(b)));
  CopyRest(other);
  return {};
}

Result<void> State::CopyRows(const State& other, std::size_t b, std::uint64_t first, std::uint64_t last) {
  CHECK(parameters.stride(b) == other.parameters.stride(b));
  TRY(parameters.Grow(b, last));
  parameters.CopyRows(other.parameters, b, first, last);
  const optimize::Parameters& from = other.optimizer->state();
  if (from.rows(b) == 0) return {};  // what the optimizer remembers lies beside the rows
  TRY(optimizer->state().Grow(b, last));
  optimizer->state().CopyRows(from, b, first, last);
  return {};
}

void State::CopyRest(const State& other) {
  optimizer->SetScale(1);
  optimizer->SetStep(other.optimizer->step());
  moments = other.moments;
  target = other.target;
}

Result<double> State::Learn(const model::Model& model, data::Rows& rows, std::vector<float>& scores) {
  if (moments.columns() > 0) train::Standardise(moments, rows);
  if (view != nullptr) view->ForPrediction(rows);
  return Update(model, rows, Met::kFirst, scores);
}

Result<double> State::Repeat(const model::Model& model, data::Rows& rows, double scale, std::vector<float>& scores) {
  if (moments.columns() > 0) train::ApplyMoments(moments, rows);
  if (view != nullptr) view->ForPrediction(rows);
  optimizer->SetScale(scale);
  auto loss = Update(model, rows, Met::kAgain, scores);
  optimizer->SetScale(1);
  return loss;
}

Result<double> State::Update(const model::Model& model, const data::Rows& rows, Met met, std::vector<float>& scores) {
  constexpr auto kAlone = optimize::Optimizer::Sharing::kAlone;
  const data::Batch batch = rows.batch();
  TRY(model.Prepare(parameters, batch));
  TRY(optimizer->Follow(parameters));
  const std::size_t k = model.scores();
  scores.resize(batch.rows * k);
  if (!target.any()) return model.Update(parameters, batch, *optimizer, workspace_, scores, kAlone);
  for (std::size_t begin = 0; begin < batch.rows;) {
    // While the target moves, each row is foretold by what it was before that row, however many come at once.
    const bool moves = met == Met::kFirst && target.moving();
    const std::size_t end = moves ? begin + 1 : batch.rows;
    data::Batch piece = batch.Slice(begin, end);
    const data::Target before = target;
    if (moves) target.Observe(piece.labels[0]);
    labels_.assign(piece.labels, piece.labels + piece.rows);
    target.Scale(labels_);
    piece.labels = labels_.data();
    const auto said = std::span(scores).subspan(begin * k, piece.rows * k);
    model.Update(parameters, piece, *optimizer, workspace_, said, kAlone);
    before.Unscale(said);
    begin = end;
  }
  return model.LossOf(parameters, batch, workspace_, scores);
}

void State::Predict(const model::Model& model, const data::Batch& batch, model::Workspace& workspace,
                    std::span<float> scores) const {
  model.Predict(parameters, batch, workspace, scores);
  target.Unscale(scores);
}

}  // namespace freshet::deploy
