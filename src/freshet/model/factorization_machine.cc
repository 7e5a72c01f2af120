// Factorization machines (Rendle 2010): bias + Σ w_i x_i + Σ_{i<j} (v_i · v_j) x_i x_j, in time linear in the entries:
// the pairs' sum is ½ Σ_f [ (Σ_i v_if x_i)² − Σ_i v_if² x_i² ]. Sparse rows of one index space.

#include <algorithm>

#include "model/kinds.h"
#include "model/partials.h"
#include "model/vector.h"

namespace freshet::model {
namespace {

using data::Batch;
using optimize::Gradient;
using optimize::Optimizer;
using optimize::Parameters;

constexpr std::size_t kBias = 0, kWeights = 1, kFactors = 2;
constexpr std::uint64_t kMostFeatures = 1u << 26;

class FactorizationMachine final : public Model, public Partials {
 public:
  using Model::Model;
  Traits traits() const override { return {.by_lbfgs = true, .met_by_entry = config_.factors + 1}; }
  const Partials* partials() const override { return this; }

  std::vector<optimize::Block> Blocks() const override {
    return {{"bias", 1, 1}, {"weights", 0, 1, kMostFeatures}, {"factors", 0, config_.factors, kMostFeatures}};
  }

  Result<void> Prepare(Parameters& parameters, const Batch& batch) const override {
    const std::uint64_t before = parameters.rows(kFactors), end = IndexEnd(batch);
    if (end <= before) return {};
    TRY(parameters.Grow(kWeights, end));
    TRY(parameters.Grow(kFactors, end));
    StartRows(parameters, kFactors, before, end, before);
    return {};
  }

  void StartRows(Parameters& parameters, std::size_t b, std::uint64_t first, std::uint64_t last,
                 std::uint64_t as) const override {
    if (b == kFactors) StartFactors(parameters, b, first, last, as);
  }

  void Predict(const Parameters& parameters, const Batch& batch, Workspace& workspace,
               std::span<float> out) const override {
    for (std::size_t r = 0; r < batch.rows; ++r) out[r] = Score(parameters, batch, r, workspace.sums);
  }

  double LossAndGradient(const Parameters& parameters, const Batch& batch, Workspace& workspace, Gradient& gradient,
                         std::span<float> out) const override {
    double sum = 0;
    for (std::size_t r = 0; r < batch.rows; ++r) {
      out[r] = Score(parameters, batch, r, workspace.sums);
      float delta = 0;
      sum += batch.weight(r) * loss_.Evaluate(out.subspan(r, 1), batch.labels[r], {&delta, 1});
      delta *= batch.weight(r);
      *gradient.blocks[kBias].Touch(0) += delta;
      AddEntryGradients(parameters, batch, r, workspace.sums, delta, workspace, gradient);
    }
    return sum;
  }

  double Update(Parameters& parameters, const Batch& batch, Optimizer& optimizer, Workspace& workspace,
                std::span<float> out, Optimizer::Sharing sharing) const override {
    CHECK(sharing == Optimizer::Sharing::kAlone);
    double sum = 0;
    for (std::size_t r = 0; r < batch.rows; ++r) {
      out[r] = Score(parameters, batch, r, workspace.sums);
      float delta = 0;
      sum += batch.weight(r) * loss_.Evaluate(out.subspan(r, 1), batch.labels[r], {&delta, 1});
      delta *= batch.weight(r);
      optimizer.BeginStep();
      if (delta == 0) continue;
      const std::uint32_t begin = batch.offsets[r], count = batch.offsets[r + 1] - begin;
      optimizer.UpdateRow(parameters, kBias, 0, {&delta, 1});
      optimizer.UpdateRows(parameters, kWeights, {batch.indices + begin, count}, {batch.values + begin, count},
                           {&delta, 1}, sharing);
      for (std::uint32_t e = begin; e < begin + count; ++e) {
        FactorGradient(parameters.Row(kFactors, batch.indices[e]), workspace.sums, batch.values[e], delta,
                       workspace.row);
        optimizer.UpdateRow(parameters, kFactors, batch.indices[e], workspace.row);
      }
    }
    return sum;
  }

  void Touch(const Parameters&, const Batch& batch, optimize::RowSets& touched) const override {
    touched[kBias].Add(0);
    TouchIndices(batch, touched[kWeights]);
    TouchIndices(batch, touched[kFactors]);
  }

