// Linear models: score_k = bias_k + Σ_j w_kj x_j, with any loss. K scores a row.
// Sparse rows: block "weights" has a row of K floats for each feature, so that an update touches one place per feature.
// Dense rows:  block "weights" has a row of D floats for each score, so that everything is a vector operation.

#include <algorithm>
#include <atomic>

#include "model/kinds.h"
#include "model/partials.h"
#include "model/vector.h"

namespace freshet::model {
namespace {

using data::Batch;
using optimize::Gradient;
using optimize::Optimizer;
using optimize::Parameters;

constexpr std::size_t kWeights = 0, kBias = 1;
constexpr std::uint64_t kMostFeatures = 1u << 28;

template <bool kShared>
float Load(const float& place) {
  if constexpr (kShared)
    return std::atomic_ref(const_cast<float&>(place)).load(std::memory_order_relaxed);
  else
    return place;
}

class Linear final : public Model, public Partials {
 public:
  using Model::Model;
  Traits traits() const override {
    return {.shares_updates = !config_.dense,
            .by_lbfgs = true,
            .met_by_entry = config_.classes,
            .weighs_features = config_.classes == 1};
  }
  const Partials* partials() const override { return this; }

  std::vector<optimize::Block> Blocks() const override {
    const std::uint64_t k = config_.classes;
    if (config_.dense) return {{"weights", k, config_.features}, {"bias", 1, k}};
    return {{"weights", config_.features, k, kMostFeatures}, {"bias", 1, k}};
  }

  Result<void> Prepare(Parameters& parameters, const Batch& batch) const override {
    if (config_.dense) return {};
    return parameters.Grow(kWeights, IndexEnd(batch));
  }

  void Predict(const Parameters& parameters, const Batch& batch, Workspace&, std::span<float> out) const override {
    for (std::size_t r = 0; r < batch.rows; ++r)
      Score<false>(parameters, batch, r, out.subspan(r * scores(), scores()));
  }

  double LossAndGradient(const Parameters& parameters, const Batch& batch, Workspace& workspace, Gradient& gradient,
                         std::span<float> out) const override {
    workspace.deltas.resize(scores());
    double sum = 0;
    for (std::size_t r = 0; r < batch.rows; ++r) {
      const std::span<float> row_scores = out.subspan(r * scores(), scores());
      Score<false>(parameters, batch, r, row_scores);
      sum += batch.weight(r) * loss_.Evaluate(row_scores, batch.labels[r], workspace.deltas);
      for (float& delta : workspace.deltas) delta *= batch.weight(r);
      AddToBias(workspace.deltas, gradient);
      AddToWeights(batch, r, workspace.deltas, gradient);
    }
    return sum;
  }

  double Update(Parameters& parameters, const Batch& batch, Optimizer& optimizer, Workspace& workspace,
                std::span<float> out, Optimizer::Sharing sharing) const override {
    return sharing == Optimizer::Sharing::kShared ? UpdateAll<true>(parameters, batch, optimizer, workspace, out)
                                                  : UpdateAll<false>(parameters, batch, optimizer, workspace, out);
  }

  void Touch(const Parameters&, const Batch& batch, optimize::RowSets& touched) const override {
    touched[kBias].Add(0);
    if (batch.sparse())
      TouchIndices(batch, touched[kWeights]);
    else
      for (std::uint32_t k = 0; k < scores(); ++k) touched[kWeights].Add(k);
  }

  void Observe(Parameters& parameters, const Batch& batch, Optimizer& optimizer) const override {
    const std::uint32_t one_row[] = {0};
    const float one[] = {1.0f};
    if (parameters.held(kBias)) optimizer.ObserveRows(parameters, kBias, one_row, one);
    for (std::size_t r = 0; r < batch.rows; ++r) {
      if (batch.sparse())
        optimizer.ObserveRows(parameters, kWeights, Indices(batch, r), Values(batch, r));
      else
        for (std::size_t k = 0; k < scores(); ++k) optimizer.ObserveScaled(parameters, kWeights, k, Dense(batch, r));
    }
  }

