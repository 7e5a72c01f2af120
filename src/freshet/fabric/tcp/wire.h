#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/result.h"

namespace freshet::fabric::tcp {

static_assert(std::endian::native == std::endian::little, "numbers travel as they lie in memory");

template <std::unsigned_integral T>
void Store(std::byte* at, T number) {
  std::memcpy(at, &number, sizeof number);
}
template <std::unsigned_integral T>
T Load(const std::byte* at) {
  T number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

template <std::unsigned_integral T>
void PutNumber(std::string& out, T number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}
inline void PutText(std::string& out, std::string_view text) {
  PutNumber(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

// Takes numbers and texts off the front of bytes. The first thing that is not there makes all that follows zero and
// empty; ok() tells.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  template <std::unsigned_integral T>
  T Number() {
    const std::string_view taken = Raw(sizeof(T));
    T number{};
    if (ok_) std::memcpy(&number, taken.data(), sizeof number);
    return number;
  }
  std::string Text() { return std::string(Raw(Number<std::uint32_t>())); }
  std::string_view Raw(std::size_t count) {
    if (!ok_ || count > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace freshet::fabric::tcp
