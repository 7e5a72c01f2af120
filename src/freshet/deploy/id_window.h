#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace freshet::deploy {

// The last `most` client ids (more until Trim), by their 64-bit hashes, so that an observation sent twice is learned
// once. Two ids that share a hash among ten million: one chance in 10^12 for each new id.
//
// Threads: one at a time. Memory: 24 bytes an id, taken as ids come.
class IdWindow {
 public:
  explicit IdWindow(std::size_t most);
  static std::uint64_t HashOf(std::string_view id);  // never 0
  // Of a row that this owner predicted under the id; without an owner as above. No owner can find an id that comes out
  // as that of another.
  static std::uint64_t HashOf(std::string_view owner, std::string_view id);

  bool Has(std::uint64_t hash) const;
  // Adds one that is not there.
  void Add(std::uint64_t hash);
  // Takes back the newest.
  void RemoveNewest();
  // The oldest go where there are too many: once nothing will be taken back.
  void Trim();
  std::size_t size() const { return count_; }
  // So many slots are looked at, at most, to find a hash that is there.
  std::size_t LongestProbe() const;

 private:
  std::size_t Home(std::uint64_t hash) const;
  std::size_t Slot(std::uint64_t hash) const;
  void Erase(std::uint64_t hash);
  void Rehash(std::size_t slots);

  const std::size_t most_;
  std::vector<std::uint64_t> ring_;  // oldest at begin_
  std::size_t begin_ = 0, count_ = 0;
  std::vector<std::uint64_t> table_;  // open addressing, linear probing; 0: free
};

}  // namespace freshet::deploy
