#include "optimize/parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/crc32c.h"
#include "base/option.h"

namespace freshet::optimize {
namespace {

// Each block starts on a page of its own, so that they grow independently; on a large one if it can become large.
constexpr std::uint64_t kSmallPage = 4096, kLargePage = 2 << 20;
std::uint64_t PageFor(std::uint64_t bytes) { return bytes < kLargePage ? kSmallPage : kLargePage; }

// A row with something beside it takes a multiple of 16 bytes, so that the small ones never straddle a cache line.
std::uint64_t StrideOf(const Block& block) {
  return block.beside == 0 ? block.width : (block.width + block.beside + 3) / 4 * 4;
}

}  // namespace

Result<Parameters> Parameters::Create(std::vector<Block> blocks, Memory& memory) {
  Parameters made;
  made.memory_ = &memory;
  made.tables_ = std::vector<Table>(blocks.size());
  std::vector<std::uint64_t> offsets;
  for (Block& block : blocks) {
    block.most_rows = std::max(block.most_rows, block.rows);
    const std::uint64_t bytes = block.most_rows * StrideOf(block) * sizeof(float), page = PageFor(bytes);
    offsets.push_back((made.bytes_ + page - 1) / page * page);
    made.bytes_ = offsets.back() + (bytes + page - 1) / page * page;
  }
  made.buffer_ = made.bytes_ == 0 ? nullptr : memory.Reserve(made.bytes_);
  if (made.bytes_ > 0 && made.buffer_ == nullptr)
    return Error{Code::kInvalid, Str("cannot reserve ", HumanBytes(static_cast<double>(made.bytes_)),
                                     " of address space; is ulimit -v too low?")};
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    Table& table = made.tables_[b];
    const std::uint64_t rows = blocks[b].rows;
    table.block = std::move(blocks[b]);
    table.stride = StrideOf(table.block);
    table.data = reinterpret_cast<float*>(static_cast<char*>(made.buffer_) + offsets[b]);
    TRY(made.Grow(b, rows));
  }
  return made;
}

Parameters::Parameters(Parameters&& other) noexcept { *this = std::move(other); }

Parameters& Parameters::operator=(Parameters&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(buffer_, other.buffer_);
  std::swap(bytes_, other.bytes_);
  std::swap(tables_, other.tables_);
  return *this;
}

Parameters::~Parameters() {
  if (buffer_ != nullptr) memory_->Release(buffer_, bytes_);
}

Block Parameters::block(std::size_t b) const {
  Block block = tables_[b].block;
  block.rows = rows(b);
  return block;
}

std::optional<std::size_t> Parameters::Find(std::string_view name) const {
  for (std::size_t b = 0; b < tables_.size(); ++b)
    if (tables_[b].block.name == name) return b;
  return std::nullopt;
}

Result<void> Parameters::Grow(std::size_t b, std::uint64_t wanted) {
  Table& table = tables_[b];
  const std::uint64_t present = rows(b);
  if (wanted <= present) return {};
  if (wanted > table.block.most_rows)
    return Error{Code::kInvalid, Str("block '", table.block.name, "' cannot have ", wanted, " rows, at most ",
                                     table.block.most_rows, "; hash the features with ", Option("bits"))};
  const std::uint64_t row_bytes = table.stride * sizeof(float);
  if (row_bytes > 0 && !memory_->Commit(table.data, present * row_bytes, wanted * row_bytes))
    return Error{Code::kInvalid, Str("no memory for block '", table.block.name, "' of ",
                                     HumanBytes(static_cast<double>(wanted * row_bytes)))};
  table.rows.store(wanted, std::memory_order_release);
  return {};
}

std::span<float> Parameters::Values(std::size_t b) {
  CHECK(plain(b));
  return {tables_[b].data, rows(b) * width(b)};
}

std::span<const float> Parameters::Values(std::size_t b) const {
  CHECK(plain(b));
  return {tables_[b].data, rows(b) * width(b)};
}

