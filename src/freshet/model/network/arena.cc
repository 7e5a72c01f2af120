#include "model/network/arena.h"

#include <algorithm>
#include <numeric>

namespace freshet::model::network {

std::size_t ArenaPlan::Add(std::size_t bytes, int first, int last) {
  tensors_.push_back({(bytes + 63) / 64 * 64, first, last});
  return tensors_.size() - 1;
}

void ArenaPlan::Extend(std::size_t tensor, int first, int last) {
  tensors_[tensor].first = std::min(tensors_[tensor].first, first);
  tensors_[tensor].last = std::max(tensors_[tensor].last, last);
}

void ArenaPlan::Place() {
  std::vector<std::size_t> order(tensors_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return tensors_[a].bytes > tensors_[b].bytes; });
  std::vector<const Tensor*> placed;  // by place
  bytes_ = 0;
  for (const std::size_t number : order) {
    Tensor& tensor = tensors_[number];
    tensor.at = 0;
    for (const Tensor* other : placed) {
      if (other->last < tensor.first || tensor.last < other->first) continue;
      if (tensor.at + tensor.bytes <= other->at) break;  // the gap before it is large enough
      tensor.at = std::max(tensor.at, other->at + other->bytes);
    }
    const auto after = [](const Tensor* a, const Tensor* b) { return a->at < b->at; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &tensor, after), &tensor);
    bytes_ = std::max(bytes_, tensor.at + tensor.bytes);
  }
}

}  // namespace freshet::model::network
