#include "model/network/head_loss.h"

#include <algorithm>

namespace freshet::model::network {

HeadLoss::HeadLoss(const Graph& graph, const std::vector<Facts>& facts, const Loss& loss)
    : graph_(graph), loss_(loss), width_(static_cast<std::size_t>(facts[0].elements())) {
  const Facts& answer = facts[static_cast<std::size_t>(graph.heads[0].layer)];
  if (graph.target == Target::kNext) steps_ = static_cast<std::size_t>(answer.shape[0]);
  scores_ = static_cast<std::size_t>(answer.elements()) / steps_;
}

double HeadLoss::OfItself(const float* made, const float* row, float factor, std::span<float> deltas) const {
  double sum = 0;
  for (std::size_t k = 0; k < scores_; ++k) {
    sum += loss_.Evaluate({made + k, 1}, row[k], deltas.subspan(k, 1));
    deltas[k] *= factor;
  }
  return sum / static_cast<double>(scores_);
}

double HeadLoss::Of(std::size_t head, const data::Batch& batch, const float* input, std::span<const float> made,
                    std::span<float> deltas) const {
  const std::size_t all = steps_ * scores_;
  double sum = 0;
  for (std::size_t r = 0; r < batch.rows; ++r) {
    const float weight = batch.weight(r), factor = weight * static_cast<float>(graph_.heads[head].weight);
    if (graph_.target == Target::kInput) {
      sum += weight * OfItself(made.data() + r * all, input + r * width_, factor / static_cast<float>(all),
                               deltas.subspan(r * all, all));
      continue;
    }
    double of_row = 0;
    for (std::size_t t = 0; t < steps_; ++t) {
      const float label = t + 1 < steps_ ? input[r * width_ + t + 1] : batch.labels[r];
      const std::span<float> here = deltas.subspan(r * all + t * scores_, scores_);
      const bool known = label >= 0 && label < static_cast<float>(scores_);
      if (graph_.target == Target::kNext && !known) {  // a symbol it does not know teaches nothing
        std::fill(here.begin(), here.end(), 0.0f);
        continue;
      }
      of_row += loss_.Evaluate(made.subspan(r * all + t * scores_, scores_), label, here);
      for (float& delta : here) delta *= factor / static_cast<float>(steps_);
    }
    sum += weight * of_row / static_cast<double>(steps_);
  }
  return sum;
}

void HeadLoss::CopyScores(std::span<const float> made, std::span<float> scores) const {
  const std::size_t all = steps_ * scores_;
  for (std::size_t r = 0; r < scores.size() / scores_; ++r)
    std::copy_n(made.data() + r * all + (all - scores_), scores_, scores.data() + r * scores_);
}

const float* DenseRows(const data::Batch& batch, std::size_t width, std::vector<float>& memory) {
  if (!batch.sparse()) return batch.dense;
  memory.assign(batch.rows * width, 0.0f);
  for (std::size_t r = 0; r < batch.rows; ++r)
    for (std::uint32_t e = batch.offsets[r]; e < batch.offsets[r + 1]; ++e)
      if (batch.indices[e] < width) memory[r * width + batch.indices[e]] += batch.values[e];
  return memory.data();
}

}  // namespace freshet::model::network
