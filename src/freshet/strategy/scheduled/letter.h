#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace freshet::strategy::scheduled {

// What members tell one another, put together and taken apart. All are the same program, so that their structs are the
// same.
template <class T>
void Append(std::vector<std::byte>& letter, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  letter.insert(letter.end(), bytes.begin(), bytes.end());
}

// Takes what the values need off the front of a letter; false when there is less.
template <class T>
bool TakeOff(std::span<const std::byte>& letter, std::span<T> values) {
  if (letter.size() < values.size_bytes()) return false;
  if (!values.empty()) std::memcpy(values.data(), letter.data(), values.size_bytes());
  letter = letter.subspan(values.size_bytes());
  return true;
}

}  // namespace freshet::strategy::scheduled