std::vector<float> Parameters::GatherAt(std::size_t b, std::uint64_t first, std::uint64_t count) const {
  const std::uint64_t end = rows(b);
  std::vector<float> out(end * count);
  for (std::uint64_t row = 0; row < end; ++row) std::copy_n(Row(b, row) + first, count, out.data() + row * count);
  return out;
}

Result<void> Parameters::VisitAt(std::size_t b, std::uint64_t first, std::uint64_t count, const Visit& visit) const {
  constexpr std::uint64_t kPieceFloats = 1 << 16;
  const std::uint64_t end = rows(b),
                      step = std::max<std::uint64_t>(1, kPieceFloats / std::max<std::uint64_t>(1, count));
  std::vector<float> piece;
  for (std::uint64_t begin = 0; begin < end; begin += step) {
    const std::uint64_t stop = std::min(begin + step, end);
    piece.resize((stop - begin) * count);
    for (std::uint64_t row = begin; row < stop; ++row)
      std::copy_n(Row(b, row) + first, count, piece.data() + (row - begin) * count);
    TRY(visit(piece));
  }
  return {};
}

void Parameters::ScatterAt(std::size_t b, std::uint64_t first, std::uint64_t count, std::span<const float> values) {
  CHECK(values.size() == rows(b) * count);
  for (std::uint64_t row = 0; row < rows(b); ++row)
    std::copy_n(values.data() + row * count, count, Row(b, row) + first);
}

void Parameters::CopyFrom(const Parameters& other) {
  CHECK(other.blocks() == blocks());
  for (std::size_t b = 0; b < blocks(); ++b) {
    CHECK(other.width(b) == width(b));
    CHECK(Grow(b, other.rows(b)).ok());
    const std::uint64_t end = other.rows(b);
    if (plain(b) && other.plain(b)) {
      if (end * width(b) > 0) std::memcpy(Row(b, 0), other.Row(b, 0), end * width(b) * sizeof(float));
    } else {
      for (std::uint64_t row = 0; row < end; ++row) std::copy_n(other.Row(b, row), width(b), Row(b, row));
    }
  }
}

void Parameters::CopyRows(const Parameters& other, std::size_t b, std::uint64_t first, std::uint64_t last) {
  CHECK(other.width(b) == width(b) && last <= other.rows(b));
  CHECK(Grow(b, last).ok());
  if (tables_[b].block.beside == other.tables_[b].block.beside) {
    const std::size_t bytes = last > first ? (last - first) * stride(b) * sizeof(float) : 0;
    if (bytes > 0) std::memcpy(Row(b, first), other.Row(b, first), bytes);
  } else {
    for (std::uint64_t row = first; row < last; ++row) std::copy_n(other.Row(b, row), width(b), Row(b, row));
  }
}

std::uint64_t Parameters::size() const {
  std::uint64_t sum = 0;
  for (std::size_t b = 0; b < blocks(); ++b) sum += rows(b) * width(b);
  return sum;
}

std::uint32_t Parameters::Checksum() const {
  std::uint32_t crc = 0;
  for (std::size_t b = 0; b < blocks(); ++b) {
    if (plain(b)) {
      crc = base::Crc32cOf(Values(b), crc);
    } else {
      const std::vector<float> values = Gather(b);
      crc = base::Crc32cOf(std::span(values), crc);
    }
  }
  return crc;
}

bool Parameters::AllFinite() const {
  for (std::size_t b = 0; b < blocks(); ++b) {
    // x - x is 0 for finite numbers and NaN otherwise; a sum of that vectorises, a test per value does not.
    float sum = 0;
    const std::uint64_t step = stride(b), count = width(b);
    const float* at = Row(b, 0);
    if (step == count) {
      for (const float value : Values(b)) sum += value - value;
    } else {
      for (const float* const end = Row(b, rows(b)); at < end; at += step)
        for (std::uint64_t k = 0; k < count; ++k) sum += at[k] - at[k];
    }
    if (!(sum == 0)) return false;
  }
  return true;
}

}  // namespace freshet::optimize