  // Only a scale-aware rule cares for the size of features.
  Observes observes(const Parameters&, const Optimizer& optimizer) const override {
    return optimizer.name() == "adaptive" ? Observes::kSizes : Observes::kNothing;
  }

  // Partial scores are summed up; the derivatives of the loss by the scores take their place.
  Cut cut(std::size_t block) const override {
    if (block == kBias) return Cut::kFirst;
    return config_.dense ? Cut::kNumbers : Cut::kFeatures;
  }
  std::size_t width() const override { return scores(); }
  void Merge(const Parameters& own, const Batch& batch, Workspace&, std::span<float> partials) const override {
    for (std::size_t r = 0; r < batch.rows; ++r) {
      const std::span<float> row = partials.subspan(r * scores(), scores());
      if (own.held(kBias)) AddScaled(row.data(), 1, own.Row(kBias, 0), row.size());
      AddWeighted<false>(own, batch, r, row);
    }
  }
  double Close(Parameters&, const Batch& batch, Workspace& workspace, std::span<float> partials, std::size_t first,
               std::size_t last, std::span<float> out) const override {
    workspace.deltas.resize(scores());
    double sum = 0;
    for (std::size_t r = 0; r < batch.rows; ++r) {
      const std::span<float> row = partials.subspan(r * scores(), scores());
      const double loss = loss_.Evaluate(row, batch.labels[r], workspace.deltas);
      if (first <= r && r < last) {
        sum += batch.weight(r) * loss;
        std::copy(row.begin(), row.end(), out.begin() + static_cast<std::ptrdiff_t>((r - first) * scores()));
      }
      for (std::size_t k = 0; k < row.size(); ++k) row[k] = workspace.deltas[k] * batch.weight(r);
    }
    return sum;
  }
  void AddGradient(const Parameters& own, const Batch& batch, Workspace&, std::span<const float> closed,
                   Gradient& gradient) const override {
    for (std::size_t r = 0; r < batch.rows; ++r) {
      const auto deltas = closed.subspan(r * scores(), scores());
      if (own.held(kBias)) AddToBias(deltas, gradient);
      if (own.held(kWeights)) AddToWeights(batch, r, deltas, gradient);
    }
  }

 private:
  static std::span<const std::uint32_t> Indices(const Batch& batch, std::size_t r) {
    return {batch.indices + batch.offsets[r], batch.offsets[r + 1] - batch.offsets[r]};
  }
  static std::span<const float> Values(const Batch& batch, std::size_t r) {
    return {batch.values + batch.offsets[r], batch.offsets[r + 1] - batch.offsets[r]};
  }
  static std::span<const float> Dense(const Batch& batch, std::size_t r) {
    return {batch.dense + r * batch.width, batch.width};
  }

  template <bool kShared>
  void Score(const Parameters& parameters, const Batch& batch, std::size_t r, std::span<float> out) const {
    const float* const bias = parameters.Row(kBias, 0);
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = Load<kShared>(bias[k]);
    AddWeighted<kShared>(parameters, batch, r, out);
  }

  // Part of its callers' loops: where some called it and others did not, their scores had other bits.
  template <bool kShared>
  [[gnu::always_inline]] void AddWeighted(const Parameters& parameters, const Batch& batch, std::size_t r,
                                          std::span<float> out) const {
    if (batch.sparse()) return ScoreSparse<kShared>(parameters, Indices(batch, r), Values(batch, r), out);
    for (std::size_t k = 0; k < out.size(); ++k) {
      const float* const w = parameters.Row(kWeights, k);
      if constexpr (kShared) {
        for (std::size_t j = 0; j < batch.width; ++j) out[k] += Load<true>(w[j]) * Dense(batch, r)[j];
      } else {
        out[k] += Dot(w, Dense(batch, r).data(), batch.width);
      }
    }
  }

