#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace freshet::model::onnx {

// The wire format of protocol buffers, as far as ONNX files use it: a message is fields one after another, each a
// number, a type and a value.

// One field of a message. What a repeated field of numbers holds may come field by field or packed into bytes.
struct Field {
  enum class Type { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  std::uint32_t number = 0;
  Type type = Type::kVarint;
  std::uint64_t value = 0;      // of all types but bytes
  std::string_view bytes = {};  // borrowed from the message
};

// Walks over the fields of one message; allocates nothing. Ownership: borrows the bytes.
class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}

  // The next field, or nothing at the end. kBadInput when the message is cut off or is none.
  Result<std::optional<Field>> Next();
  // For packed numbers: is there more, and the next one.
  bool done() const { return rest_.empty(); }
  Result<std::uint64_t> Varint();
  Result<std::uint32_t> Fixed32();

 private:
  Result<std::string_view> Take(std::uint64_t bytes);

  std::string_view rest_;
};

// Appends fields to a message.
class WireWriter {
 public:
  void Int(std::uint32_t field, std::int64_t value);
  void Float(std::uint32_t field, float value);
  void Bytes(std::uint32_t field, std::string_view bytes);
  // The head of a field of so many bytes, which somebody else will write after it.
  void Head(std::uint32_t field, std::uint64_t bytes);
  const std::string& message() const { return message_; }

 private:
  void Varint(std::uint64_t value);

  std::string message_;
};

}  // namespace freshet::model::onnx
