#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "optimize/memory.h"

namespace freshet::optimize {

// One named table of a model: `rows` rows of `width` floats. A block whose most_rows is larger than its rows can grow.
struct Block {
  std::string name;
  std::uint64_t rows = 0;
  std::uint64_t width = 1;
  std::uint64_t most_rows = 0;  // 0: as many as rows
};

// All parameters of a model: named blocks over one 64-byte-aligned buffer of floats. Address space for growth is
// reserved, so that the place of a row never changes: a row range is a parameter-server key, a range of the buffer an
// all-reduce bucket, a snapshot one copy.
//
// Threads: reading and writing different rows from different threads is fine; rows two threads share must be accessed by
// relaxed atomics (Optimizer::Sharing). Grow is one thread's at a time and may run beside access to rows that are there.
// Failure: Create and Grow give kInvalid when memory or address space is not to be had.
class Parameters {
 public:
  static Result<Parameters> Create(std::vector<Block> blocks, Memory& memory);
  Parameters(Parameters&&) noexcept;
  Parameters& operator=(Parameters&&) noexcept;
  ~Parameters();

  std::size_t blocks() const { return tables_.size(); }
  // Name, width and present size of a block.
  Block block(std::size_t b) const;
  std::uint64_t rows(std::size_t b) const { return tables_[b].rows.load(std::memory_order_acquire); }
  std::uint64_t width(std::size_t b) const { return tables_[b].block.width; }
  std::optional<std::size_t> Find(std::string_view name) const;

  float* Row(std::size_t b, std::uint64_t row) { return tables_[b].data + row * tables_[b].block.width; }
  const float* Row(std::size_t b, std::uint64_t row) const { return tables_[b].data + row * tables_[b].block.width; }
  std::span<float> Values(std::size_t b) { return {tables_[b].data, rows(b) * width(b)}; }
  std::span<const float> Values(std::size_t b) const { return {tables_[b].data, rows(b) * width(b)}; }

  // Makes the block at least `rows` long; new rows are zero.
  Result<void> Grow(std::size_t b, std::uint64_t rows);
  void CopyFrom(const Parameters& other);  // of the same blocks; grows as needed
  std::uint64_t size() const;              // floats in use
  std::uint32_t Checksum() const;
  bool AllFinite() const;

 private:
  struct Table {
    Block block;
    float* data = nullptr;
    std::atomic<std::uint64_t> rows{0};
  };
  Parameters() = default;
  Memory* memory_ = nullptr;
  void* buffer_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<Table> tables_;
};

}  // namespace freshet::optimize
