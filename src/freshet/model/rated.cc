#include "model/rated.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace freshet::model {
namespace {

void Put(std::uint32_t number, std::string& out) {
  for (; number >= 0x80; number >>= 7) out += static_cast<char>(0x80 | (number & 0x7f));
  out += static_cast<char>(number);
}

// Where those of each number begin once they are sorted by it, and the end.
std::vector<std::size_t> Starts(const std::vector<Rated::Pair>& pairs, std::uint32_t numbers,
                                std::uint32_t Rated::Pair::*by) {
  std::vector<std::size_t> starts(numbers + std::size_t{1}, 0);
  for (const Rated::Pair& pair : pairs) ++starts[pair.*by + std::size_t{1}];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  return starts;
}

// The number at the front, which is taken off; nothing when there is none of 32 bits.
std::optional<std::uint32_t> Take(std::string_view& bytes) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 35 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return number <= 0xffffffffu ? std::optional(static_cast<std::uint32_t>(number)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

void Rated::Add(const data::Batch& ratings) {
  for (std::size_t r = 0; r < ratings.rows && pairs_.size() < kMost; ++r) {
    const std::uint32_t* const entry = ratings.indices + ratings.offsets[r];
    if (entry[0] != data::kUnseen && entry[1] != data::kUnseen) pairs_.emplace_back(entry[0], entry[1]);
  }
}

std::string Rated::Pack() const {
  std::uint32_t users = 0, most = 0;
  for (const auto& [user, item] : pairs_) users = std::max(users, user + 1), most = std::max(most, item + 1);
  // By item, then by user, where the order of items stays.
  std::vector<std::size_t> next = Starts(pairs_, most, &Pair::second);
  std::vector<Pair> sorted(pairs_.size());
  for (const Pair& pair : pairs_) sorted[next[pair.second]++] = pair;
  const std::vector<std::size_t> starts = Starts(pairs_, users, &Pair::first);
  std::vector<std::uint32_t> items(pairs_.size());
  next = starts;
  for (const auto& [user, item] : sorted) items[next[user]++] = item;
  std::string out;
  out.reserve(users + 2 * pairs_.size());
  for (std::uint32_t user = 0; user < users; ++user) {
    const auto begin = items.begin() + static_cast<std::ptrdiff_t>(starts[user]);
    const auto end = std::unique(begin, items.begin() + static_cast<std::ptrdiff_t>(starts[user + 1]));
    Put(static_cast<std::uint32_t>(end - begin), out);
    std::uint32_t before = 0;
    for (auto item = begin; item != end; before = *item++) Put(*item - before, out);
  }
  return out;
}

Result<Rated> Rated::Unpack(std::string_view bytes) {
  const Error damaged{Code::kCorrupt, "the list of what was rated does not hold together"};
  Rated rated;
  for (std::uint32_t user = 0; !bytes.empty(); ++user) {
    const auto count = Take(bytes);
    if (!count || *count > bytes.size()) return damaged;
    std::uint32_t item = 0;
    for (std::uint32_t i = 0; i < *count; ++i) {
      const auto distance = Take(bytes);
      if (!distance || *distance > data::kUnseen - item || (i > 0 && *distance == 0)) return damaged;
      item += *distance;
      rated.pairs_.emplace_back(user, item);
    }
  }
  return rated;
}

}  // namespace freshet::model
