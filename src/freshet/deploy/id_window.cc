#include "deploy/id_window.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/random.h"
#include "base/secret_hash.h"

namespace freshet::deploy {

IdWindow::IdWindow(std::size_t most) : most_(most), table_(1024, 0) { CHECK(most > 0); }

std::uint64_t IdWindow::HashOf(std::string_view id) { return std::max<std::uint64_t>(1, base::Hash64(id)); }

std::uint64_t IdWindow::HashOf(std::string_view owner, std::string_view id) {
  if (owner.empty()) return HashOf(id);
  std::string text(owner);
  text += '\0';  // which no owner has in its name
  text += id;
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::uint64_t hash = 0;
  std::memcpy(&hash, digest.data(), sizeof hash);
  return std::max<std::uint64_t>(1, hash);
}

// Where the search for a hash begins. Hashes can be chosen by whoever sends ids; where they lie cannot.
std::size_t IdWindow::Home(std::uint64_t hash) const { return base::SecretHash(hash) & (table_.size() - 1); }

std::size_t IdWindow::Slot(std::uint64_t hash) const {
  std::size_t slot = Home(hash);
  while (table_[slot] != 0 && table_[slot] != hash) slot = (slot + 1) & (table_.size() - 1);
  return slot;
}

bool IdWindow::Has(std::uint64_t hash) const { return table_[Slot(hash)] == hash; }

std::size_t IdWindow::LongestProbe() const {
  std::size_t longest = 0;
  for (std::size_t at = 0; at < table_.size(); ++at)
    if (table_[at] != 0) longest = std::max(longest, ((at - Home(table_[at])) & (table_.size() - 1)) + 1);
  return longest;
}

void IdWindow::Add(std::uint64_t hash) {
  CHECK(hash != 0 && !Has(hash));
  if (count_ == ring_.size()) {  // the ring grows: the oldest comes first again
    std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(begin_), ring_.end());
    begin_ = 0;
    ring_.resize(std::max<std::size_t>(1024, ring_.size() + ring_.size() / 2));
  }
  ring_[(begin_ + count_) % ring_.size()] = hash;
  ++count_;
  if (count_ * 2 > table_.size()) Rehash(table_.size() * 2);
  table_[Slot(hash)] = hash;
}

void IdWindow::RemoveNewest() {
  CHECK(count_ > 0);
  --count_;
  Erase(ring_[(begin_ + count_) % ring_.size()]);
}

void IdWindow::Trim() {
  for (; count_ > most_; --count_) {
    Erase(ring_[begin_]);
    begin_ = (begin_ + 1) % ring_.size();
  }
}

void IdWindow::Erase(std::uint64_t hash) {
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = Slot(hash);
  CHECK(table_[hole] == hash);
  table_[hole] = 0;
  // Whoever stands behind the hole and would be found through it moves into it.
  for (std::size_t at = (hole + 1) & mask; table_[at] != 0; at = (at + 1) & mask) {
    const std::size_t home = Home(table_[at]);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    table_[hole] = table_[at];
    table_[at] = 0;
    hole = at;
  }
}

void IdWindow::Rehash(std::size_t slots) {
  table_.assign(slots, 0);
  for (std::size_t i = 0; i + 1 < count_; ++i) {  // all but the newest, which Add is about to enter
    const std::uint64_t hash = ring_[(begin_ + i) % ring_.size()];
    table_[Slot(hash)] = hash;
  }
}

}  // namespace freshet::deploy
