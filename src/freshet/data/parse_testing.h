#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/random.h"
#include "data/formats/format.h"

namespace freshet::data {

// What tests of parsers share: text padded as a parser wants it, in memory of just that size, so that a sanitizer sees
// a read beyond.

inline Rows ChunkOf(std::string_view text, Position begin = {}) {
  Rows rows;
  rows.Clear();
  rows.text.Resize(text.size() + Parser::kPadding);
  std::memcpy(rows.text.data(), text.data(), text.size());
  std::memset(rows.text.data() + text.size(), '\n', Parser::kPadding);
  rows.text.Resize(text.size());
  rows.begin = begin;
  return rows;
}

inline Rows ParseText(const Parser& parser, std::string_view text, Position begin = {}) {
  Rows rows = ChunkOf(text, begin);
  parser.Parse(rows);
  return rows;
}

// A head that owns its bytes, padded.
class TestHead {
 public:
  explicit TestHead(std::string_view bytes, std::string path = "input")
      : bytes_(std::string(bytes) + std::string(Parser::kPadding, '\n')),
        head_{{bytes_.data(), bytes.size()}, std::move(path)} {}
  TestHead(const TestHead&) = delete;
  operator const Head&() const { return head_; }  // NOLINT: implicit on purpose

 private:
  const std::string bytes_;
  const Head head_;
};

// A format with the description of a head, ready to parse.
struct Described {
  explicit Described(const Format& of) : format(of) {}

  const Format& format;
  InputOptions options;
  base::PosixFiles files;
  Description description;

  Result<void> Describe(std::string_view head, std::string path = "input") {
    return format.describe(TestHead(head, std::move(path)), options, files, description);
  }
  Result<std::unique_ptr<Parser>> Make(std::string_view head, bool labelled = true, std::string path = "input") {
    return format.make(TestHead(head, std::move(path)), description, options, files, labelled);
  }
};

// One malformed input: what a parser should say of it, and where.
struct Malformed {
  const char* name;
  std::string text;
  std::uint64_t line, column;  // as in BadRow: from 0 and from 1
  const char* says;            // a piece of BadRow.what
  std::size_t good = 0;        // rows that are kept
};

inline void ExpectBadRow(const Parser& parser, const Malformed& malformed) {
  SCOPED_TRACE(malformed.name);
  const Rows rows = ParseText(parser, malformed.text);
  EXPECT_EQ(rows.size(), malformed.good);
  ASSERT_EQ(rows.bad.size(), 1u);
  EXPECT_EQ(rows.bad[0].line, malformed.line) << rows.bad[0].what;
  EXPECT_EQ(rows.bad[0].column, malformed.column) << rows.bad[0].what;
  EXPECT_NE(rows.bad[0].what.find(malformed.says), std::string::npos) << rows.bad[0].what;
  if (rows.width == 0) {
    EXPECT_EQ(rows.offsets.size(), rows.size() + 1);
    EXPECT_EQ(rows.offsets.back(), rows.indices.size());
    EXPECT_EQ(rows.indices.size(), rows.values.size());
  } else {
    EXPECT_EQ(rows.dense.size(), rows.size() * rows.width);
  }
}

inline std::size_t LinesIn(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
}

// Bytes of no format: nothing good may come of them, and nothing may break.
inline std::string Garbage(std::uint64_t seed, std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(base::Hash64(seed * 1'000'003 + i));
  return bytes;
}

}  // namespace freshet::data
