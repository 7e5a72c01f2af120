#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "serve/http/parser.h"

namespace freshet::serve {

// Takes a chunked body apart. Extensions and trailers are refused: nobody needs them here.
class ChunkDecoder {
 public:
  explicit ChunkDecoder(std::size_t max_chunks) : max_chunks_(max_chunks) {}

  // Eats from the front of `raw`; `piece` is the next part of the body, empty when there is none in there.
  // kMore: call again, with more bytes when raw is empty. kDone: the body is complete, the rest of raw is not ours.
  Parsed Next(std::string_view& raw, std::string_view& piece);
  void Reset() { *this = ChunkDecoder(max_chunks_); }

  const Mistake& mistake() const { return mistake_; }

 private:
  enum class Expect { kSize, kSizeEnd, kData, kDataReturn, kDataEnd, kLastReturn, kLastEnd };
  bool Take(char c);

  std::size_t max_chunks_;
  std::size_t chunks_ = 0;
  std::uint64_t left_ = 0;  // of the chunk under way
  int digits_ = 0;
  Expect expect_ = Expect::kSize;
  Mistake mistake_;
};

}  // namespace freshet::serve
