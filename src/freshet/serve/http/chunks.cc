#include "serve/http/chunks.h"

#include <algorithm>

namespace freshet::serve {

Parsed ChunkDecoder::Next(std::string_view& raw, std::string_view& piece) {
  piece = {};
  while (!raw.empty()) {
    if (expect_ == Expect::kData) {
      piece = raw.substr(0, std::min<std::uint64_t>(left_, raw.size()));
      raw.remove_prefix(piece.size());
      left_ -= piece.size();
      if (left_ == 0) expect_ = Expect::kDataReturn;
      return Parsed::kMore;
    }
    const bool last = expect_ == Expect::kLastEnd;
    if (!Take(raw.front())) return Parsed::kBad;
    raw.remove_prefix(1);
    if (last) return Parsed::kDone;
  }
  return Parsed::kMore;
}

// One byte of what lies between the data.
bool ChunkDecoder::Take(char c) {
  const auto refuse = [this](std::string_view text) { return mistake_ = {400, "chunk", text}, false; };
  switch (expect_) {
    case Expect::kSize:
      if (const int digit = HexDigit(c); digit >= 0) {
        if (++digits_ > 8) return refuse("a chunk's size has more than 8 digits");
        left_ = left_ * 16 + static_cast<unsigned>(digit);
        return true;
      }
      if (c != '\r' || digits_ == 0) return refuse("a chunk begins with its size in hexadecimal digits alone");
      if (++chunks_ > max_chunks_) return refuse("the body has too many chunks");
      expect_ = Expect::kSizeEnd;
      return true;
    case Expect::kSizeEnd:
      if (c != '\n') break;
      digits_ = 0;
      expect_ = left_ > 0 ? Expect::kData : Expect::kLastReturn;
      return true;
    case Expect::kDataReturn:
      if (c != '\r') break;
      expect_ = Expect::kDataEnd;
      return true;
    case Expect::kDataEnd:
      if (c != '\n') break;
      expect_ = Expect::kSize;
      return true;
    case Expect::kLastReturn:
      if (c != '\r') return refuse("trailers are not accepted");
      expect_ = Expect::kLastEnd;
      return true;
    case Expect::kLastEnd:
      if (c != '\n') break;
      expect_ = Expect::kSize;
      return true;
    case Expect::kData:
      break;
  }
  return refuse("a chunk and its size end with CR LF");
}

}  // namespace freshet::serve
