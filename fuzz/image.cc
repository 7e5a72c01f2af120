#include "data/images/image.h"
#include "data/images/resize.h"
#include "world.h"

// Any bytes as an image file. The first says how it is wanted.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace freshet;
  if (size < 1) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t channels = data[0] % 2 == 0 ? 1 : 3;
  const data::ImageSize wanted{1 + data[0] / 2 % 8u, 1 + data[0] / 16u};
  data::Image image;
  const auto result = data::DecodeImage(bytes, channels, wanted, image);
  if (!result.ok()) {
    CHECK(result.error().code == Code::kBadInput);
    return 0;
  }
  CHECK(image.channels == channels);
  CHECK(image.height > 0 && image.width > 0);
  CHECK(image.pixels.size() == image.height * image.width * channels);
  std::vector<unsigned char> pixels;
  data::Resizer().Resize(image, wanted, pixels);
  CHECK(pixels.size() == channels * wanted.height * wanted.width);
  return 0;
}