  // Partials: Σ w_i x_i − ½ Σ v_if² x_i², of which the derivative of the loss takes the place, and Σ v_if x_i by f.
  Cut cut(std::size_t block) const override { return block == kBias ? Cut::kFirst : Cut::kFeatures; }
  std::size_t width() const override { return config_.factors + 1; }
  void Merge(const Parameters& own, const Batch& batch, Workspace&, std::span<float> partials) const override {
    for (std::size_t r = 0; r < batch.rows; ++r) {
      float* const row = partials.data() + r * width();
      if (own.held(kBias)) row[0] += *own.Row(kBias, 0);
      float squares = 0;
      AddEntries(own, batch, r, row[0], squares, row + 1);
      row[0] -= 0.5f * squares;
    }
  }
  double Close(Parameters&, const Batch& batch, Workspace&, std::span<float> partials, std::size_t first,
               std::size_t last, std::span<float> out) const override {
    double sum = 0;
    for (std::size_t r = 0; r < batch.rows; ++r) {
      float* const row = partials.data() + r * width();
      const float score = row[0] + 0.5f * Dot(row + 1, row + 1, config_.factors);
      const double loss = loss_.Evaluate({&score, 1}, batch.labels[r], {row, 1});
      row[0] *= batch.weight(r);
      if (r < first || last <= r) continue;
      sum += batch.weight(r) * loss;
      out[r - first] = score;
    }
    return sum;
  }
  void AddGradient(const Parameters& own, const Batch& batch, Workspace& workspace, std::span<const float> closed,
                   Gradient& gradient) const override {
    for (std::size_t r = 0; r < batch.rows; ++r) {
      const auto row = closed.subspan(r * width(), width());
      if (own.held(kBias)) *gradient.blocks[kBias].Touch(0) += row[0];
      AddEntryGradients(own, batch, r, row.subspan(1), row[0], workspace, gradient);
    }
  }

 private:
  // The score of a row; leaves Σ_i v_if x_i in `sums`.
  float Score(const Parameters& parameters, const Batch& batch, std::size_t r, std::vector<float>& sums) const {
    sums.assign(config_.factors, 0);
    float score = *parameters.Row(kBias, 0), squares = 0;
    AddEntries(parameters, batch, r, score, squares, sums.data());
    return score + 0.5f * (Dot(sums.data(), sums.data(), sums.size()) - squares);
  }

  // Adds Σ w_i x_i to the score, Σ_i Σ_f v_if² x_i² to `squares`, and Σ_i v_if x_i to the sums by f.
  void AddEntries(const Parameters& parameters, const Batch& batch, std::size_t r, float& score, float& squares,
                  float* sums) const {
    const std::size_t k = config_.factors;
    for (std::uint32_t e = batch.offsets[r]; e < batch.offsets[r + 1]; ++e) {
      const std::uint32_t index = batch.indices[e];
      if (index >= parameters.rows(kFactors)) continue;
      const float x = batch.values[e];
      const float* const v = parameters.Row(kFactors, index);
      score += *parameters.Row(kWeights, index) * x;
      squares += Dot(v, v, k) * x * x;
      AddScaled(sums, x, v, k);
    }
  }

  void AddEntryGradients(const Parameters& parameters, const Batch& batch, std::size_t r, std::span<const float> sums,
                         float delta, Workspace& workspace, Gradient& gradient) const {
    for (std::uint32_t e = batch.offsets[r]; e < batch.offsets[r + 1]; ++e) {
      const std::uint32_t index = batch.indices[e];
      if (index >= parameters.rows(kFactors)) continue;
      *gradient.blocks[kWeights].Touch(index) += delta * batch.values[e];
      FactorGradient(parameters.Row(kFactors, index), sums, batch.values[e], delta, workspace.row);
      AddScaled(gradient.blocks[kFactors].Touch(index), 1, workspace.row.data(), config_.factors);
    }
  }

  static void FactorGradient(const float* v, std::span<const float> sums, float x, float delta,
                             std::vector<float>& out) {
    out.resize(sums.size());
    for (std::size_t f = 0; f < sums.size(); ++f) out[f] = delta * x * (sums[f] - v[f] * x);
  }
};

}  // namespace

ModelPtr MakeFactorizationMachine(const ModelConfig& config, const Loss& loss) {
  return std::make_unique<FactorizationMachine>(config, loss);
}

}  // namespace freshet::model
