#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/batch.h"

namespace freshet::data {

// Names of things (users, items, categories) and their numbers 0, 1, 2 … in the order they were first met.
// Looking one up takes the same time whoever chose the names (base/secret_hash.h).
//
// Threads: one writer, or many readers.
class Dictionary {
 public:
  std::uint32_t Find(std::string_view name) const;  // kUnseen when it is not there
  std::uint32_t Add(std::string_view name);         // finds or appends
  std::string_view Name(std::uint32_t number) const;
  std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()); }

  // So many slots are looked at, at most, to find a name that is there.
  std::size_t LongestProbe() const;

  // One length (u32, little-endian) and its bytes for each name.
  std::string Serialize() const;
  static Result<Dictionary> Deserialize(std::span<const std::byte> bytes);

 private:
  std::size_t Slot(std::string_view name, std::uint64_t hash) const;
  void Grow();

  std::string bytes_;                 // all names, one after another
  std::vector<std::uint64_t> ends_;   // where each ends in bytes_
  std::vector<std::uint32_t> slots_;  // open addressing: number + 1, or 0 for free
};

}  // namespace freshet::data
