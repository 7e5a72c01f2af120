#pragma once

#include "data/images/image.h"

namespace freshet::data {

// The formats of image files, each told by its first bytes. Both decode as DecodeImage says.
inline constexpr std::string_view kJpegMagic = "\xff\xd8\xff";
inline constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n";
Result<void> DecodeJpeg(std::string_view bytes, std::size_t channels, ImageSize enough, Image& image);
Result<void> DecodePng(std::string_view bytes, std::size_t channels, Image& image);

// kBadInput unless an image of that size may be unpacked.
Result<void> CheckImageSize(ImageSize size);
// Reduces pixels of three channels to one, their brightness.
void MakeGrey(Image& image);

}  // namespace freshet::data
