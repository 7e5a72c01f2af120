#include <png.h>

#include "data/images/image_codecs.h"

namespace freshet::data {
namespace {

// Frees what the library holds, whichever way we leave.
class PngImage {
 public:
  PngImage() { image_.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image_); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  png_image* operator->() { return &image_; }
  png_image* get() { return &image_; }
  Error Wrong() const { return {Code::kBadInput, Str("a damaged PNG image: ", image_.message)}; }

 private:
  png_image image_{};
};

}  // namespace

Result<void> DecodePng(std::string_view bytes, std::size_t channels, Image& image) {
  PngImage png;
  if (!png_image_begin_read_from_memory(png.get(), bytes.data(), bytes.size())) return png.Wrong();
  TRY(CheckImageSize({png->height, png->width}));
  png->format = PNG_FORMAT_RGB;  // grey is made by our weights, not by the library's, which differ from JPEG's
  png->flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  image.height = png->height;
  image.width = png->width;
  image.channels = 3;
  image.pixels.resize(image.height * image.width * 3);
  const png_color white = {255, 255, 255};
  if (!png_image_finish_read(png.get(), &white, image.pixels.data(), 0, nullptr)) return png.Wrong();
  if (channels == 1) MakeGrey(image);
  return {};
}

}  // namespace freshet::data
