#pragma once

#include <cstring>
#include <string>
#include <string_view>

namespace freshet::data {

// What the parsers of text formats share. Pointers are into a chunk, which is padded with newlines past its end.

inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // what some programs put before UTF-8 text

inline bool IsBlank(char c) { return c == ' ' || c == '\t'; }

inline const char* SkipBlanks(const char* at) {
  while (IsBlank(*at)) ++at;
  return at;
}

// The line that begins at `at`, without its end (\n or \r\n), and where the next one begins.
struct Line {
  std::string_view text;
  const char* next;

  const char* begin() const { return text.data(); }
  const char* end() const { return text.data() + text.size(); }
  bool blank() const { return text.find_first_not_of(" \t") == std::string_view::npos; }
};

inline Line LineAt(const char* at, const char* end) {
  const void* const newline = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
  const char* stop = newline == nullptr ? end : static_cast<const char*>(newline);
  const char* const next = stop + 1;
  if (stop > at && stop[-1] == '\r') --stop;
  return {{at, static_cast<std::size_t>(stop - at)}, next};
}

// Finds line ends, piece by piece, from a place where a line begins. In quoted text a line end between quotes is none.
class LineEnds {
 public:
  static constexpr std::size_t kNone = std::string_view::npos;
  explicit LineEnds(bool quoted) : quoted_(quoted) {}

  // Behind the first line end at or after `from` in the next piece, or kNone. After a find no further piece makes
  // sense.
  std::size_t First(std::string_view piece, std::size_t from = 0);
  // Behind the last line end of the next piece, or kNone.
  std::size_t Last(std::string_view piece);
  void Skip(std::string_view piece);

 private:
  bool Plain(std::string_view piece) const;

  const bool quoted_;
  bool inside_ = false;
};

// Behind the first line that is not blank, which names the columns of a table; LineEnds::kNone when the text ends
// first.
std::size_t EndOfHeader(std::string_view text, bool quoted);

// The text from `at` up to a blank or `end`.
inline std::string_view WordAt(const char* at, const char* end) {
  const char* stop = at;
  while (stop < end && !IsBlank(*stop)) ++stop;
  return {at, static_cast<std::size_t>(stop - at)};
}

// What stood between quotes, with each doubled quote made one.
std::string Undoubled(std::string_view text);

// What is wrong with a row, and where; nothing is while `at` is null.
struct Mistake {
  const char* at = nullptr;
  std::string what;
};

// Text holds no NUL bytes: one means that the file is damaged, or is no text.
inline bool HasNul(std::string_view line, Mistake& mistake) {
  const void* const nul = std::memchr(line.data(), '\0', line.size());
  if (nul == nullptr) return false;
  mistake = {static_cast<const char*>(nul), "found a NUL byte, expected text"};
  return true;
}

}  // namespace freshet::data
