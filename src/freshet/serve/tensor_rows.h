#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "serve/tensor_values.h"

namespace freshet::serve {

// Turns the inputs of a request into rows, as a model's signature has them.
//
// Threads: one at a time. Memory: as much as the largest request needed, reused.
// Failure: kBadInput, naming the tensor where one is at fault.
class TensorRows {
 public:
  // The most rows of a request, and the most cells: columns that are left out take memory too.
  static constexpr std::uint64_t kMostRows = 100'000, kMostCells = 1 << 23;

  // `labelled` as RowBuilder::FromColumns has it.
  Result<void> Build(const std::vector<InputTensor>& inputs, const Signature& signature, bool labelled,
                     data::Rows& rows, std::vector<data::NewName>& names);

 private:
  Result<void> FromNumbers(const InputTensor& x, const data::RowBuilder& builder, data::Rows& rows);
  Result<void> FromIndices(const std::vector<InputTensor>& inputs, const data::RowBuilder& builder, data::Rows& rows);
  Result<void> FromColumns(const std::vector<InputTensor>& inputs, const data::RowBuilder& builder, bool labelled,
                           data::Rows& rows, std::vector<data::NewName>& names);

  std::vector<ValueMemory> memory_;  // one for each tensor
  std::vector<data::Cells> cells_;
};

// What a parser of bodies keeps from one to the next.
struct ParserState {
  static constexpr std::size_t kKeptBytes = 1 << 20;

  TensorReader reader;
  TensorRows rows;
  std::size_t largest_body = 0;

  // Whether the memory was made for a large body and another, small one has come.
  bool Outgrown(const Body& body) {
    const bool outgrown = largest_body > kKeptBytes && body.bytes.size() <= kKeptBytes;
    largest_body = std::max(largest_body, body.bytes.size());
    return outgrown;
  }
};

// kBadInput unless the tensor has one value for each of `rows` rows: shape [rows] or [rows, 1].
Result<void> CheckColumn(const InputTensor& tensor, std::uint64_t rows);

}  // namespace freshet::serve
