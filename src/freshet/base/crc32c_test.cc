#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

#include "base/str.h"

namespace freshet::base {
namespace {

std::uint32_t Of(std::string_view text) { return Crc32cOf(std::span(text.data(), text.size())); }

TEST(Crc32c, GivesTheKnownAnswers) {
  EXPECT_EQ(Of(""), 0u);
  EXPECT_EQ(Of("123456789"), 0xE3069283u);
  // RFC 3720, B.4
  EXPECT_EQ(Of(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Of(std::string(32, '\xff')), 0x62A8AB43u);
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending += c;
  EXPECT_EQ(Of(ascending), 0x46DD794Eu);
}

TEST(Crc32c, IsTheSameByInstructionAndByTableForAnyLengthAndAlignment) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    std::mt19937_64 random(seed);
    std::vector<std::byte> bytes(random() % (seed % 2 == 0 ? 200 : 20'000) + 16);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    const std::size_t begin = random() % 16;
    const auto part = std::span<const std::byte>(bytes).subspan(begin, random() % (bytes.size() - begin + 1));
    const auto earlier = static_cast<std::uint32_t>(random());
    ASSERT_EQ(Crc32c(part, earlier), Crc32cByTable(part, earlier));
  }
}

TEST(Crc32c, OfPartsContinuedIsThatOfTheWhole) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    std::mt19937_64 random(seed);
    std::vector<std::byte> bytes(random() % 100);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    const std::size_t cut = random() % (bytes.size() + 1);
    const std::span<const std::byte> all(bytes);
    ASSERT_EQ(Crc32c(all.subspan(cut), Crc32c(all.first(cut))), Crc32c(all));
  }
}

TEST(Crc32c, ChangesWithEveryBit) {
  std::vector<std::byte> bytes(40, std::byte{0x5a});
  const std::uint32_t whole = Crc32c(bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_NE(Crc32c(bytes), whole) << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

}  // namespace
}  // namespace freshet::base
