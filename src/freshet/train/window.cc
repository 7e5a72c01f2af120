#include "train/window.h"

#include <numeric>

namespace freshet::train {
namespace {

template <class T>
void SaveArray(const char* name, const T* values, std::size_t count, std::vector<data::Tensor>& tensors) {
  const std::span<const T> array(values, values == nullptr ? 0 : count);
  tensors.push_back({Str("window.", name), data::TensorFile::TypeOf<T>(), {array.size()}, std::as_bytes(array)});
}

template <class T>
Result<void> LoadArray(const char* name, const data::TensorFile& file, data::Buffer<T>& array) {
  const std::vector<T> values = TRY(file.Values<T>(Str("window.", name)));
  array.Clear();
  array.Append(std::span<const T>(values));
  return {};
}

}  // namespace

Window::Window(bool dense_rows, std::size_t width, std::size_t most_bytes) {
  rows_.width = other_.width = dense_rows ? width : 0;
  for (data::Rows* const rows : {&rows_, &other_}) {
    const std::size_t most = most_bytes + most_bytes / 4;  // it is full when a whole block has made it so
    if (dense_rows)
      rows->dense.Reserve(most / sizeof(float));
    else
      rows->indices.Reserve(most / 8), rows->values.Reserve(most / 8);
    rows->ClearRows();
  }
}

std::size_t Window::bytes() const {
  return rows_.size() * 24 + rows_.indices.size() * 8 + rows_.dense.size() * sizeof(float);
}

data::Batch Window::Shuffled(base::Random random) {
  std::vector<std::uint32_t> order(rows_.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  other_.ClearRows();
  const data::Batch from = rows_.batch();
  for (const std::uint32_t row : order) other_.AppendRow(from, row);
  return other_.batch();
}

void Window::DropFront(std::size_t count) {
  other_.ClearRows();
  const data::Batch from = rows_.batch();
  for (std::size_t row = count; row < from.rows; ++row) other_.AppendRow(from, row);
  std::swap(rows_, other_);
}

void Window::Save(const data::Batch& rows, std::vector<std::uint32_t>& offsets, std::vector<data::Tensor>& tensors) {
  offsets.assign(1, 0);
  const std::uint32_t first = rows.sparse() ? rows.offsets[0] : 0;
  for (std::size_t r = 0; rows.sparse() && r < rows.rows; ++r) offsets.push_back(rows.offsets[r + 1] - first);
  SaveArray("labels", rows.labels, rows.rows, tensors);
  SaveArray("weights", rows.weights, rows.rows, tensors);
  SaveArray("samples", rows.samples, rows.rows, tensors);
  SaveArray("times", rows.times, rows.rows, tensors);
  SaveArray("offsets", offsets.data(), offsets.size(), tensors);
  SaveArray("indices", rows.sparse() ? rows.indices + first : nullptr, offsets.back(), tensors);
  SaveArray("values", rows.sparse() ? rows.values + first : nullptr, offsets.back(), tensors);
  SaveArray("dense", rows.dense, rows.rows * rows.width, tensors);
}

Result<void> Window::Load(const data::TensorFile& file) {
  TRY(LoadArray("labels", file, rows_.labels));
  TRY(LoadArray("weights", file, rows_.weights));
  TRY(LoadArray("samples", file, rows_.samples));
  TRY(LoadArray("times", file, rows_.times));
  TRY(LoadArray("offsets", file, rows_.offsets));
  TRY(LoadArray("indices", file, rows_.indices));
  TRY(LoadArray("values", file, rows_.values));
  return LoadArray("dense", file, rows_.dense);
}

}  // namespace freshet::train
