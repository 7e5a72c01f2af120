#pragma once

// For kernels that meet a smaller tensor at every place of a larger one. Included by the files of this folder only.

#include <cstdint>
#include <vector>

#include "model/network/onednn/onednn.h"

namespace freshet::model::network {

// For every place of a row of `shape`, the place in a tensor of `small`, whose extents are 1 or as in `shape`.
std::vector<std::uint32_t> Repeated(const Shape& shape, const Shape& small);

// A tensor in the plain layout, whatever layout it comes in. Where that is another, the copy lies in a scratch of
// `bytes` bytes that the kernel gives. Threads: one at a time.
class PlainTensor {
 public:
  PlainTensor() = default;
  PlainTensor(const KernelSpec& spec, std::size_t input);
  std::size_t bytes() const { return bytes_; }
  const float* Read(const float* data, std::byte* scratch);
  // Where a gradient is to be written, and what brings it there.
  float* Place(float* gradient, std::byte* scratch) const;
  void Give(std::byte* scratch, float* gradient);

 private:
  Reorder to_, from_;
  std::size_t bytes_ = 0;
};

}  // namespace freshet::model::network
