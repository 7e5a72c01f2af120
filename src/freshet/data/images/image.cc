#include "data/images/image.h"

#include <new>

#include "data/images/image_codecs.h"

namespace freshet::data {

Result<void> CheckImageSize(ImageSize size) {
  if (size.height == 0 || size.width == 0 || size.height > kMostImagePixels / size.width)
    return Error{Code::kBadInput,
                 Str("an image of ", size.height, "x", size.width, " pixels, expected 1 to ", kMostImagePixels)};
  return {};
}

void MakeGrey(Image& image) {
  const std::size_t count = image.height * image.width;
  unsigned char* const pixels = image.pixels.data();
  for (std::size_t i = 0; i < count; ++i) {  // the weights of BT.601 in 1/65536, as in JPEG files
    const unsigned char* const from = pixels + 3 * i;
    pixels[i] = static_cast<unsigned char>((19595u * from[0] + 38470u * from[1] + 7471u * from[2] + 32768u) >> 16);
  }
  image.pixels.resize(count);
  image.channels = 1;
}

Result<void> DecodeImage(std::string_view bytes, std::size_t channels, ImageSize enough, Image& image) {
  CHECK(channels == 1 || channels == 3);
  try {  // an image within the limits may still be more than there is memory for
    if (bytes.starts_with(kJpegMagic)) return DecodeJpeg(bytes, channels, enough, image);
    if (bytes.starts_with(kPngMagic)) return DecodePng(bytes, channels, image);
  } catch (const std::bad_alloc&) {
    return Error{Code::kBadInput, "not enough memory to unpack this image"};
  }
  if (bytes.empty()) return Error{Code::kBadInput, "an empty file, expected a JPEG or PNG image"};
  return Error{Code::kBadInput, Str("begins with ", Quoted(bytes.substr(0, 8)), ", expected a JPEG or PNG image")};
}

}  // namespace freshet::data
