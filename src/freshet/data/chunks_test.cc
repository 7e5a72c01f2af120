#include "data/chunks.h"

#include <algorithm>
#include <set>

#include "base/random.h"
#include "data/formats/lines.h"
#include "data/packed_testing.h"
#include "data/world_testing.h"

namespace freshet::data {
namespace {

using Kind = Cutting::Kind;

// One chunk as it was handed out.
struct Piece {
  Position begin, end;
  std::string text;
};

Result<std::vector<Piece>> Rest(Chunks& chunks) {
  std::vector<Piece> pieces;
  Rows rows;
  while (TRY(chunks.Next(rows))) {
    EXPECT_EQ(std::string_view(rows.text.data() + rows.text.size(), Parser::kPadding - 1),
              std::string(Parser::kPadding - 1, '\n'));
    pieces.push_back({rows.begin, rows.end, {rows.text.data(), rows.text.size()}});
  }
  return pieces;
}

// A few files and how to cut them.
struct Case {
  std::vector<std::string> texts;
  Cutting cutting;
  bool header = false;
  std::vector<std::string> paths;
  Chunks::Options options;

  std::unique_ptr<Chunks> Open(World& world, Part part = {}) const {
    Chunks::Options with = options;
    with.part = part;
    auto chunks = Chunks::Open(world.posix, paths, with);
    EXPECT_TRUE(chunks.ok());
    chunks.value()->SetCutting(cutting, header);
    return std::move(chunks).value();
  }
};

// The model: where the lines or records of a text begin, byte by byte.
std::set<std::uint64_t> Beginnings(const Case& c, const std::string& text) {
  std::set<std::uint64_t> begins;
  std::size_t at = c.cutting.kind == Kind::kRecords ? std::min<std::size_t>(text.size(), c.cutting.header_bytes) : 0;
  if (c.cutting.kind == Kind::kRecords) {
    for (; at < text.size(); at += c.cutting.record_bytes) begins.insert(at);
    return begins;
  }
  if (text.starts_with(kByteOrderMark)) at = 3;
  bool inside = false, header = c.header, blank = true;
  for (std::size_t begin = at; at < text.size(); ++at) {
    if (text[at] == '"' && c.cutting.kind == Kind::kQuotedLines) inside = !inside;
    if (std::string_view(" \t\r\n").find(text[at]) == std::string_view::npos) blank = false;
    const bool ends = (text[at] == '\n' && !inside) || at + 1 == text.size();
    if (!ends) continue;
    if (!header) begins.insert(begin);
    if (!blank) header = false;
    begin = at + 1;
    blank = true;
  }
  return begins;
}

// All pieces together are each file from its first row to its end, once, cut only where lines begin.
void ExpectWhole(const Case& c, std::vector<Piece> pieces) {
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::pair(a.begin.file, a.begin.offset) < std::pair(b.begin.file, b.begin.offset);
  });
  std::size_t next = 0;
  for (std::size_t file = 0; file < c.texts.size(); ++file) {
    SCOPED_TRACE(Str("file ", file));
    const std::string& text = c.texts[file];
    const auto begins = Beginnings(c, text);
    std::size_t at = begins.empty() ? text.size() : *begins.begin();
    for (; next < pieces.size() && pieces[next].begin.file == file; ++next) {
      const Piece& piece = pieces[next];
      ASSERT_EQ(piece.begin.offset, at);
      ASSERT_TRUE(begins.contains(at)) << at;
      ASSERT_EQ(piece.end.file, file);
      const std::string expected = text.substr(at, piece.end.offset - at + c.cutting.ahead_bytes);
      ASSERT_EQ(piece.text, expected.ends_with('\n') || c.cutting.kind == Kind::kRecords ? expected : expected + "\n");
      const auto lines =
          c.cutting.kind == Kind::kRecords
              ? (at - std::min<std::size_t>(at, c.cutting.header_bytes)) / c.cutting.record_bytes
              : static_cast<std::uint64_t>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
      ASSERT_EQ(piece.begin.line, lines);
      at = piece.end.offset;
    }
    ASSERT_EQ(at, text.size());
  }
  ASSERT_EQ(next, pieces.size());
}

