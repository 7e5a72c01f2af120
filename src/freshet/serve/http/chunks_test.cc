#include "serve/http/chunks.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/random.h"
#include "base/str.h"

namespace freshet::serve {
namespace {

struct Decoded {
  Parsed parsed = Parsed::kMore;
  std::string body;
  std::size_t left = 0;  // bytes not eaten
};

Decoded Decode(std::string_view bytes, std::size_t step, std::size_t max_chunks = 100) {
  ChunkDecoder decoder(max_chunks);
  Decoded decoded;
  std::string_view raw;
  for (std::size_t given = 0; decoded.parsed == Parsed::kMore;) {
    if (raw.empty()) {
      if (given == bytes.size()) return decoded;
      raw = bytes.substr(given, step);
      given += raw.size();
      decoded.left = bytes.size() - given;
    }
    std::string_view piece;
    decoded.parsed = decoder.Next(raw, piece);
    decoded.body += piece;
  }
  decoded.left += raw.size();
  return decoded;
}

TEST(ChunkDecoder, PutsABodyTogetherHoweverItArrives) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "chunks");
    std::string body, bytes;
    for (std::uint64_t i = random.Below(6); i > 0; --i) {
      const std::string piece(1 + random.Below(40), static_cast<char>('a' + i));
      char size[16];
      std::snprintf(size, sizeof size, random.Below(2) > 0 ? "%zx\r\n" : "%03zX\r\n", piece.size());
      body += piece;
      bytes += size + piece + "\r\n";
    }
    bytes += "0\r\n\r\n";
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, bytes.size() + 4}) {
      const Decoded decoded = Decode(bytes + "GET ", step);
      ASSERT_EQ(decoded.parsed, Parsed::kDone);
      ASSERT_EQ(decoded.body, body);
      ASSERT_EQ(decoded.left, 4u);
    }
    const Decoded cut = Decode(bytes.substr(0, random.Below(bytes.size())), 3);
    ASSERT_EQ(cut.parsed, Parsed::kMore);
  }
}

TEST(ChunkDecoder, RefusesWhatIsNotAChunk) {
  for (const std::string_view bad :
       {"\r\n", "g\r\n", "+1\r\na\r\n", "-1\r\n", " 1\r\na\r\n", "1 \r\na\r\n", "0x1\r\na\r\n", "1\na\n", "1\r\na\n",
        "1\r\nab\r\n", "1\r\na\rb", "1\rx", "1;x=y\r\na\r\n", "1\r\na0\r\n\r\n", "123456789\r\n", "000000001\r\na\r\n",
        "0\r\nA: b\r\n\r\n", "0\r\n\rx", "0\n\n"})
    EXPECT_EQ(Decode(bad, 1).parsed, Parsed::kBad) << Quoted(bad);
}

TEST(ChunkDecoder, TakesOnlySoManyChunks) {
  std::string bytes;
  for (int i = 0; i < 9; ++i) bytes += "1\r\na\r\n";
  EXPECT_EQ(Decode(bytes + "0\r\n\r\n", 5, 10).parsed, Parsed::kDone);
  EXPECT_EQ(Decode(bytes + "1\r\na\r\n0\r\n\r\n", 5, 10).parsed, Parsed::kBad);
}

}  // namespace
}  // namespace freshet::serve
