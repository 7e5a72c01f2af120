#pragma once

#include <cstdint>
#include <vector>

#include "fabric/fabric.h"

namespace freshet::fabric {

// Some rows of a block: which, and `width` floats for each.
struct SparseRows {
  std::vector<std::uint32_t> rows;  // ascending, no two the same
  std::vector<float> values;        // rows.size() · width, row by row
};

// The sum over all members of the rows each has touched: what is touched afterwards is what any member had touched,
// with the values added up in the order of ranks; the same bits everywhere.
//
// Row i belongs to rank i mod n, so that frequent rows, which often lie together, are shared out evenly. Each member
// sends every owner its rows; owners add up and send the rows they then have to all. A message names its rows by the
// touched or by the untouched, whichever takes fewer bytes, so that one in which all rows are touched is the dense
// block and no message takes more than that (but for a few bytes). Nobody has to decide beforehand how many that will
// be.
//
// Threads:  one at a time. Blocking: as ExchangeInOrder. Failure: the fabric's, or kCorrupt for bytes that are no such
// rows; the fabric is then aborted, the rows are in no particular state.
class SparseAllReduce {
 public:
  static constexpr Tag kTags = 2;  // how many it uses, from the given one on

  // The block has `block_rows` rows (fewer than 2^32) of `width` floats, on every member.
  SparseAllReduce(std::size_t block_rows, std::size_t width) : block_rows_(block_rows), width_(width) {}

  Result<void> Run(Fabric& fabric, Tag tag, SparseRows& touched);

  // What was sent to others so far, without the fabric's headers.
  std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  // How many rows a member owns.
  std::size_t OwnedRows(int owner, int count) const;
  // In an owner's messages rows are numbered as it owns them: i is row owner + i · n.
  void Encode(const SparseRows& owned, std::size_t range, std::vector<std::byte>& out) const;
  Result<SparseRows> Decode(std::span<const std::byte> bytes, std::size_t range) const;
  SparseRows Sum(const SparseRows& a, const SparseRows& b) const;
  std::vector<SparseRows> Split(const SparseRows& touched, int count) const;
  SparseRows Join(const std::vector<SparseRows>& owned) const;

  const std::size_t block_rows_, width_;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace freshet::fabric