std::string RandomText(base::Random& random, bool header) {
  std::string text = random.Below(6) == 0 ? std::string(kByteOrderMark) : "";
  if (header) text += Str(random.Below(3) == 0 ? "\n \r\n" : "", "a,\"b\"", random.Below(2) ? "\r\n" : "\n");
  const std::uint64_t letters = 3 + random.Below(9);
  for (std::uint64_t n = random.Below(random.Below(3) == 0 ? 400 : 40); n > 0; --n)
    text += "\na,\"\r 1bcd#:"[random.Below(letters)];
  if (random.Below(2) == 0) text += '\n';
  return text;
}

Case RandomCase(World& world, base::Random& random) {
  Case c;
  c.cutting.kind = std::array{Kind::kLines, Kind::kQuotedLines, Kind::kRecords}[random.Below(3)];
  c.header = random.Below(3) == 0 && c.cutting.kind != Kind::kRecords;
  if (c.cutting.kind == Kind::kRecords)
    c.cutting = {Kind::kRecords, random.Below(6), 1 + random.Below(9), random.Below(3)};
  c.options.chunk_bytes = 1 + random.Below(random.Below(2) ? 20 : 200);
  const Packer pack = random.Below(3) == 0 ? kPackers[random.Below(std::size(kPackers))] : nullptr;
  for (std::uint64_t file = 0, files = 1 + random.Below(4); file < files; ++file) {
    c.texts.push_back(random.Below(8) == 0 && file > 0 ? "" : RandomText(random, c.header));
    const bool packed = pack != nullptr && random.Below(3) > 0;
    c.paths.push_back(world.Write(Str("file", file), packed ? pack(c.texts.back()) : c.texts.back()));
  }
  return c;
}

TEST(Chunks, OfAllPartsTogetherAreEveryLineOnce) {
  World world;
  for (std::uint64_t seed = 0; seed < 1'500; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "chunks");
    const Case c = RandomCase(world, random);
    const std::uint64_t parts = 1 + random.Below(7);
    std::vector<Piece> all;
    for (std::uint64_t part = 0; part < parts; ++part) {
      const auto pieces = Rest(*c.Open(world, {part, parts}));
      ASSERT_TRUE(pieces.ok()) << pieces.error().text;
      for (std::size_t i = 1; i < pieces.value().size(); ++i) {
        const Position &before = pieces.value()[i - 1].begin, &after = pieces.value()[i].begin;
        ASSERT_LT(std::pair(before.file, before.offset), std::pair(after.file, after.offset));
      }
      all.insert(all.end(), pieces.value().begin(), pieces.value().end());
    }
    ExpectWhole(c, all);
    if (HasFatalFailure()) return;
  }
}

TEST(Chunks, OfPartsThatWereCutAnywhereAreEveryLineOnceToo) {
  World world;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "cut");
    const Case c = RandomCase(world, random);
    const std::uint64_t parts = 1 + random.Below(5);
    const auto bytes = c.Open(world)->bytes();
    if (!bytes) continue;  // packed
    Cuts cuts = {0, *bytes};
    while (cuts.size() <= parts) cuts.push_back(random.Below(*bytes + 1));
    std::sort(cuts.begin(), cuts.end());
    std::vector<Piece> all;
    for (std::uint64_t part = 0; part < parts; ++part) {
      const auto chunks = c.Open(world, {part, parts});
      ASSERT_TRUE(chunks->CutAt(cuts).ok());
      ASSERT_TRUE(chunks->Rewind().ok());
      const auto pieces = Rest(*chunks);
      ASSERT_TRUE(pieces.ok()) << pieces.error().text;
      for (const Piece& piece : pieces.value()) {
        EXPECT_LE(chunks->BytesBefore(piece.begin), chunks->BytesBefore(piece.end));
        EXPECT_LE(*chunks->Fraction(piece.begin), *chunks->Fraction(piece.end));
      }
      all.insert(all.end(), pieces.value().begin(), pieces.value().end());
      cuts.back() += 1;
      EXPECT_EQ(chunks->CutAt(cuts).error().code, Code::kInvalid);  // of other files
      cuts.back() -= 1;
    }
    ExpectWhole(c, all);
    if (HasFatalFailure()) return;
  }
}

