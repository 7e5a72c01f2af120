#include "serve/http/parser.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"
#include "base/str.h"

namespace freshet::serve {
namespace {

constexpr std::size_t kMaxBytes = 8 << 10;

struct Outcome {
  Parsed parsed = Parsed::kMore;
  int status = 0;
  std::size_t size = 0;
  std::string text;  // all the head says

  bool operator==(const Outcome&) const = default;
};

// Gives the parser the first bytes[0], then bytes[0..1], …, as `cuts` say, and then everything.
Outcome ParseInPieces(const std::string& bytes, const std::vector<std::size_t>& cuts) {
  HeadParser parser(kMaxBytes, 64);
  Outcome outcome;
  for (std::size_t i = 0; i <= cuts.size() && outcome.parsed == Parsed::kMore; ++i)
    outcome.parsed = parser.Parse(std::string_view(bytes).substr(0, i < cuts.size() ? cuts[i] : bytes.size()));
  if (outcome.parsed == Parsed::kBad) {
    outcome.status = parser.mistake().status;
    outcome.text = parser.mistake().text;
  }
  if (outcome.parsed != Parsed::kDone) return outcome;
  const Head& head = parser.head();
  outcome.size = parser.size();
  outcome.text = Str(head.method, "|", head.path, "|", head.query, "|", head.host, "|", head.origin, "|",
                     head.content_type, "|", head.authorization, "|", head.content_length, head.chunked,
                     head.expects_continue, head.keep_alive, head.http_1_0);
  for (const HeaderField& field : head.fields) outcome.text += Str("|", field.name, "=", field.value);
  return outcome;
}

Outcome Parse(const std::string& bytes) { return ParseInPieces(bytes, {}); }

std::string WithField(const std::string& field) { return "POST /a HTTP/1.1\r\nHost: h\r\n" + field + "\r\n\r\n"; }

TEST(HeadParser, ReadsAnOrdinaryRequest) {
  const Outcome outcome = Parse(
      "POST /v2/models/a%20b/infer?x=%31 HTTP/1.1\r\nHost: localhost:8080\r\ncontent-TYPE:application/json\r\n"
      "Authorization: Bearer abc\r\nOrigin: http://o\r\nContent-Length: 12\r\nExpect: 100-Continue\r\n\r\n{");
  EXPECT_EQ(outcome.text,
            "POST|/v2/models/a b/infer|x=%31|localhost:8080|http://o|application/json|Bearer abc|12falsetruetruefalse"
            "|Host=localhost:8080|content-TYPE=application/json|Authorization=Bearer abc|Origin=http://o"
            "|Content-Length=12|Expect=100-Continue");
}

TEST(HeadParser, KnowsWhenTheConnectionStays) {
  HeadParser parser(kMaxBytes, 64);
  const auto stays = [&](const std::string& version, const std::string& fields) {
    parser.Reset();
    EXPECT_EQ(parser.Parse("GET / HTTP/" + version + "\r\nHost: h\r\n" + fields + "\r\n"), Parsed::kDone);
    return parser.head().keep_alive;
  };
  EXPECT_TRUE(stays("1.1", ""));
  EXPECT_FALSE(stays("1.1", "Connection: foo , Close\r\n"));
  EXPECT_FALSE(stays("1.0", ""));
  EXPECT_TRUE(stays("1.0", "Connection: Keep-Alive\r\n"));
  EXPECT_FALSE(stays("1.0", "Connection: keep-alive\r\nConnection: close\r\n"));
}

TEST(HeadParser, RefusesWhatCanBeReadInTwoWays) {
  const struct {
    std::string bytes;
    int status;
  } cases[] = {
      {"GET / HTTP/1.1\nHost: h\n\n", 400},                   // bare LF
      {"GET / HTTP/1.1\r\nHost: h\n\r\n", 400},               // in the second line
      {"GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", 400},  // bare CR
      {"GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400},            // begins with a blank
      {WithField("A: b\r\n c"), 400},                         // folded
      {WithField("A: b\r\n\tc"), 400},
      {WithField("A : b"), 400},  // a blank before the colon
      {WithField("A"), 400},      // no colon
      {WithField(": b"), 400},    // no name
      {WithField("A\x01: b"), 400},
      {WithField(std::string("A: b\0c", 6)), 400},
      {WithField("A: \x7f"), 400},
      {WithField("Content-Length: 1\r\nTransfer-Encoding: chunked"), 400},
      {WithField("Transfer-Encoding: chunked\r\nContent-Length: 1"), 400},
      {WithField("Content-Length: 1\r\nContent-Length: 1"), 400},
      {WithField("Content-Length: 1\r\nContent-Length: 2"), 400},
      {WithField("Content-Length: 1, 1"), 400},
      {WithField("Content-Length: +1"), 400},
      {WithField("Content-Length: -1"), 400},
      {WithField("Content-Length: 0x1"), 400},
      {WithField("Content-Length: 1 "), 0},  // blanks at the end are no part of a value
      {WithField("Content-Length: 1 1"), 400},
      {WithField("Content-Length:"), 400},
      {WithField("Content-Length: 99999999999999999999"), 400},
      {WithField("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), 400},
      {WithField("Transfer-Encoding: gzip, chunked"), 501},
      {WithField("Transfer-Encoding: chunked, identity"), 501},
      {WithField("Transfer-Encoding: xchunked"), 501},
      {WithField("Transfer-Encoding: \x0b"
                 "chunked"),
       400},
      {WithField("Transfer-Encoding:"), 501},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {WithField("Content-Encoding: gzip"), 0},
      {WithField("Content-Encoding: X-Gzip"), 0},
      {WithField("Content-Encoding: gzip\r\nContent-Encoding: gzip"), 415},
      {WithField("Content-Encoding: gzip, gzip"), 415},
      {WithField("Content-Encoding: deflate"), 415},
      {WithField("Content-Encoding: identity"), 0},
      {WithField("Expect: 200-ok"), 417},
      {WithField("Host: h"), 400},  // twice
      {WithField("Authorization: a\r\nAuthorization: b"), 400},
      {WithField("Origin: a\r\nOrigin: b"), 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},  // no Host
      {"GET / HTTP/1.0\r\n\r\n", 0},
  };
  for (const auto& one : cases) EXPECT_EQ(Parse(one.bytes).status, one.status) << Quoted(one.bytes);
}

TEST(HeadParser, RefusesRequestLinesThatAreNone) {
  const struct {
    std::string line;
    int status;
  } cases[] = {
      {"GET / HTTP/1.1", 0},
      {"", 400},
      {"GET", 400},
      {"GET /", 400},
      {"GET  HTTP/1.1", 400},
      {"GET /  HTTP/1.1", 400},
      {" GET / HTTP/1.1", 400},
      {"GET / HTTP/1.1 ", 400},
      {"GET / a HTTP/1.1", 400},
      {"G(T / HTTP/1.1", 400},
      {"GET / http/1.1", 400},
      {"GET / HTTP/1", 400},
      {"GET / HTTP/1.10", 400},
      {"GET / HTTP/x.1", 400},
      {"GET / HTTP/2.0", 505},
      {"GET / HTTP/0.9", 505},
      {"PRI * HTTP/2.0", 400},
      {"BREW / HTTP/1.1", 501},
      {"get / HTTP/1.1", 501},
      {"CONNECT h:1 HTTP/1.1", 405},
      {"OPTIONS * HTTP/1.1", 405},
      {"TRACE / HTTP/1.1", 405},
      {"GET * HTTP/1.1", 400},
      {"GET http://h/ HTTP/1.1", 400},
      {"GET /#a HTTP/1.1", 400},
      {"GET /\xc3\xa9 HTTP/1.1", 400},
      {"GET /\ta HTTP/1.1", 400},
      {"\x16\x03\x01", 400},
  };
  for (const auto& one : cases)
    EXPECT_EQ(Parse(one.line + "\r\nHost: h\r\n\r\n").status, one.status) << Quoted(one.line);
}

TEST(HeadParser, DecodesAPathOnceAndRefusesTricks) {
  const auto path = [](const std::string& target) -> std::string {
    HeadParser parser(kMaxBytes, 64);
    const std::string bytes = "GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n";
    return parser.Parse(bytes) == Parsed::kDone ? std::string(parser.head().path) : Str(parser.mistake().status);
  };
  EXPECT_EQ(path("/a/b"), "/a/b");
  EXPECT_EQ(path("/a%2Db%C3%a9?%zz"), "/a-b\xc3\xa9");
  for (const std::string bad : {"/%", "/%4", "/a%4", "/%zz", "/%00", "/a%00b", "/%0a", "/%7f", "/..", "/a/../b",
                                "/%2e%2e/a", "/.%2E", "/%5c", "/a\\b", "/a%2fb", "/%2525", "/%252e%252e"})
    EXPECT_EQ(path(bad), "400") << bad;
}

TEST(HeadParser, KeepsToItsLimits) {
  std::string many;
  for (int i = 0; i < 63; ++i) many += Str("A", i, ": b\r\n");
  EXPECT_EQ(Parse("GET / HTTP/1.1\r\nHost: h\r\n" + many + "\r\n").status, 0);
  EXPECT_EQ(Parse("GET / HTTP/1.1\r\nHost: h\r\nB: c\r\n" + many + "\r\n").status, 431);
  EXPECT_EQ(Parse(WithField("A: " + std::string(kMaxBytes, 'b'))).status, 431);
  EXPECT_EQ(Parse("GET /" + std::string(kMaxBytes, 'b')).status, 414);
  const std::string frame = WithField("A: ");
  EXPECT_EQ(Parse(WithField("A: " + std::string(kMaxBytes - frame.size(), 'b'))).parsed, Parsed::kDone);
  EXPECT_EQ(Parse(WithField("A: " + std::string(kMaxBytes + 1 - frame.size(), 'b'))).status, 431);
}

// Pieces of requests, good and bad, put together at random.
std::string RandomRequest(base::Random& random) {
  static const std::vector<std::string> pieces = {"GET ",
                                                  "POST ",
                                                  "/a%20b?c ",
                                                  "/ ",
                                                  "HTTP/1.1\r\n",
                                                  "HTTP/1.0\r\n",
                                                  "Host: h\r\n",
                                                  "Content-Length: 5\r\n",
                                                  "Transfer-Encoding: chunked\r\n",
                                                  "A: b\r\n",
                                                  "\r\n",
                                                  "\r\n",
                                                  "\n",
                                                  "\r",
                                                  " ",
                                                  ":",
                                                  "%",
                                                  "Connection: close\r\n"};
  std::string text = random.Below(4) > 0 ? "POST /x HTTP/1.1\r\nHost: h\r\n" : "";
  for (std::uint64_t i = random.Below(12); i > 0; --i) text += pieces[random.Below(pieces.size())];
  return text;
}

TEST(HeadParser, FindsTheSameHoweverTheBytesArrive) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "http");
    const std::string bytes = RandomRequest(random);
    std::vector<std::size_t> one_by_one;
    for (std::size_t i = 0; i < bytes.size(); ++i) one_by_one.push_back(i);
    ASSERT_EQ(ParseInPieces(bytes, one_by_one), Parse(bytes)) << bytes;
    ASSERT_EQ(ParseInPieces(bytes, {random.Below(bytes.size() + 1)}), Parse(bytes)) << bytes;
  }
}

}  // namespace
}  // namespace freshet::serve
