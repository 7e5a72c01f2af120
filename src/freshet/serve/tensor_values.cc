#include "serve/tensor_values.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace freshet::serve {
namespace {

static_assert(std::endian::native == std::endian::little, "binary tensors are little-endian");

using simdjson::dom::array;
using simdjson::dom::element;

Error BadValue(const InputTensor& tensor, std::uint64_t at, std::string_view found, std::string_view expected) {
  return {Code::kBadInput, Str(tensor.where().Text(), "value ", at, " is ", found, ", expected ", expected)};
}

// A value in JSON that is not what it should be.
struct Wrong {
  std::uint64_t at;
  element value;
};

// Calls take(element) for every value in order, until it returns false: then that value is the wrong one.
template <class Take>
std::optional<Wrong> EachIn(array data, std::size_t dimensions_left, std::uint64_t& at, Take& take) {
  if (dimensions_left > 1) {
    for (const element inner : data)
      if (const auto wrong = EachIn(inner.get_array().value_unsafe(), dimensions_left - 1, at, take)) return wrong;
    return std::nullopt;
  }
  for (const element value : data) {
    if (!take(value)) [[unlikely]]
      return Wrong{at, value};
    ++at;
  }
  return std::nullopt;
}

template <class Take>
std::optional<Wrong> EachInJson(const InputTensor& tensor, Take take) {
  std::uint64_t at = 0;
  return EachIn(tensor.data, tensor.nested ? tensor.dimensions : 1, at, take);
}

// A value of a binary tensor whose values are T.
template <class T>
T BinaryAt(const InputTensor& tensor, std::uint64_t i) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

// IEEE 754 half precision.
float FromHalf(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
  if (exponent == 0) {  // zero, or a number below 2^-14
    const float value = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -value : value;
  }
  const std::uint32_t wide = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

struct Half {
  std::uint16_t bits;
  explicit operator float() const { return FromHalf(bits); }
  explicit operator double() const { return static_cast<double>(FromHalf(bits)); }
};

bool IsFloating(Datatype type) { return type == Datatype::kFp16 || type == Datatype::kFp32 || type == Datatype::kFp64; }

template <class From, class To>
Result<void> ReadBinaryFloating(const InputTensor& tensor, To* to) {
  for (std::uint64_t i = 0; i < tensor.count; ++i) {
    to[i] = static_cast<To>(BinaryAt<From>(tensor, i));
    if (!std::isfinite(to[i])) [[unlikely]]
      return BadValue(tensor, i, Str(to[i]), "a finite number");
  }
  return {};
}

// Floating-point values as T, which is float or double; all finite.
template <class T>
Result<void> ReadFloating(const InputTensor& tensor, Null null, data::Buffer<T>& out) {
  out.Resize(tensor.count);
  T* to = out.data();
  if (tensor.binary) {
    if (tensor.type == Datatype::kFp16) return ReadBinaryFloating<Half>(tensor, to);
    if (tensor.type == Datatype::kFp32) return ReadBinaryFloating<float>(tensor, to);
    return ReadBinaryFloating<double>(tensor, to);
  }
  const auto wrong = EachInJson(tensor, [&](element value) {
    double number = 0;
    if (value.get(number) != simdjson::SUCCESS) [[unlikely]] {
      *to++ = std::numeric_limits<T>::quiet_NaN();
      return null == Null::kMissing && value.is_null();
    }
    *to = static_cast<T>(number);
    return std::isfinite(*to++);
  });
  if (wrong) return BadValue(tensor, wrong->at, Shown(wrong->value), "a finite number");
  return {};
}

// Calls work.template operator()<T>() with the type of whole numbers that the tensor has.
template <class Work>
auto WithWholeType(Datatype type, Work work) {
  switch (type) {
    case Datatype::kUint8:
      return work.template operator()<std::uint8_t>();
    case Datatype::kUint16:
      return work.template operator()<std::uint16_t>();
    case Datatype::kUint32:
      return work.template operator()<std::uint32_t>();
    case Datatype::kUint64:
      return work.template operator()<std::uint64_t>();
    case Datatype::kInt8:
      return work.template operator()<std::int8_t>();
    case Datatype::kInt16:
      return work.template operator()<std::int16_t>();
    case Datatype::kInt32:
      return work.template operator()<std::int32_t>();
    default:
      return work.template operator()<std::int64_t>();
  }
}

template <class T>
Result<void> ReadWholesOf(const InputTensor& tensor, std::int64_t* to) {
  if (!tensor.binary) {
    const auto wrong = EachInJson(tensor, [&](element value) {
      std::int64_t number = 0;
      const bool right = value.get(number) == simdjson::SUCCESS && std::in_range<T>(number);
      *to++ = number;
      return right;
    });
    if (!wrong) return {};
    return BadValue(tensor, wrong->at, Shown(wrong->value), Str("a whole number within ", Name(tensor.type)));
  }
  for (std::uint64_t i = 0; i < tensor.count; ++i) {
    const T value = BinaryAt<T>(tensor, i);
    if (!std::in_range<std::int64_t>(value)) return BadValue(tensor, i, Str(value), "at most what INT64 holds");
    to[i] = static_cast<std::int64_t>(value);  // NOLINT(bugprone-signed-char-misuse): INT8 is a number
  }
  return {};
}

Result<void> ReadBools(const InputTensor& tensor, std::int64_t* to) {
  if (!tensor.binary) {
    const auto wrong = EachInJson(tensor, [&](element value) {
      bool truth = false;
      const bool right = value.get(truth) == simdjson::SUCCESS;
      *to++ = truth;
      return right;
    });
    if (!wrong) return {};
    return BadValue(tensor, wrong->at, Shown(wrong->value), "true or false");
  }
  for (std::uint64_t i = 0; i < tensor.count; ++i) {
    to[i] = static_cast<unsigned char>(tensor.bytes[i]);
    if (to[i] > 1) return BadValue(tensor, i, Str(to[i]), "0 or 1");
  }
  return {};
}

Error BadType(const InputTensor& tensor, std::string_view expected) {
  return {Code::kBadInput, Str(tensor.where().Text(), "datatype ", Name(tensor.type), ", expected ", expected)};
}

Result<void> ReadBinaryTexts(const InputTensor& tensor, std::vector<std::string_view>& out) {
  std::string_view rest = tensor.bytes;
  for (std::uint64_t i = 0; i < tensor.count; ++i) {
    std::uint32_t size = 0;
    if (rest.size() < sizeof size)
      return BadValue(tensor, i, Str("cut off after ", rest.size(), " bytes"), "4 bytes of its length");
    std::memcpy(&size, rest.data(), sizeof size);
    rest.remove_prefix(sizeof size);
    if (size > rest.size())
      return BadValue(tensor, i, Str("said to have ", size, " bytes"),
                      Str("at most the ", rest.size(), " that are left"));
    out.push_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  if (rest.empty()) return {};
  return Error{Code::kBadInput, Str(tensor.where().Text(), rest.size(), " bytes are left after its last value")};
}

}  // namespace

Result<std::span<const std::int64_t>> ReadWholes(const InputTensor& tensor, ValueMemory& memory) {
  if (IsFloating(tensor.type) || tensor.type == Datatype::kBytes) return BadType(tensor, "a type of whole numbers");
  data::Buffer<std::int64_t>& out = memory.wholes;
  out.Resize(tensor.count);
  if (tensor.type == Datatype::kBool)
    TRY(ReadBools(tensor, out.data()));
  else
    TRY(WithWholeType(tensor.type, [&]<class T>() { return ReadWholesOf<T>(tensor, out.data()); }));
  return std::span<const std::int64_t>(out.span());
}

Result<std::span<const float>> ReadFloats(const InputTensor& tensor, Null null, ValueMemory& memory) {
  if (tensor.type == Datatype::kBytes) return BadType(tensor, "a type of numbers");
  if (IsFloating(tensor.type)) {
    TRY(ReadFloating(tensor, null, memory.floats));
  } else {
    const auto wholes = TRY(ReadWholes(tensor, memory));
    memory.floats.Resize(wholes.size());
    // By way of a double, as numbers in text go.
    for (std::size_t i = 0; i < wholes.size(); ++i)
      memory.floats[i] = static_cast<float>(static_cast<double>(wholes[i]));
  }
  return std::span<const float>(memory.floats.span());
}

Result<std::span<const std::string_view>> ReadTexts(const InputTensor& tensor, Null null, ValueMemory& memory) {
  if (tensor.type != Datatype::kBytes) return BadType(tensor, "BYTES");
  memory.texts.clear();
  if (tensor.binary) {
    TRY(ReadBinaryTexts(tensor, memory.texts));
  } else {
    const auto wrong = EachInJson(tensor, [&](element value) {
      std::string_view text;
      const bool right = value.get(text) == simdjson::SUCCESS || (null == Null::kMissing && value.is_null());
      memory.texts.push_back(text);
      return right;
    });
    if (wrong) return BadValue(tensor, wrong->at, Shown(wrong->value), "a string");
  }
  return std::span<const std::string_view>(memory.texts);
}

Result<data::Values> ReadValues(const InputTensor& tensor, Null null, ValueMemory& memory) {
  if (tensor.type == Datatype::kBytes) return data::Values(TRY(ReadTexts(tensor, null, memory)));
  if (!IsFloating(tensor.type)) return data::Values(TRY(ReadWholes(tensor, memory)));
  if (tensor.type != Datatype::kFp64) return data::Values(TRY(ReadFloats(tensor, null, memory)));
  TRY(ReadFloating(tensor, null, memory.doubles));
  return data::Values(std::span<const double>(memory.doubles.span()));
}

}  // namespace freshet::serve