TEST(Chunks, GoOnFromAnyBlockBoundaryAsIfNothingHadHappened) {
  World world;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "seek");
    const Case c = RandomCase(world, random);
    const Part part{random.Below(3), 3};
    const auto whole = Rest(*c.Open(world, part)).value();
    const auto again = c.Open(world, part);
    for (std::size_t stopped = 0; stopped < whole.size(); ++stopped) {
      ASSERT_TRUE(again->Seek(whole[stopped].end).ok());
      const auto rest = Rest(*again);
      ASSERT_TRUE(rest.ok()) << rest.error().text;
      ASSERT_EQ(rest.value().size(), whole.size() - stopped - 1);
      for (std::size_t i = 0; i < rest.value().size(); ++i) {
        const Piece &now = rest.value()[i], &before = whole[stopped + 1 + i];
        ASSERT_EQ(now.text, before.text);
        ASSERT_EQ(now.begin.line, before.begin.line);
        ASSERT_EQ(now.end.block, before.end.block);
      }
    }
    ASSERT_TRUE(again->Rewind().ok());
    ASSERT_EQ(Rest(*again).value().size(), whole.size());
  }
}

TEST(Chunks, HaveTheHeadThatWasReadWithoutMovingOn) {
  World world;
  Case c;
  c.texts = {
      "\xef\xbb\xbf"
      "1 2:3\n4"};
  for (const Packer pack : {Packer{nullptr}, kPackers[0]}) {
    c.paths = {world.Write("file", pack == nullptr ? c.texts[0] : pack(c.texts[0]))};
    const auto chunks = c.Open(world);
    const Head head = chunks->head();
    EXPECT_EQ(head.bytes, "1 2:3\n4");
    EXPECT_EQ(head.path, c.paths[0]);
    EXPECT_EQ(std::string_view(head.bytes.data() + head.bytes.size(), Parser::kPadding),
              std::string(Parser::kPadding, '\n'));
    ExpectWhole(c, Rest(*chunks).value());
  }
}

TEST(Chunks, HaveAHeadOfWholeLinesUnlessItIsBinary) {
  World world;
  std::string text;
  while (text.size() < 3 << 20) text += "a line of text\n";
  const auto chunks = Chunks::Open(world.posix, {world.Write("text", text)}, {}).value();
  EXPECT_LT(chunks->head().bytes.size(), std::size_t{1} << 20);
  EXPECT_TRUE(chunks->head().bytes.ends_with("a line of text\n"));
  const std::string binary = std::string("\0\0\x08\x03\0\0\0\n", 8) + std::string(3 << 20, 'x');
  EXPECT_EQ(Chunks::Open(world.posix, {world.Write("binary", binary)}, {}).value()->head().bytes.size(),
            std::size_t{1} << 20);
}

TEST(Chunks, SkipAHeaderOfAnyLength) {
  World world;
  Case c;
  c.header = true;
  c.texts = {std::string(300'000, 'h') + "\n1\n2\n", std::string(300'000, 'h') + "\n3\n"};
  c.paths = {world.Write("a", c.texts[0]), world.Write("b", c.texts[1])};
  ExpectWhole(c, Rest(*c.Open(world)).value());
  std::vector<Piece> pieces = Rest(*c.Open(world, {0, 2})).value();
  const std::vector<Piece> others = Rest(*c.Open(world, {1, 2})).value();
  pieces.insert(pieces.end(), others.begin(), others.end());
  ExpectWhole(c, pieces);
}

