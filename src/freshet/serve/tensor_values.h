#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "data/row_builder.h"
#include "serve/tensor_reader.h"

namespace freshet::serve {

// The values of an input tensor, whatever its datatype and form, into memory that is reused. kBadInput names the tensor
// and the value: outside the range of its datatype, not finite, or of another type.

// What null in JSON is: a mistake, or a missing value (NaN, or "" among strings).
enum class Null { kRefused, kMissing };

// Room for the values of one tensor.
struct ValueMemory {
  data::Buffer<float> floats;
  data::Buffer<double> doubles;
  data::Buffer<std::int64_t> wholes;
  std::vector<std::string_view> texts;
};

// Any type of numbers, as floats.
Result<std::span<const float>> ReadFloats(const InputTensor& tensor, Null null, ValueMemory& memory);
// Any type of whole numbers, up to what INT64 holds.
Result<std::span<const std::int64_t>> ReadWholes(const InputTensor& tensor, ValueMemory& memory);
// BYTES; the texts lie in the body, or where its JSON was parsed to.
Result<std::span<const std::string_view>> ReadTexts(const InputTensor& tensor, Null null, ValueMemory& memory);
// Any type, as the closest of four: FP16 and FP32 as floats, FP64 as doubles, others as whole numbers or texts.
Result<data::Values> ReadValues(const InputTensor& tensor, Null null, ValueMemory& memory);

}  // namespace freshet::serve
