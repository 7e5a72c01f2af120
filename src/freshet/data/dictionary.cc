#include "data/dictionary.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/secret_hash.h"

namespace freshet::data {

std::string_view Dictionary::Name(std::uint32_t number) const {
  CHECK(number < ends_.size());
  const std::uint64_t begin = number == 0 ? 0 : ends_[number - 1];
  return std::string_view(bytes_).substr(begin, ends_[number] - begin);
}

// Where the name is, or the free slot where it would go.
std::size_t Dictionary::Slot(std::string_view name, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at] != 0 && Name(slots_[at] - 1) != name) at = (at + 1) & mask;
  return at;
}

std::uint32_t Dictionary::Find(std::string_view name) const {
  if (slots_.empty()) return kUnseen;
  const std::uint32_t found = slots_[Slot(name, base::SecretHash(name))];
  return found == 0 ? kUnseen : found - 1;
}

std::uint32_t Dictionary::Add(std::string_view name) {
  if ((ends_.size() + 1) * 2 > slots_.size()) Grow();
  std::uint32_t& slot = slots_[Slot(name, base::SecretHash(name))];
  if (slot == 0) {
    bytes_ += name;
    ends_.push_back(bytes_.size());
    CHECK(ends_.size() < kUnseen);
    slot = static_cast<std::uint32_t>(ends_.size());
  }
  return slot - 1;
}

std::size_t Dictionary::LongestProbe() const {
  std::size_t longest = 0;
  for (std::size_t at = 0; at < slots_.size(); ++at) {
    if (slots_[at] == 0) continue;
    const std::size_t home = base::SecretHash(Name(slots_[at] - 1)) & (slots_.size() - 1);
    longest = std::max(longest, ((at - home) & (slots_.size() - 1)) + 1);
  }
  return longest;
}

void Dictionary::Grow() {
  slots_.assign(slots_.empty() ? 64 : slots_.size() * 2, 0);
  for (std::uint32_t number = 0; number < size(); ++number)
    slots_[Slot(Name(number), base::SecretHash(Name(number)))] = number + 1;
}

std::string Dictionary::Serialize() const {
  std::string out;
  for (std::uint32_t number = 0; number < size(); ++number) {
    const std::string_view name = Name(number);
    const auto length = static_cast<std::uint32_t>(name.size());
    out.append(reinterpret_cast<const char*>(&length), sizeof length);
    out += name;
  }
  return out;
}

Result<Dictionary> Dictionary::Deserialize(std::span<const std::byte> bytes) {
  Dictionary dictionary;
  while (!bytes.empty()) {
    std::uint32_t length = 0;
    if (bytes.size() < sizeof length) return Error{Code::kCorrupt, "dictionary: cut off inside a length"};
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes = bytes.subspan(sizeof length);
    if (bytes.size() < length) return Error{Code::kCorrupt, "dictionary: a name is longer than what is left"};
    const std::uint32_t before = dictionary.size();
    dictionary.Add({reinterpret_cast<const char*>(bytes.data()), length});
    if (dictionary.size() == before) return Error{Code::kCorrupt, "dictionary: a name stands twice"};
    bytes = bytes.subspan(length);
  }
  return dictionary;
}

}  // namespace freshet::data
