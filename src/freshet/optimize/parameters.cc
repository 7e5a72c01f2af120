#include "optimize/parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/crc32c.h"

namespace freshet::optimize {
namespace {
constexpr std::uint64_t kAlign = 4096;  // each block starts on a page of its own, so that they grow independently
}

Result<Parameters> Parameters::Create(std::vector<Block> blocks, Memory& memory) {
  Parameters made;
  made.memory_ = &memory;
  made.tables_ = std::vector<Table>(blocks.size());
  std::vector<std::uint64_t> offsets;
  for (Block& block : blocks) {
    block.most_rows = std::max(block.most_rows, block.rows);
    offsets.push_back(made.bytes_);
    made.bytes_ += (block.most_rows * block.width * sizeof(float) + kAlign - 1) / kAlign * kAlign;
  }
  made.buffer_ = made.bytes_ == 0 ? nullptr : memory.Reserve(made.bytes_);
  if (made.bytes_ > 0 && made.buffer_ == nullptr)
    return Error{Code::kInvalid, Str("cannot reserve ", HumanBytes(static_cast<double>(made.bytes_)), " of address space; is ulimit -v too low?")};
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    Table& table = made.tables_[b];
    const std::uint64_t rows = blocks[b].rows;
    table.block = std::move(blocks[b]);
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
                                     table.block.most_rows, "; hash the features with --bits")};
  const std::uint64_t row_bytes = table.block.width * sizeof(float);
  if (!memory_->Commit(table.data, present * row_bytes, wanted * row_bytes))
    return Error{Code::kInvalid, Str("no memory for block '", table.block.name, "' of ", HumanBytes(static_cast<double>(wanted * row_bytes)))};
  table.rows.store(wanted, std::memory_order_release);
  return {};
}

void Parameters::CopyFrom(const Parameters& other) {
  CHECK(other.blocks() == blocks());
  for (std::size_t b = 0; b < blocks(); ++b) {
    CHECK(other.width(b) == width(b));
    CHECK(Grow(b, other.rows(b)).ok());
    const auto values = other.Values(b);
    if (!values.empty()) std::memcpy(Row(b, 0), values.data(), values.size_bytes());
  }
}

std::uint64_t Parameters::size() const {
  std::uint64_t sum = 0;
  for (std::size_t b = 0; b < blocks(); ++b) sum += rows(b) * width(b);
  return sum;
}

std::uint32_t Parameters::Checksum() const {
  std::uint32_t crc = 0;
  for (std::size_t b = 0; b < blocks(); ++b) crc = base::Crc32cOf(Values(b), crc);
  return crc;
}

bool Parameters::AllFinite() const {
  for (std::size_t b = 0; b < blocks(); ++b) {
    // x - x is 0 for finite numbers and NaN otherwise; a sum of that vectorises, a test per value does not.
    float sum = 0;
    for (const float value : Values(b)) sum += value - value;
    if (!(sum == 0)) return false;
  }
  return true;
}

}  // namespace freshet::optimize
