#include "data/formats/lines.h"

#include <algorithm>

#include "base/str.h"

namespace freshet::data {

// Without quotes in sight a line end is a line end.
bool LineEnds::Plain(std::string_view piece) const {
  return !quoted_ || (!inside_ && piece.find('"') == std::string_view::npos);
}

std::size_t LineEnds::First(std::string_view piece, std::size_t from) {
  if (Plain(piece)) {
    const std::size_t at = piece.find('\n', from);
    return at == std::string_view::npos ? kNone : at + 1;
  }
  for (std::size_t i = 0; i < piece.size(); ++i) {
    if (piece[i] == '"') inside_ = !inside_;
    if (piece[i] == '\n' && !inside_ && i >= from) return i + 1;
  }
  return kNone;
}

std::size_t LineEnds::Last(std::string_view piece) {
  if (Plain(piece)) {
    const std::size_t at = piece.rfind('\n');
    return at == std::string_view::npos ? kNone : at + 1;
  }
  std::size_t last = kNone;
  for (std::size_t i = 0; i < piece.size(); ++i) {
    if (piece[i] == '"') inside_ = !inside_;
    if (piece[i] == '\n' && !inside_) last = i + 1;
  }
  return last;
}

void LineEnds::Skip(std::string_view piece) {
  if (quoted_) inside_ ^= std::count(piece.begin(), piece.end(), '"') % 2 == 1;
}

std::size_t EndOfHeader(std::string_view text, bool quoted) {
  std::size_t begin = 0;
  while (true) {
    const std::size_t size = LineEnds(quoted).First(text.substr(begin));
    if (size == LineEnds::kNone) return LineEnds::kNone;
    if (!Trim(text.substr(begin, size)).empty()) return begin + size;
    begin += size;
  }
}

std::string Undoubled(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && i + 1 < text.size() && text[i + 1] == '"') ++i;
    out += text[i];
  }
  return out;
}

}  // namespace freshet::data
