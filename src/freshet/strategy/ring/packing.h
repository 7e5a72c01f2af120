#pragma once

#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fabric/codecs/codec.h"

namespace freshet::strategy::ring {

// The form in which tensors travel from stage to stage: as they are, or in that of a codec that rounds each value and
// remembers nothing. Owns what is on its way in such a form, until it is released; that memory is used again.
//
// Threads: one.
class Packing {
 public:
  // None: as they are.
  explicit Packing(std::unique_ptr<fabric::Codec> codec = nullptr) : codec_(std::move(codec)) {}

  bool plain() const { return codec_ == nullptr; }
  // Bytes to send, or room for what will arrive, by the number of the parcel.
  std::size_t Pack(std::span<const float> values);
  std::size_t Expect(std::span<float> into);
  std::span<std::byte> bytes(std::size_t parcel) { return std::span(parcels_[parcel].bytes); }
  // It was sent, or has arrived and is put where it belongs. kCorrupt when it is none.
  Result<void> Release(std::size_t parcel);

 private:
  struct Parcel {
    std::vector<std::byte> bytes = {};
    std::span<float> into = {};
  };
  std::size_t Take();

  std::unique_ptr<fabric::Codec> codec_;
  std::deque<Parcel> parcels_;
  std::vector<std::size_t> free_;
};

}  // namespace freshet::strategy::ring
