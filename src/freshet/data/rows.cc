#include "data/rows.h"

namespace freshet::data {

void Rows::Truncate(std::size_t rows) {
  labels.Resize(rows);
  if (weights.size() > rows) weights.Resize(rows);
  if (samples.size() > rows) samples.Resize(rows);
  if (times.size() > rows) times.Resize(rows);
  if (width > 0) {
    dense.Resize(rows * width);
    return;
  }
  offsets.Resize(rows + 1);
  indices.Resize(offsets.back());
  values.Resize(offsets.back());
  while (!tokens.empty() && tokens.back().entry >= offsets.back()) tokens.pop_back();
}

void Rows::AppendRow(const Batch& batch, std::size_t row) {
  labels.Append(batch.labels[row]);
  if (batch.weights != nullptr) weights.Append(batch.weights[row]);
  if (batch.samples != nullptr) samples.Append(batch.samples[row]);
  if (batch.times != nullptr) times.Append(batch.times[row]);
  if (batch.sparse()) {
    const std::uint32_t first = batch.offsets[row], count = batch.offsets[row + 1] - first;
    indices.Append(std::span(batch.indices + first, count));
    values.Append(std::span(batch.values + first, count));
    offsets.Append(static_cast<std::uint32_t>(indices.size()));
  } else {
    dense.Append(std::span(batch.dense + row * batch.width, batch.width));
  }
}

}  // namespace freshet::data
