#include "data/bytes.h"

#include "base/random.h"
#include "data/packed_testing.h"
#include "data/parse_testing.h"
#include "data/world_testing.h"

namespace freshet::data {
namespace {

// Everything a stream has, read in pieces of up to `most` bytes.
Result<std::string> ReadAllOf(World& world, const std::string& path, std::uint64_t seed, std::size_t most) {
  base::Random random(seed, "pieces");
  const auto stream = TRY(OpenBytes(world.posix, path));
  std::string all;
  while (true) {
    std::string piece(1 + random.Below(most), '\0');
    const std::size_t got = TRY(stream->Read(piece));
    all.append(piece, 0, got);
    if (got < piece.size()) return all;
  }
}

std::string RandomText(base::Random& random, std::size_t size) {
  std::string text;
  const std::uint64_t letters = 1 + random.Below(60);
  while (text.size() < size) text += static_cast<char>(' ' + random.Below(letters));
  return text;
}

TEST(Bytes, ComeOutAsTheyWereBeforePackingWhateverIsAskedForAtOnce) {
  World world;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "bytes");
    const std::string text = RandomText(random, random.Below(seed % 10 == 0 ? 300'000 : 3'000));
    const std::size_t most = 1 + random.Below(random.Below(2) ? 5'000 : 200'000);
    const std::string plain = world.Write("plain", text);
    ASSERT_EQ(ReadAllOf(world, plain, seed, most).value(), text);
    EXPECT_EQ(OpenBytes(world.posix, plain).value()->size(), text.size());
    for (const Packer pack : kPackers) {
      const std::string path = world.Write("packed", pack(text));
      const auto bytes = ReadAllOf(world, path, seed, most);
      ASSERT_TRUE(bytes.ok()) << bytes.error().text;
      ASSERT_EQ(bytes.value(), text);
      EXPECT_FALSE(OpenBytes(world.posix, path).value()->size().has_value());
    }
  }
}

TEST(Bytes, OfPackedFilesOneAfterAnotherAreAllRead) {
  World world;
  for (const Packer pack : kPackers) {
    const std::string path =
        world.Write("packed", pack("first\n") + pack("") + pack(std::string(100'000, 'x')) + pack("last\n"));
    for (const std::size_t most : {1u, 7u, 1u << 20})
      EXPECT_EQ(ReadAllOf(world, path, 1, most).value(), "first\n" + std::string(100'000, 'x') + "last\n");
  }
}

TEST(Bytes, OfAFileThatIsCutOffAnywhereAreRefused) {
  World world;
  base::Random random(1, "cut");
  const std::string text = RandomText(random, 2'000);
  for (const Packer pack : kPackers) {
    const std::string whole = pack(text);
    for (std::size_t size = 6; size < whole.size(); size += 1 + whole.size() / 200) {
      SCOPED_TRACE(size);
      const auto bytes = ReadAllOf(world, world.Write("cut", whole.substr(0, size)), size, 700);
      ASSERT_FALSE(bytes.ok());
      EXPECT_EQ(bytes.error().code, Code::kBadInput);
      EXPECT_NE(bytes.error().text.find("data is cut off; the file is incomplete"), std::string::npos)
          << bytes.error().text;
    }
  }
}

TEST(Bytes, OfADamagedFileAreRefusedOrAsTheyWere) {
  World world;
  base::Random random(2, "damage");
  const std::string text = RandomText(random, 2'000);
  for (const Packer pack : {kPackers[0], kPackers[1], kPackers[3]}) {  // those with a checksum
    const std::string whole = pack(text);
    std::size_t refused = 0;
    for (std::size_t at = 6; at < whole.size(); at += 7) {
      SCOPED_TRACE(at);
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
      const auto bytes = ReadAllOf(world, world.Write("damaged", damaged), at, 5'000);
      if (bytes.ok()) {
        EXPECT_EQ(bytes.value(), text);
      } else {
        EXPECT_EQ(bytes.error().code, Code::kBadInput);
        ++refused;
      }
    }
    EXPECT_GT(refused, whole.size() / 7 - 10);
  }
}

TEST(Bytes, BehindAPackedFileThatAreNotPackedAreRefused) {
  World world;
  for (const Packer pack : kPackers)
    EXPECT_FALSE(ReadAllOf(world, world.Write("more", pack("abc") + "and some more text"), 1, 100).ok());
}

TEST(Bytes, OfABombAreRefused) {
  World world;
  const std::string zeros(20 << 20, '\0');
  for (const Packer pack : kPackers) {
    const auto bytes = ReadAllOf(world, world.Write("bomb", pack(zeros)), 1, 1 << 16);
    ASSERT_FALSE(bytes.ok());
    EXPECT_EQ(bytes.error().code, Code::kBadInput);
    EXPECT_NE(bytes.error().text.find("more than 1,000 times its size"), std::string::npos) << bytes.error().text;
  }
}

TEST(Bytes, OfTextThatPacksWellAreNoBomb) {
  World world;
  const std::string small(1 << 20, 'x');
  for (const Packer pack : kPackers)
    EXPECT_EQ(ReadAllOf(world, world.Write("small", pack(small)), 1, 1 << 16).value(), small);
}

TEST(Bytes, AreToldByTheirMagicAndNotByTheirName) {
  World world;
  EXPECT_EQ(ReadAllOf(world, world.Write("text.gz", "not packed"), 1, 100).value(), "not packed");
  EXPECT_EQ(ReadAllOf(world, world.Write("text.txt", Gzipped("packed")), 1, 100).value(), "packed");
  for (const std::string_view start : {"", "\x1f",
                                       "\xfd"
                                       "7zX",
                                       "\x28\xb5"})
    EXPECT_EQ(ReadAllOf(world, world.Write("short", start), 1, 100).value(), start);
}

TEST(Bytes, OfNoFileAreNotFound) {
  World world;
  const auto stream = OpenBytes(world.posix, world.Path("nothing"));
  ASSERT_FALSE(stream.ok());
  EXPECT_EQ(stream.error().code, Code::kNotFound);
}

TEST(Bytes, CanBeReadFromAnywhereOnlyWhenTheyAreNotPacked) {
  World world;
  const auto plain = OpenBytes(world.posix, world.Write("plain", "0123456789")).value();
  std::string piece(4, '\0');
  EXPECT_EQ(plain->ReadAt(3, piece).value(), 4u);
  EXPECT_EQ(piece, "3456");
  EXPECT_EQ(plain->ReadAt(8, piece).value(), 2u);
  const auto packed = OpenBytes(world.posix, world.Write("packed", Gzipped("0123456789"))).value();
  EXPECT_FALSE(packed->ReadAt(3, piece).ok());
}

}  // namespace
}  // namespace freshet::data
