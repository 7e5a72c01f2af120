#pragma once

#include "base/random.h"
#include "data/rows.h"
#include "data/tensor_file.h"

namespace freshet::train {

// Rows that wait to be trained on: the rest that does not fill a mini-batch yet, or what is being gathered to be
// shuffled. Its memory is bounded by whoever fills it.
class Window {
 public:
  // `most_bytes` of address space are set aside, so that filling it up to there never copies.
  Window(bool dense_rows, std::size_t width, std::size_t most_bytes = 0);

  void Add(const data::Batch& batch, std::size_t row) { rows_.AppendRow(batch, row); }
  std::size_t size() const { return rows_.size(); }
  std::size_t bytes() const;
  data::Batch batch() const { return rows_.batch(); }
  // The same rows in random order; valid until the next call.
  data::Batch Shuffled(base::Random random);
  void DropFront(std::size_t count);
  void Clear() { rows_.ClearRows(); }

  // Rows as tensors (of a window or of what is left of it), which borrow from them and from `offsets`; and back.
  static void Save(const data::Batch& rows, std::vector<std::uint32_t>& offsets, std::vector<data::Tensor>& tensors);
  Result<void> Load(const data::TensorFile& file);

 private:
  data::Rows rows_, other_;
};

}  // namespace freshet::train
