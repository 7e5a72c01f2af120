#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "optimize/memory.h"

namespace freshet::optimize {

// One named table of a model: `rows` rows of `width` floats. A block whose most_rows is larger than its rows can grow.
// `beside` more floats may be kept next to each row: an optimizer's state, so that a sparse update finds weight and
// state in one cache line. A statistic is no weight: its gradient is its distance from what a batch shows, and it goes
// `follow` of the way there whatever the update rule.
struct Block {
  std::string name;
  std::uint64_t rows = 0;
  std::uint64_t width = 1;
  std::uint64_t most_rows = 0;  // 0: as many as rows
  std::uint64_t beside = 0;
  float follow = 0;  // above 0: a statistic

  // What a Portion makes of a block. Rows and columns are counted from its own first ones.
  struct Within {
    std::uint64_t first_row = 0, first_column = 0;  // of the whole block
    std::uint64_t most_rows = 0, width = 0;         // of the whole block
  };
  std::optional<Within> within = {};  // only a range of the block; nothing: all of it
  bool held = true;                   // false: nothing of it is here
};

// All parameters of a model: named blocks over one 64-byte-aligned buffer of floats. Address space for growth is
// reserved, so that the place of a row never changes: a row range is a parameter-server key, a range of the buffer an
// all-reduce bucket, a snapshot one copy.
//
// Threads: reading and writing different rows from different threads is fine; rows two threads share must be accessed
// by relaxed atomics (Optimizer::Sharing). Grow is one thread's at a time and may run beside access to rows that are
// there. Failure: Create and Grow give kInvalid when memory or address space is not to be had.
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
  float follow(std::size_t b) const { return tables_[b].block.follow; }
  bool held(std::size_t b) const { return tables_[b].block.held; }
  // The number of its row 0 in the whole block.
  std::uint64_t first_row(std::size_t b) const {
    return tables_[b].block.within ? tables_[b].block.within->first_row : 0;
  }
  std::optional<std::size_t> Find(std::string_view name) const;

  // Floats from one row to the next: the width, unless there is something beside.
  std::uint64_t stride(std::size_t b) const { return tables_[b].stride; }
  bool plain(std::size_t b) const { return tables_[b].stride == tables_[b].block.width; }
  float* Row(std::size_t b, std::uint64_t row) { return tables_[b].data + row * tables_[b].stride; }
  const float* Row(std::size_t b, std::uint64_t row) const { return tables_[b].data + row * tables_[b].stride; }
  // All rows of a plain block, one after another.
  std::span<float> Values(std::size_t b);
  std::span<const float> Values(std::size_t b) const;
  // Copies of all rows, or of all that is beside them, one after another; and back. For any block.
  std::vector<float> Gather(std::size_t b) const { return GatherAt(b, 0, width(b)); }
  std::vector<float> GatherBeside(std::size_t b) const { return GatherAt(b, width(b), tables_[b].block.beside); }
  // The same piece by piece, for writing without a copy of everything.
  using Visit = std::function<Result<void>(std::span<const float> piece)>;
  Result<void> VisitRows(std::size_t b, const Visit& visit) const { return VisitAt(b, 0, width(b), visit); }
  Result<void> VisitBeside(std::size_t b, const Visit& visit) const {
    return VisitAt(b, width(b), tables_[b].block.beside, visit);
  }
  void Scatter(std::size_t b, std::span<const float> values) { ScatterAt(b, 0, width(b), values); }
  void ScatterBeside(std::size_t b, std::span<const float> values) {
    ScatterAt(b, width(b), tables_[b].block.beside, values);
  }

  // Makes the block at least `rows` long; new rows are zero.
  Result<void> Grow(std::size_t b, std::uint64_t rows);
  // Takes the rows (not what is beside them) of parameters with the same blocks; grows as needed.
  void CopyFrom(const Parameters& other);
  // Takes rows first … last-1 of a block of parameters with the same blocks, and what is beside them where both have as
  // much; grows as needed.
  void CopyRows(const Parameters& other, std::size_t b, std::uint64_t first, std::uint64_t last);
  std::uint64_t size() const;  // floats in use
  std::uint32_t Checksum() const;
  bool AllFinite() const;

 private:
  struct Table {
    Block block;
    std::uint64_t stride = 1;
    float* data = nullptr;
    std::atomic<std::uint64_t> rows{0};
  };
  Parameters() = default;
  std::vector<float> GatherAt(std::size_t b, std::uint64_t first, std::uint64_t count) const;
  Result<void> VisitAt(std::size_t b, std::uint64_t first, std::uint64_t count, const Visit& visit) const;
  void ScatterAt(std::size_t b, std::uint64_t first, std::uint64_t count, std::span<const float> values);

  Memory* memory_ = nullptr;
  void* buffer_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<Table> tables_;
};

}  // namespace freshet::optimize
