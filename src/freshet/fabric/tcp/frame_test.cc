#include "fabric/tcp/frame.h"

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/random.h"
#include "fabric/tcp/wire.h"

namespace freshet::fabric::tcp {
namespace {

Header RandomHeader(std::uint64_t seed) {
  base::Random random(seed, "frames");
  Header header;
  header.type = static_cast<FrameType>(1 + random.Below(11));
  header.checked = random.Below(2) == 0;
  header.generation = random.Next();
  header.sequence = random.Next();
  header.tag = random.Next();
  header.id = random.Next();
  header.length = random.Below(MaxPayload(header.type) + 1);
  header.argument = random.Next();
  header.payload_crc = static_cast<std::uint32_t>(random.Next());
  return header;
}

// Makes the header's checksum right again.
void Reseal(HeaderBytes& bytes) { Store(&bytes[60], base::Crc32c(std::span(bytes).first<60>())); }

TEST(Frame, ComesBackAsItWas) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Header header = RandomHeader(seed);
    const auto decoded = Decode(Encode(header));
    ASSERT_TRUE(decoded.ok()) << decoded.error().text;
    EXPECT_EQ(decoded.value(), header) << "seed " << seed;
  }
}

TEST(Frame, EveryFlippedBitOfAHeaderIsNoticed) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const HeaderBytes bytes = Encode(RandomHeader(seed));
    for (std::size_t bit = 0; bit < 8 * kHeaderBytes; ++bit) {
      HeaderBytes flipped = bytes;
      flipped[bit / 8] ^= std::byte{1} << (bit % 8);
      ASSERT_FALSE(Decode(flipped).ok()) << "seed " << seed << " bit " << bit;
    }
  }
}

TEST(Frame, AbsurdLengthsAreRefusedBeforeAnythingIsAllocated) {
  for (int type = 1; type <= 11; ++type) {
    for (const std::uint64_t beyond : {std::uint64_t{1}, std::uint64_t{1} << 32, ~std::uint64_t{0} / 2}) {
      HeaderBytes bytes = Encode({.type = static_cast<FrameType>(type)});
      Store(&bytes[40], MaxPayload(static_cast<FrameType>(type)) + beyond);
      Reseal(bytes);
      const auto decoded = Decode(bytes);
      ASSERT_FALSE(decoded.ok());
      EXPECT_NE(decoded.error().text.find("promises"), std::string::npos) << decoded.error().text;
    }
  }
}

TEST(Frame, UnknownTypesAndFlagsAreRefused) {
  for (const auto& [at, value] : std::vector<std::pair<int, int>>{{4, 0}, {4, 12}, {4, 255}, {5, 2}, {6, 1}, {7, 1}}) {
    HeaderBytes bytes = Encode({});
    bytes[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
    Reseal(bytes);
    EXPECT_FALSE(Decode(bytes).ok()) << at << " " << value;
  }
}

}  // namespace
}  // namespace freshet::fabric::tcp
