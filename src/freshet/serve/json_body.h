#pragma once

#include <simdjson.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "data/buffer.h"

namespace freshet::serve {

// For the parsers of bodies only: this header brings simdjson with it.

// A body as JSON. All of it is checked, also what nobody asks for: structure, UTF-8, numbers, and a depth of at
// most 32.
//
// Threads: one at a time. Memory: as much as the largest body needed.
class JsonBody {
 public:
  static constexpr std::size_t kMostDepth = 32;

  // The object that `text` is; it stays until the next call. kBadInput for anything else.
  Result<simdjson::dom::object> Parse(std::string_view text);

 private:
  data::Buffer<char> padded_;
  simdjson::dom::parser parser_;
};

// A key that an object may have.
struct JsonField {
  std::string_view name;
  bool found = false;
  simdjson::dom::element value = {};
};

// Where in a body we are. It becomes a text only when there is something to complain about.
struct Where {
  std::string_view what = {};  // "input", "outputs"; nothing: the body itself
  std::string_view name = {};
  std::size_t index = 0;       // when there is no name
  std::string_view part = {};  // "parameters"

  std::string Text() const;  // "input 'x': ", "inputs[2]: ", "input 'x': parameters: ", ""
};

// Finds the fields of an object. A field that stands twice is kBadInput, and so is an unknown key where all shall be
// known.
enum class UnknownKeys { kIgnored, kRefused };
Result<void> FindFields(simdjson::dom::object object, std::span<JsonField> fields, UnknownKeys unknown,
                        const Where& where = {});

// A value as an error shows it: 'text', 1.5, null, an array …
std::string Shown(simdjson::dom::element value);

// The value of a field, or kBadInput saying what it is instead.
Result<std::string_view> StringIn(const JsonField& field, const Where& where = {});
Result<simdjson::dom::array> ArrayIn(const JsonField& field, const Where& where = {});
Result<simdjson::dom::object> ObjectIn(const JsonField& field, const Where& where = {});
Result<bool> BoolIn(const JsonField& field, const Where& where = {});
Result<std::uint64_t> WholeIn(const JsonField& field, const Where& where = {});

}  // namespace freshet::serve