TEST(Chunks, RefuseAFileWithAnotherHeader) {
  World world;
  Case c;
  c.header = true;
  c.paths = {world.Write("a", "x,y\n1,2\n"), world.Write("b", "y,x\n1,2\n")};
  const auto pieces = Rest(*c.Open(world));
  ASSERT_FALSE(pieces.ok());
  EXPECT_EQ(pieces.error().code, Code::kBadInput);
  EXPECT_EQ(pieces.error().text, Str(c.paths[1], ":1:1: found 'y,x', expected 'x,y', the first line of ", c.paths[0]));
}

TEST(Chunks, RefuseALineThatDoesNotEnd) {
  World world;
  for (const Kind kind : {Kind::kLines, Kind::kQuotedLines}) {
    Case c;
    c.cutting.kind = kind;
    c.paths = {world.Write("a", "1\n2\n\"" + std::string(5'000, kind == Kind::kLines ? 'x' : '\n') + "\n")};
    c.options.chunk_bytes = 10;
    c.options.longest_line_bytes = 1'000;
    const auto pieces = Rest(*c.Open(world));
    ASSERT_FALSE(pieces.ok());
    EXPECT_EQ(pieces.error().code, Code::kBadInput);
    EXPECT_TRUE(pieces.error().text.starts_with(Str(c.paths[0], ":3:1: found a line of more than 1000 bytes")))
        << pieces.error().text;
  }
}

TEST(Chunks, ComeFromFilesOfAPatternInOrder) {
  World world;
  for (const char* name : {"part-2", "part-1", "part-3"}) world.Write(name, Str(name, "\n"));
  Case c;
  c.paths = {world.Path("part-*")};
  const auto chunks = c.Open(world);
  const std::vector<Piece> pieces = Rest(*chunks).value();
  std::string all;
  for (const Piece& piece : pieces) all += piece.text;
  EXPECT_EQ(all, "part-1\npart-2\npart-3\n");
  EXPECT_EQ(chunks->paths().size(), 3u);
}

TEST(Chunks, NeedFilesThatAreThere) {
  World world;
  EXPECT_EQ(Chunks::Open(world.posix, {}, {}).error().code, Code::kInvalid);
  EXPECT_EQ(Chunks::Open(world.posix, {world.Path("nothing")}, {}).error().code, Code::kNotFound);
  EXPECT_EQ(Chunks::Open(world.posix, {world.Path("n*")}, {}).error().code, Code::kNotFound);
  EXPECT_EQ(Chunks::Open(world.posix, {world.Write("a", "1\n"), "-"}, {}).error().code, Code::kInvalid);
}

TEST(Chunks, RefuseToGoOnInAFileThatBecameShorter) {
  World world;
  Case c;
  c.paths = {world.Write("a", Gzipped("1\n2\n"))};
  EXPECT_EQ(c.Open(world)->Seek({.file = 0, .offset = 100}).error().code, Code::kBadInput);
  EXPECT_EQ(c.Open(world)->Seek({.file = 1}).error().code, Code::kBadInput);
}

TEST(Chunks, SayHowFarAlongTheyAre) {
  World world;
  Case c;
  c.paths = {world.Write("a", std::string(60, '\n')), world.Write("b", std::string(40, '\n'))};
  const auto all = c.Open(world);
  EXPECT_DOUBLE_EQ(all->Fraction({.file = 1, .offset = 20}).value(), 0.8);
  EXPECT_DOUBLE_EQ(c.Open(world, {1, 2})->Fraction({.file = 1, .offset = 20}).value(), 0.6);
  c.paths = {world.Write("c", Gzipped("1\n"))};
  EXPECT_FALSE(c.Open(world)->Fraction({}).has_value());
}

}  // namespace
}  // namespace freshet::data
