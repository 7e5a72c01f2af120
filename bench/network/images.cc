#include "images.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include <jpeglib.h>

#include "base/random.h"

namespace freshet::bench {
namespace {

constexpr int kClasses = 10;

// Stripes, and enough noise to give a file the size a photograph of this size has.
std::vector<unsigned char> Pixels(int number, int size) {
  base::Random random(static_cast<std::uint64_t>(number), "images");
  const double turn = (number % kClasses) * 3.14159265 / kClasses, shift = random.Uniform() * 6;
  std::vector<unsigned char> pixels;
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x)
      for (int c = 0; c < 3; ++c) {
        const double stripe = std::sin((x * std::cos(turn) + y * std::sin(turn)) * 0.2 + shift + c);
        pixels.push_back(static_cast<unsigned char>(110 + 80 * stripe + 40 * random.Uniform()));
      }
  return pixels;
}

void Compress(std::vector<unsigned char>& pixels, int size, std::FILE* file) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  jpeg_stdio_dest(&jpeg, file);
  jpeg.image_width = jpeg.image_height = static_cast<JDIMENSION>(size);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 90, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row = pixels.data() + static_cast<std::size_t>(jpeg.next_scanline) * static_cast<std::size_t>(size) * 3;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
}

}  // namespace

Result<void> WriteImages(const std::string& directory, int count, int size) {
  for (int number = 0; number < count; ++number) {
    const std::filesystem::path folder = std::filesystem::path(directory) / Str("class", number % kClasses);
    const std::string path = folder / Str("image", number, ".jpg");
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), std::fclose);
    if (file == nullptr) return Error{Code::kIo, Str("cannot write ", path, "; is the directory writable?")};
    std::vector<unsigned char> pixels = Pixels(number, size);
    Compress(pixels, size, file.get());
  }
  return {};
}

}  // namespace freshet::bench
