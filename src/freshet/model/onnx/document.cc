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
    default:
      return "another type";
  }
}

std::size_t Tensor::elements() const {
  std::size_t product = 1;
  for (const std::int64_t dim : dims) product *= static_cast<std::size_t>(dim);
  return product;
}

std::vector<float> Tensor::Floats() const {
  CHECK(type == Type::kFloat);
  return Copied<float>(bytes);
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
  const std::string_view shown = !name.empty() || outputs.empty() ? name : outputs[0];
  return Str(domain.empty() ? "" : Str(domain, "."), op, " ", Quoted(shown));
}

}  // namespace freshet::model::onnx
