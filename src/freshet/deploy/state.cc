#include "deploy/state.h"

#include <algorithm>
#include <cmath>

#include "data/standardise.h"

namespace freshet::deploy {
namespace {

// The largest number among the features, by size.
float Largest(const data::Batch& batch) {
  const std::size_t count = batch.sparse() ? batch.offsets[batch.rows] - batch.offsets[0] : batch.rows * batch.width;
  const float* const values = batch.sparse() ? batch.values + batch.offsets[0] : batch.dense;
  float most = 0;
#pragma omp simd reduction(max : most)
  for (std::size_t i = 0; i < count; ++i) most = std::max(most, std::abs(values[i]));
  return most;
}

// Whether there is a row among them that needs a closer look before it is learned from.
bool IsExtreme(const data::Batch& batch) {
  constexpr float kLarge = 1e9f;
  const auto beyond = [](float value) { return std::abs(value) > kLarge; };
  if (batch.weights != nullptr && std::any_of(batch.weights, batch.weights + batch.rows, beyond)) return true;
  if (std::any_of(batch.labels, batch.labels + batch.rows, beyond)) return true;
  return Largest(batch) > kLarge;
}

}  // namespace

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

namespace {

// What the optimizer remembers of a row, slot after slot: beside it or in a block of its own.
const float* Remembered(const State& state, std::size_t b, std::uint64_t row) {
  return state.parameters.block(b).beside > 0 ? state.parameters.Row(b, row) + state.parameters.width(b)
                                              : state.optimizer->state().Row(b, row);
}

}  // namespace

Result<void> State::TakeFewerClasses(const State& other) {
  CHECK(parameters.blocks() == other.parameters.blocks());
  for (std::size_t b = 0; b < parameters.blocks(); ++b) TRY(parameters.Grow(b, other.parameters.rows(b)));
  TRY(optimizer->Follow(parameters));
  const auto slots = static_cast<std::uint64_t>(optimizer->slots());
  for (std::size_t b = 0; b < parameters.blocks(); ++b) {
    const std::uint64_t width = parameters.width(b), narrow = other.parameters.width(b);
    CHECK(narrow <= width);
    for (std::uint64_t row = 0; row < other.parameters.rows(b); ++row) {
      std::copy_n(other.parameters.Row(b, row), narrow, parameters.Row(b, row));
      for (std::uint64_t slot = 0; slot < slots; ++slot)
        std::copy_n(Remembered(other, b, row) + slot * narrow, narrow,
                    const_cast<float*>(Remembered(*this, b, row)) + slot * width);
    }
  }
  CopyRest(other);
  return {};
}

Result<double> State::Learn(const model::Model& model, data::Rows& rows, std::vector<float>& scores) {
  if (moments.columns() > 0) data::Standardise(moments, rows);
  if (view != nullptr) view->ForPrediction(rows);
  return Update(model, rows, Met::kFirst, scores);
}

Result<double> State::Repeat(const model::Model& model, data::Rows& rows, double scale, std::vector<float>& scores) {
  if (moments.columns() > 0) data::ApplyMoments(moments, rows);
  if (view != nullptr) view->ForPrediction(rows);
  optimizer->SetScale(scale);
  auto loss = Update(model, rows, Met::kAgain, scores);
  optimizer->SetScale(1);
  return loss;
}

Result<double> State::Update(const model::Model& model, const data::Rows& rows, Met met, std::vector<float>& scores) {
  const data::Batch batch = rows.batch();
  TRY(model.Prepare(parameters, batch));
  TRY(optimizer->Follow(parameters));
  const std::size_t k = model.scores();
  scores.resize(batch.rows * k);
  if (!IsExtreme(batch)) [[likely]]
    return UpdateAll(model, batch, met, scores);
  double loss = 0;
  for (std::size_t r = 0; r < batch.rows; ++r) {
    const data::Batch row = batch.Slice(r, r + 1);
    const auto said = std::span(scores).subspan(r * k, k);
    if (IsBeyond(model, row, said))
      ++set_aside;
    else
      loss += UpdateAll(model, row, met, said);
  }
  return loss;
}

// Whether learning from the row could leave weights, or sums of squared gradients, that are no numbers any more.
bool State::IsBeyond(const model::Model& model, const data::Batch& row, std::span<float> scores) {
  constexpr double kMostLabel = 1e30, kMostLoss = 1e16;
  Predict(model, row, workspace_, scores);
  if (!IsExtreme(row)) return false;
  if (std::abs(row.labels[0]) > kMostLabel) return true;
  data::Target then = target;
  then.Observe(row.labels[0]);
  data::Batch scaled = row;
  labels_.assign(1, row.labels[0]);
  std::vector<float> said(scores.begin(), scores.end());
  for (float& score : said) score = static_cast<float>((score - then.mean()) / then.deviation());
  then.Scale(labels_);
  if (target.any()) scaled.labels = labels_.data();
  const double loss =
      model.LossOf(parameters, scaled, workspace_, target.any() ? std::span<const float>(said) : scores);
  return !(std::max<double>(loss, row.weight(0)) * std::max<double>(1, Largest(row)) <= kMostLoss);
}

double State::UpdateAll(const model::Model& model, const data::Batch& batch, Met met, std::span<float> scores) {
  constexpr auto kAlone = optimize::Optimizer::Sharing::kAlone;
  const std::size_t k = model.scores();
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
    const auto said = scores.subspan(begin * k, piece.rows * k);
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
