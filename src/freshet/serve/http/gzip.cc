#include "serve/http/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/check.h"

namespace freshet::serve {

Unpacked Gunzip(std::string_view packed, std::size_t most, HttpBody& into) {
  constexpr int kGzipOnly = 16;  // added to the bits of the window
  z_stream stream{};
  CHECK(inflateInit2(&stream, MAX_WBITS + kGzipOnly) == Z_OK);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closer(&stream, inflateEnd);
  CHECK(packed.size() <= std::numeric_limits<uInt>::max());
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // zlib reads it only
  stream.avail_in = static_cast<uInt>(packed.size());
  std::size_t left = most;
  while (true) {
    char beyond;  // where a byte too many shows itself
    const std::span<char> room = left > 0 ? into.Room(left) : std::span(&beyond, 1);
    if (room.empty()) return Unpacked::kNoRoom;
    stream.next_out = reinterpret_cast<Bytef*>(room.data());
    stream.avail_out = static_cast<uInt>(std::min<std::size_t>(room.size(), std::numeric_limits<uInt>::max()));
    const uInt offered = stream.avail_out;
    const int result = inflate(&stream, Z_NO_FLUSH);
    const std::size_t made = offered - stream.avail_out;
    if (made > left) return Unpacked::kTooLarge;
    into.Add(left > 0 ? made : 0);
    left -= made;
    if (result == Z_STREAM_END) {
      if (stream.avail_in == 0) return Unpacked::kDone;
      if (inflateReset(&stream) != Z_OK) return Unpacked::kBad;
    } else if (result != Z_OK || (made == 0 && stream.avail_in == 0)) {
      return Unpacked::kBad;  // damaged, or cut short
    }
  }
}

}  // namespace freshet::serve
