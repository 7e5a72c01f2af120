#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace freshet::data {

// A picture in memory: rows from the top, in each the pixels from the left, in each its channels (red, green, blue, or
// grey alone), 8 bits each.
struct Image {
  std::size_t height = 0, width = 0, channels = 3;
  std::vector<unsigned char> pixels;
};

// Height and width.
struct ImageSize {
  std::size_t height = 0, width = 0;
};

inline constexpr std::uint64_t kMostImagePixels = 64 << 20;  // more are refused before there is memory for them

// Unpacks a JPEG (sequential or progressive; grey, colour, CMYK) or PNG file (any depth, palette or not, interlaced or
// not; what shines through is white) into `image`, whose memory is reused, as 1 or 3 channels. Turning by EXIF is
// ignored. With `enough`, a JPEG image of more than twice that size may be unpacked to a half, a quarter or an eighth,
// never to less than twice `enough` in either direction: that is much faster, and looks the same once resized.
//
// Threads: any. Failure: kBadInput says what is wrong with the bytes, which may be any: not an image, too large, cut
// off, damaged. Never throws; `image` is then whatever it is.
Result<void> DecodeImage(std::string_view bytes, std::size_t channels, ImageSize enough, Image& image);

}  // namespace freshet::data
