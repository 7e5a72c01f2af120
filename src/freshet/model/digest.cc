#include "model/digest.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace freshet::model {
namespace {

using data::Batch;

void AddRow(Batch row, data::Rows& out) {
  const float label = 0;
  row.rows = 1;
  row.labels = &label;
  out.AppendRow(row, 0);
}

// One row: the largest size of each feature, which a scale-aware rule goes by.
void AddSizes(const Batch& batch, data::Rows& out) {
  Batch sizes;
  if (!batch.sparse()) {
    std::vector<float> largest(batch.width, 0.0f);
    for (std::size_t r = 0; r < batch.rows; ++r)
      for (std::size_t j = 0; j < batch.width; ++j)
        largest[j] = std::max(largest[j], std::abs(batch.dense[r * batch.width + j]));
    sizes.dense = largest.data();
    sizes.width = batch.width;
    return AddRow(sizes, out);
  }
  std::vector<std::pair<std::uint32_t, float>> entries;
  for (std::uint32_t e = batch.offsets[0]; e < batch.offsets[batch.rows]; ++e)
    if (batch.indices[e] != data::kUnseen) entries.emplace_back(batch.indices[e], -std::abs(batch.values[e]));
  std::sort(entries.begin(), entries.end());  // of each feature the largest first
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
  for (const auto& [index, value] : entries)
    if (indices.empty() || indices.back() != index) {
      indices.push_back(index);
      values.push_back(-value);
    }
  const std::uint32_t offsets[] = {0, static_cast<std::uint32_t>(indices.size())};
  sizes.offsets = offsets;
  sizes.indices = indices.data();
  sizes.values = values.data();
  AddRow(sizes, out);
}

}  // namespace

void Digest(const Model& model, const optimize::Parameters& parameters, const Batch& batch,
            const optimize::Optimizer& optimizer, data::Rows& out) {
  Digest(model.observes(parameters, optimizer), batch, out);
}

void Digest(Model::Observes observes, const Batch& batch, data::Rows& out) {
  if (observes == Model::Observes::kSizes && batch.rows > 0) AddSizes(batch, out);
  if (observes == Model::Observes::kRows)
    for (std::size_t r = 0; r < batch.rows; ++r) out.AppendRow(batch, r);
}

}  // namespace freshet::model
