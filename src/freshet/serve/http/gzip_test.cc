#include "serve/http/gzip.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/random.h"
#include "base/scratch_testing.h"
#include "serve/http/testing.h"

namespace freshet::serve {
namespace {

std::string Gzip(const std::string& text) {
  z_stream stream{};
  CHECK(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// What comes out, or why nothing does.
std::pair<Unpacked, std::string> Unpack(const std::string& packed, std::size_t most, std::size_t budget = 64 << 20) {
  HttpBody into(std::make_shared<BodyBudget>(budget));
  const Unpacked how = Gunzip(packed, most, into);
  return {how, std::string(into.view())};
}

TEST(HttpGzip, GivesBackWhatWasPacked) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "gzip");
    std::string text(random.Below(200'000), 'x');
    for (char& c : text) c = static_cast<char>(random.Below(1 + seed));
    const auto [how, back] = Unpack(Gzip(text), text.size());  // exactly as much as may be
    EXPECT_EQ(how, Unpacked::kDone);
    EXPECT_EQ(back, text);
    if (!text.empty()) EXPECT_EQ(Unpack(Gzip(text), text.size() - 1).first, Unpacked::kTooLarge);
  }
  EXPECT_EQ(Unpack(Gzip("one, ") + Gzip("") + Gzip("two"), 100).second, "one, two");
}

TEST(HttpGzip, RefusesWhatIsNotWhole) {
  const std::string packed = Gzip("a text that is long enough to be cut");
  for (std::size_t size = 0; size < packed.size(); ++size)
    EXPECT_EQ(Unpack(packed.substr(0, size), 1000).first, Unpacked::kBad) << size;
  EXPECT_EQ(Unpack(packed + "more", 1000).first, Unpacked::kBad);
  EXPECT_EQ(Unpack("{\"inputs\":[]}", 1000).first, Unpacked::kBad);
  std::string damaged = packed;
  damaged[packed.size() - 6] = static_cast<char>(damaged[packed.size() - 6] ^ 1);  // of the checksum
  EXPECT_EQ(Unpack(damaged, 1000).first, Unpacked::kBad);
}

TEST(HttpGzip, MakesNoMoreThanItMayHoweverSmallItCame) {
  const std::string bomb = Gzip(std::string(50 << 20, '\0'));
  const auto [how, made] = Unpack(bomb, 100'000);
  EXPECT_EQ(how, Unpacked::kTooLarge);
  EXPECT_LE(made.size(), 100'000u);
  EXPECT_EQ(Unpack(bomb, 100 << 20, 1 << 20).first, Unpacked::kNoRoom);
}

TEST(HttpGzip, IsUnpackedBeforeTheHandlerSeesIt) {
  const base::ScratchDirectory directory;
  HttpOptions options;
  options.limits.body_bytes = 1 << 20;
  options.token_file = directory.Write("tokens", "predict one one-token-0123456789\n");
  chmod(options.token_file.c_str(), 0600);
  TestServer server(Echo, options);
  const std::string token = "Authorization: Bearer one-token-0123456789\r\n", gzip = "Content-Encoding: gzip\r\n";
  const auto ask = [&](const std::string& body, const std::string& fields) {
    return TestClient(server.port()).Ask(Post("/", body, fields));
  };
  const std::string text(300'000, 'y');
  EXPECT_EQ(ask(Gzip(text), token + gzip).body, "POST /  " + text);
  EXPECT_EQ(ask(Gzip(std::string(2 << 20, 'y')), token + gzip).status, 413);
  EXPECT_EQ(ask(Gzip(text), gzip).status, 401);  // small as it comes, it is large
  EXPECT_EQ(ask(Gzip("few"), gzip).body, "POST /  few");
  EXPECT_EQ(ask("few", token + gzip).status, 400);
  TestClient twice(server.port());
  for (const char* const body : {"first", "second"})
    EXPECT_EQ(twice.Ask(Post("/", Gzip(body), token + gzip)).body, Str("POST /  ", body));
  EXPECT_EQ(twice.Ask(Post("/", "plain", token)).body, "POST /  plain");
}

}  // namespace
}  // namespace freshet::serve
