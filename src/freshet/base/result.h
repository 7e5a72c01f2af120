#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/str.h"

namespace freshet {

// What went wrong, for a caller to act on. A code exists when somebody acts on it; doors turn it into an exit code.
enum class Code {
  kInvalid,   // what was asked for makes no sense: a flag, an option, a combination
  kBadInput,  // the data is malformed: file, line and column are in the text
  kNotFound,  // a file, column, key or model that is not there
  kIo,        // the operating system refused: disk full, permission, broken pipe
  kCorrupt,   // a file of ours is damaged, truncated or of another version
  kBusy,      // another process holds it
  kTimeout,   // a deadline passed
  kPeerLost,  // another worker is gone; the text names rank and host
  kDiverged,  // the model's numbers are no longer finite
  kStopped,   // somebody asked us to stop
};

std::string_view Name(Code code);

struct [[nodiscard]] Error {
  Code code;
  std::string text;

  // Adds context on the way up: "what; while reading a.svm". The first cause stays in front.
  Error While(std::string_view doing) && { return {code, Str(text, "; while ", doing)}; }
};

// A value or an Error. Exceptions are not part of our interfaces.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  T& value() & { return CHECK(ok()), std::get<0>(state_); }
  const T& value() const& { return CHECK(ok()), std::get<0>(state_); }
  T&& value() && { return CHECK(ok()), std::get<0>(std::move(state_)); }
  const Error& error() const& { return CHECK(!ok()), std::get<1>(state_); }
  Error&& error() && { return CHECK(!ok()), std::get<1>(std::move(state_)); }
  Result While(std::string_view doing) && {
    if (ok()) return std::move(*this);
    return std::move(*this).error().While(doing);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return !error_.has_value(); }
  void value() const { CHECK(ok()); }
  const Error& error() const& { return CHECK(!ok()), *error_; }
  Error&& error() && { return CHECK(!ok()), *std::move(error_); }
  Result While(std::string_view doing) && {
    if (ok()) return {};
    return std::move(*this).error().While(doing);
  }

 private:
  std::optional<Error> error_;
};

// The value of a Result, or return its error to our caller.
#define TRY(expression) FRESHET_TRY_NAMED(FRESHET_JOIN(result_, __COUNTER__), expression)
#define FRESHET_JOIN(a, b) FRESHET_JOIN_NOW(a, b)
#define FRESHET_JOIN_NOW(a, b) a##b
#define FRESHET_TRY_NAMED(result, expression)             \
  __extension__({                                         \
    auto result = (expression);                           \
    if (!result.ok()) return ::std::move(result).error(); \
    ::std::move(result).value();                          \
  })

}  // namespace freshet
