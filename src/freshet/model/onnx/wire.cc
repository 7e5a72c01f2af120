#include "model/onnx/wire.h"

#include <cstring>

namespace freshet::model::onnx {
namespace {

Error CutOff() { return {Code::kBadInput, "not an ONNX file, or cut off: a field is longer than what is left"}; }

}  // namespace

Result<std::string_view> WireReader::Take(std::uint64_t bytes) {
  if (bytes > rest_.size()) return CutOff();
  const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(bytes));
  rest_.remove_prefix(taken.size());
  return taken;
}

Result<std::uint64_t> WireReader::Varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(TRY(Take(1))[0]);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return Error{Code::kBadInput, "not an ONNX file: a number has more than ten bytes"};
}

Result<std::uint32_t> WireReader::Fixed32() {
  std::uint32_t value = 0;
  std::memcpy(&value, TRY(Take(sizeof value)).data(), sizeof value);
  return value;
}

Result<std::optional<Field>> WireReader::Next() {
  if (done()) return std::optional<Field>();
  const std::uint64_t key = TRY(Varint());
  Field field{.number = static_cast<std::uint32_t>(key >> 3), .type = static_cast<Field::Type>(key & 7)};
  if (key >> 3 == 0 || key >> 32 != 0) return Error{Code::kBadInput, Str("not an ONNX file: field number ", key >> 3)};
  switch (field.type) {
    case Field::Type::kVarint:
      field.value = TRY(Varint());
      break;
    case Field::Type::kFixed64:
      std::memcpy(&field.value, TRY(Take(sizeof field.value)).data(), sizeof field.value);
      break;
    case Field::Type::kBytes:
      field.bytes = TRY(Take(TRY(Varint())));
      break;
    case Field::Type::kFixed32:
      field.value = TRY(Fixed32());
      break;
    default:
      return Error{Code::kBadInput, Str("not an ONNX file: a field of type ", key & 7)};
  }
  return std::optional(field);
}

void WireWriter::Varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) message_ += static_cast<char>(value | 0x80);
  message_ += static_cast<char>(value);
}

void WireWriter::Int(std::uint32_t field, std::int64_t value) {
  Varint(std::uint64_t{field} << 3);
  Varint(static_cast<std::uint64_t>(value));
}

void WireWriter::Float(std::uint32_t field, float value) {
  Varint(std::uint64_t{field} << 3 | static_cast<std::uint64_t>(Field::Type::kFixed32));
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  message_.append(bytes, sizeof bytes);
}

void WireWriter::Head(std::uint32_t field, std::uint64_t bytes) {
  Varint(std::uint64_t{field} << 3 | static_cast<std::uint64_t>(Field::Type::kBytes));
  Varint(bytes);
}

void WireWriter::Bytes(std::uint32_t field, std::string_view bytes) {
  Head(field, bytes.size());
  message_ += bytes;
}

}  // namespace freshet::model::onnx
