#pragma once

#include <cstddef>
#include <vector>

namespace freshet::model::network {

// Places tensors in one piece of memory: two that are needed at overlapping times get places that do not overlap.
// Times are whole numbers, both ends included.
class ArenaPlan {
 public:
  // Returns the tensor's number.
  std::size_t Add(std::size_t bytes, int first, int last);
  void Extend(std::size_t tensor, int first, int last);  // it is needed then, too
  // Largest first, each at the lowest place that is free all its time. 64-byte aligned.
  void Place();
  std::size_t at(std::size_t tensor) const { return tensors_[tensor].at; }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Tensor {
    std::size_t bytes;
    int first, last;
    std::size_t at = 0;
  };
  std::vector<Tensor> tensors_;
  std::size_t bytes_ = 0;
};

}  // namespace freshet::model::network
