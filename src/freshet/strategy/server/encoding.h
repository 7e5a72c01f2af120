#pragma once

#include <span>
#include <vector>

#include "data/tensor_file.h"
#include "fabric/codecs/codec.h"
#include "optimize/parameters.h"
#include "strategy/server/letters.h"

namespace freshet::strategy::server {

// How a worker's gradient is written into letters: as it is, or in a codec's form. What that form loses of a row is
// kept, in the residual, and goes with that row the next time it is pushed: a push costs what its rows cost, and not
// what the model does.
//
// Threads: one. Ownership: borrows codec and parameters, which outlive it.
class Encoding {
 public:
  // Null: as it is.
  Encoding(fabric::Codec* codec, const optimize::Parameters& parameters);

  // As it is for now, whatever the codec.
  void SetPlain(bool plain) { plain_ = plain; }
  bool encodes() const { return codec_ != nullptr && !plain_; }

  // Begins a parcel, and gives room for its floats, to be filled before End; `rows` are those it is of, unless it is a
  // stretch. End gives how many bytes fewer than the floats it took.
  float* Begin(Writer& writer, Parcel parcel, std::span<const std::uint32_t> rows = {});
  std::size_t End(Writer& writer);

  // The residuals. kCorrupt for those of another model.
  void Save(std::vector<data::Tensor>& tensors) const;
  Result<void> Load(const data::TensorFile& file);

 private:
  // What was lost of the rows of this parcel before; and what is now.
  std::span<float> TakeResidual();
  void KeepResidual();

  fabric::Codec* const codec_;
  const optimize::Parameters& parameters_;
  bool plain_ = false;
  std::vector<std::vector<float>> residuals_;  // by block: by row, as far as rows have been pushed

  Parcel parcel_;  // that is being written
  std::span<const std::uint32_t> rows_;
  std::vector<float> values_, lost_;
  std::vector<std::byte> encoded_;
};

}  // namespace freshet::strategy::server
