#include "base/secret_hash.h"

#include <gtest/gtest.h>

#include <set>

#include "base/flood_testing.h"
#include "base/str.h"

namespace freshet::base {
namespace {

// The most keys of which one value of `bits` low bits is shared.
template <class HashOf>
int Fullest(int keys, int bits, const HashOf& hash_of) {
  std::vector<int> slots(std::size_t{1} << bits);
  for (int n = 0; n < keys; ++n) ++slots[hash_of(static_cast<std::uint64_t>(n)) & ((std::uint64_t{1} << bits) - 1)];
  return *std::max_element(slots.begin(), slots.end());
}

TEST(SecretHash, SpreadsNamesThatWereMadeToCollideUnderTheOpenHash) {
  ASSERT_EQ(Fullest(10'000, 14, [](std::uint64_t n) { return Hash64(FloodName(n)); }), 10'000);
  EXPECT_LT(Fullest(10'000, 14, [](std::uint64_t n) { return SecretHash(FloodName(n)); }), 20);
  EXPECT_LT(Fullest(10'000, 14, [](std::uint64_t n) { return SecretHash(n << 32); }), 20);
}

TEST(SecretHash, SpreadsOrdinaryNames) {
  EXPECT_LT(Fullest(10'000, 14, [](std::uint64_t n) { return SecretHash(Str("user ", n)); }), 20);
  EXPECT_LT(Fullest(10'000, 14, [](std::uint64_t n) { return SecretHash(n); }), 20);
}

TEST(SecretHash, TellsTextsOfAllLengthsApart) {
  std::set<std::uint64_t> hashes;
  for (std::size_t size = 0; size < 100; ++size)
    for (const char c : {'\0', 'a'}) hashes.insert(SecretHash(std::string(size, c)));
  EXPECT_EQ(hashes.size(), 199u);  // the empty text came twice
  const std::string text = "the same text";
  EXPECT_EQ(SecretHash(text), SecretHash(std::string(text)));
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] ^= 1;
    EXPECT_TRUE(hashes.insert(SecretHash(other)).second);
  }
}

}  // namespace
}  // namespace freshet::base
