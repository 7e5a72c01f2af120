#include "serve/http/body.h"

#include <algorithm>
#include <cstring>

namespace freshet::serve {

std::span<char> HttpBody::Room(std::size_t most) {
  if (size_ == capacity_ && !Grow()) return {};
  return {bytes_.get() + size_, std::min(most, capacity_ - size_)};
}

bool HttpBody::Append(std::string_view piece) {
  while (!piece.empty()) {
    const std::span<char> room = Room(piece.size());
    if (room.empty()) return false;
    std::memcpy(room.data(), piece.data(), room.size());
    Add(room.size());
    piece.remove_prefix(room.size());
  }
  return true;
}

void HttpBody::Clear() {
  size_ = 0;
  if (capacity_ <= kKept) return;
  bytes_.reset();
  capacity_ = 0;
  Refund();
}

bool HttpBody::Grow() {
  const std::size_t capacity = std::max(kKept / 4, capacity_ * 2);
  const std::size_t charge = capacity > kKept ? capacity - charged_ : 0;
  if (budget_->used_bytes.fetch_add(charge) + charge > budget_->limit_bytes && charge > 0) {
    budget_->used_bytes.fetch_sub(charge);
    return false;
  }
  charged_ += charge;
  auto bytes = std::make_unique_for_overwrite<char[]>(capacity);
  if (size_ > 0) std::memcpy(bytes.get(), bytes_.get(), size_);
  bytes_ = std::move(bytes);
  capacity_ = capacity;
  return true;
}

void HttpBody::Refund() {
  budget_->used_bytes.fetch_sub(charged_);
  charged_ = 0;
}

}  // namespace freshet::serve
