#pragma once

#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace freshet::data {

// A growing array of plain values that is reused from batch to batch: clearing keeps the memory, and growing does not
// touch what it adds. A parser asks for room once (Room), writes through the pointer and says how far it got (SetEnd).
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  ~Buffer() { std::free(data_); }
  Buffer(Buffer&& other) noexcept { Swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Swap(other);
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }

  void Clear() { size_ = 0; }
  void Append(T value) {
    if (size_ == capacity_) Reserve(size_ + 1);
    data_[size_++] = value;
  }
  void Append(std::span<const T> values) {
    if (values.empty()) return;
    Reserve(size_ + values.size());
    std::memcpy(data_ + size_, values.data(), values.size_bytes());
    size_ += values.size();
  }
  void Resize(std::size_t size) {  // new values are whatever was there
    Reserve(size);
    size_ = size;
  }
  // Makes room for `count` more and returns where they go; SetEnd says where writing stopped.
  T* Room(std::size_t count) {
    Reserve(size_ + count);
    return data_ + size_;
  }
  void SetEnd(const T* end) {
    size_ = static_cast<std::size_t>(end - data_);
    CHECK(size_ <= capacity_);
  }
  void Reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    if (capacity < capacity_ + capacity_ / 2) capacity = capacity_ + capacity_ / 2;
    T* const grown = static_cast<T*>(std::aligned_alloc(64, (capacity * sizeof(T) + 63) / 64 * 64));
    if (grown == nullptr) throw std::bad_alloc();
    if (size_ > 0) std::memcpy(grown, data_, size_ * sizeof(T));
    std::free(data_);
    data_ = grown;
    capacity_ = capacity;
  }

 private:
  void Swap(Buffer& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace freshet::data
