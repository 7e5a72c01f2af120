#include "serve/json_body.h"

#include <cstring>
#include <vector>

namespace freshet::serve {
namespace {

std::string WhatIsWrong(simdjson::error_code error) {
  switch (error) {
    case simdjson::EMPTY:
      return "found nothing, expected an object";
    case simdjson::DEPTH_ERROR:
      return Str("it is nested deeper than ", JsonBody::kMostDepth, " levels");
    case simdjson::UTF8_ERROR:
      return "it is not UTF-8";
    case simdjson::NUMBER_ERROR:
      return "a number is malformed or too large";
    case simdjson::STRING_ERROR:
    case simdjson::UNESCAPED_CHARS:
    case simdjson::UNCLOSED_STRING:
      return "a string is malformed";
    case simdjson::CAPACITY:
    case simdjson::MEMALLOC:
      return "it is too large";
    default:
      return "a comma, colon, bracket or value is missing or out of place";
  }
}

template <class T>
Result<T> ValueIn(const JsonField& field, const Where& where, std::string_view expected) {
  T value;
  if (field.found && field.value.get(value) == simdjson::SUCCESS) return value;
  return Error{Code::kBadInput, field.found
                                    ? Str(where.Text(), field.name, " is ", Shown(field.value), ", expected ", expected)
                                    : Str(where.Text(), field.name, " is missing, expected ", expected)};
}

}  // namespace

std::string Where::Text() const {
  std::string text;
  if (!what.empty()) text = name.data() != nullptr ? Str(what, " ", Quoted(name), ": ") : Str(what, "[", index, "]: ");
  return part.empty() ? text : Str(text, part, ": ");
}

Result<simdjson::dom::object> JsonBody::Parse(std::string_view text) {
  padded_.Resize(text.size() + simdjson::SIMDJSON_PADDING);
  text.copy(padded_.data(), text.size());
  std::memset(padded_.data() + text.size(), ' ', simdjson::SIMDJSON_PADDING);
  simdjson::error_code error = simdjson::SUCCESS;
  // The parser counts the document itself as a level.
  if (parser_.capacity() < text.size() || parser_.max_depth() != kMostDepth + 1)
    error = parser_.allocate(text.size() + simdjson::SIMDJSON_PADDING, kMostDepth + 1);
  simdjson::dom::element root;
  if (error == simdjson::SUCCESS) error = parser_.parse(padded_.data(), text.size(), false).get(root);
  if (error != simdjson::SUCCESS)
    return Error{Code::kBadInput, Str("the body is not valid JSON: ", WhatIsWrong(error))};
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS)
    return Error{Code::kBadInput, Str("the body is ", Shown(root), ", expected an object")};
  return object;
}

Result<void> FindFields(simdjson::dom::object object, std::span<JsonField> fields, UnknownKeys unknown,
                        const Where& where) {
  for (const auto [key, value] : object) {
    JsonField* known = nullptr;
    for (JsonField& field : fields)
      if (field.name == key) known = &field;
    if (known != nullptr) {
      if (known->found) return Error{Code::kBadInput, Str(where.Text(), known->name, " stands twice")};
      known->found = true;
      known->value = value;
    } else if (unknown == UnknownKeys::kRefused) {
      std::vector<std::string> names;
      for (const JsonField& field : fields) names.emplace_back(field.name);
      return Error{Code::kBadInput, Str(where.Text(), "unknown key ", Quoted(key), ", expected ",
                                        names.empty() ? "none" : Join(names, ", "))};
    }
  }
  return {};
}

std::string Shown(simdjson::dom::element value) {
  using simdjson::dom::element_type;
  switch (value.type()) {
    case element_type::ARRAY:
      return "an array";
    case element_type::OBJECT:
      return "an object";
    case element_type::STRING:
      return Quoted(value.get_string().value_unsafe());
    case element_type::INT64:
      return Str(value.get_int64().value_unsafe());
    case element_type::UINT64:
      return Str(value.get_uint64().value_unsafe());
    case element_type::DOUBLE:
      return Str(value.get_double().value_unsafe());
    case element_type::BOOL:
      return value.get_bool().value_unsafe() ? "true" : "false";
    case element_type::NULL_VALUE:
      break;
  }
  return "null";
}

Result<std::string_view> StringIn(const JsonField& field, const Where& where) {
  return ValueIn<std::string_view>(field, where, "a string");
}
Result<simdjson::dom::array> ArrayIn(const JsonField& field, const Where& where) {
  return ValueIn<simdjson::dom::array>(field, where, "an array");
}
Result<simdjson::dom::object> ObjectIn(const JsonField& field, const Where& where) {
  return ValueIn<simdjson::dom::object>(field, where, "an object");
}
Result<bool> BoolIn(const JsonField& field, const Where& where) { return ValueIn<bool>(field, where, "true or false"); }
Result<std::uint64_t> WholeIn(const JsonField& field, const Where& where) {
  return ValueIn<std::uint64_t>(field, where, "a whole number that is not negative");
}

}  // namespace freshet::serve