  template <bool kShared>
  static void ScoreSparse(const Parameters& parameters, std::span<const std::uint32_t> indices,
                          std::span<const float> values, std::span<float> out) {
    const std::uint64_t known = parameters.rows(kWeights);
    const float* const weights = parameters.Row(kWeights, 0);
    const std::uint64_t stride = parameters.stride(kWeights);
    if (out.size() > 1) {
      for (std::size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] >= known) continue;
        const float* const w = weights + indices[i] * stride;
        for (std::size_t k = 0; k < out.size(); ++k) out[k] += Load<kShared>(w[k]) * values[i];
      }
      return;
    }
    // Four sums, so that an addition need not wait for the one before.
    float sums[4] = {out[0], 0, 0, 0};
    std::size_t i = 0;
    for (; i + 4 <= indices.size(); i += 4)
      for (std::size_t lane = 0; lane < 4; ++lane)
        if (indices[i + lane] < known) [[likely]]
          sums[lane] += Load<kShared>(weights[indices[i + lane] * stride]) * values[i + lane];
    for (; i < indices.size(); ++i)
      if (indices[i] < known) sums[0] += Load<kShared>(weights[indices[i] * stride]) * values[i];
    out[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  template <bool kShared>
  double UpdateAll(Parameters& parameters, const Batch& batch, Optimizer& optimizer, Workspace& workspace,
                   std::span<float> out) const {
    constexpr auto kSharing = kShared ? Optimizer::Sharing::kShared : Optimizer::Sharing::kAlone;
    const std::size_t k = scores();
    workspace.deltas.resize(k);
    const std::span<float> deltas = workspace.deltas;
    const std::uint32_t bias_row[] = {0};
    const float one[] = {1.0f};
    double sum = 0;
    for (std::size_t r = 0; r < batch.rows; ++r) {
      const std::span<float> row_scores = out.subspan(r * k, k);
      // The weights of the next row, fetched while this one is worked on: they lie anywhere in memory.
      if (batch.sparse() && r + 1 < batch.rows) optimizer.Prefetch(parameters, kWeights, Indices(batch, r + 1));
      Score<kShared>(parameters, batch, r, row_scores);
      sum += batch.weight(r) * loss_.Evaluate(row_scores, batch.labels[r], deltas);
      optimizer.BeginStep();
      if (std::all_of(deltas.begin(), deltas.end(), [](float d) { return d == 0; })) continue;
      if (batch.weights != nullptr)
        for (float& delta : deltas) delta *= batch.weights[r];
      optimizer.UpdateRows(parameters, kBias, bias_row, one, deltas, kSharing);
      if (batch.sparse())
        optimizer.UpdateRows(parameters, kWeights, Indices(batch, r), Values(batch, r), deltas, kSharing);
      else
        for (std::size_t j = 0; j < k; ++j)
          optimizer.UpdateScaled(parameters, kWeights, j, Dense(batch, r), deltas[j], kSharing);
    }
    return sum;
  }

  static void AddToBias(std::span<const float> deltas, Gradient& gradient) {
    float* const bias = gradient.blocks[kBias].Touch(0);
    for (std::size_t k = 0; k < deltas.size(); ++k) bias[k] += deltas[k];
  }
  static void AddToWeights(const Batch& batch, std::size_t r, std::span<const float> deltas, Gradient& gradient) {
    if (!batch.sparse()) {
      for (std::size_t k = 0; k < deltas.size(); ++k)
        AddScaled(gradient.blocks[kWeights].Touch(static_cast<std::uint32_t>(k)), deltas[k], Dense(batch, r).data(),
                  batch.width);
      return;
    }
    const auto indices = Indices(batch, r);
    const auto values = Values(batch, r);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == data::kUnseen) continue;
      float* const row = gradient.blocks[kWeights].Touch(indices[i]);
      for (std::size_t k = 0; k < deltas.size(); ++k) row[k] += deltas[k] * values[i];
    }
  }
};

}  // namespace

ModelPtr MakeLinear(const ModelConfig& config, const Loss& loss) { return std::make_unique<Linear>(config, loss); }

}  // namespace freshet::model
