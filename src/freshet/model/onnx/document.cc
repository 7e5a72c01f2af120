#include "model/onnx/document.h"

#include <cstring>

namespace freshet::model::onnx {
namespace {

template <class T>
std::vector<T> Copied(std::string_view bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

template <class T>
std::vector<std::int64_t> Widened(std::string_view bytes) {
  const std::vector<T> values = Copied<T>(bytes);
  return {values.begin(), values.end()};
}

}  // namespace

std::string_view NameOf(Type type) {
  switch (type) {
    case Type::kFloat:
      return "FLOAT";
    case Type::kInt32:
      return "INT32";
    case Type::kInt64:
      return "INT64";
    case Type::kString:
      return "STRING";
    case Type::kBool:
      return "BOOL";
    case Type::kDouble:
      return "DOUBLE";
    default:
      return "another type";
  }
}

std::size_t BytesOf(Type type) {
  switch (type) {
    case Type::kFloat:
    case Type::kInt32:
      return 4;
    case Type::kInt64:
    case Type::kDouble:
      return 8;
    case Type::kBool:
      return 1;
    default:
      return 0;
  }
}

std::size_t Tensor::elements() const {
  std::size_t product = 1;
  for (const std::int64_t dim : dims) product *= static_cast<std::size_t>(dim);
  return product;
}

bool Tensor::IsReal() const {
  return (type == Type::kFloat || type == Type::kDouble) && bytes.size() == elements() * BytesOf(type);
}

bool Tensor::IsWhole() const {
  const bool whole = type == Type::kInt64 || type == Type::kInt32 || type == Type::kBool;
  return whole && bytes.size() == elements() * BytesOf(type);
}

std::vector<float> Tensor::Floats() const {
  CHECK(IsReal());
  if (type == Type::kFloat) return Copied<float>(bytes);
  const std::vector<double> values = Copied<double>(bytes);
  return {values.begin(), values.end()};
}

std::vector<std::int64_t> Tensor::Ints() const {
  if (type == Type::kBool) return Widened<std::uint8_t>(bytes);
  if (type == Type::kInt32) return Widened<std::int32_t>(bytes);
  CHECK(type == Type::kInt64);
  return Copied<std::int64_t>(bytes);
}

Attribute IntAttribute(std::string name, std::int64_t value) {
  return {.name = std::move(name), .kind = Attribute::Kind::kInt, .i = value};
}
Attribute FloatAttribute(std::string name, double value) {
  return {.name = std::move(name), .kind = Attribute::Kind::kFloat, .f = static_cast<float>(value)};
}
Attribute StringAttribute(std::string name, std::string value) {
  return {.name = std::move(name), .kind = Attribute::Kind::kString, .s = std::move(value)};
}
Attribute IntsAttribute(std::string name, std::vector<std::int64_t> values) {
  return {.name = std::move(name), .kind = Attribute::Kind::kInts, .ints = std::move(values)};
}
Attribute FloatsAttribute(std::string name, std::vector<float> values) {
  return {.name = std::move(name), .kind = Attribute::Kind::kFloats, .floats = std::move(values)};
}
Attribute StringsAttribute(std::string name, std::vector<std::string> values) {
  return {.name = std::move(name), .kind = Attribute::Kind::kStrings, .strings = std::move(values)};
}

const Attribute* Node::Find(std::string_view attribute) const {
  for (const Attribute& candidate : attributes)
    if (candidate.name == attribute) return &candidate;
  return nullptr;
}

std::string Node::Label() const {
  std::string_view shown = name;
  for (const std::string& output : outputs)
    if (shown.empty()) shown = output;
  return Str(domain.empty() ? "" : Str(domain, "."), op, " ", Quoted(shown));
}

}  // namespace freshet::model::onnx
