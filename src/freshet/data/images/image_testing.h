#pragma once

#include <gtest/gtest.h>
#include <png.h>

#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "data/images/image.h"

namespace freshet::data {

// What tests of images share: pictures, and files of them.

// Smooth, so that JPEG files of it come close: each channel another slope, between 0 and 255.
inline Image Slopes(std::size_t height, std::size_t width, std::size_t channels = 3) {
  Image image{height, width, channels, {}};
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < channels; ++c) {
        const std::size_t down = 255 * y / height, across = 255 * x / width;
        image.pixels.push_back(static_cast<unsigned char>(c == 0 ? down : c == 1 ? across : (255 + down - across) / 2));
      }
  return image;
}

inline Image Noise(std::uint64_t seed, std::size_t height, std::size_t width, std::size_t channels = 3) {
  base::Random random(seed, "noise");
  Image image{height, width, channels, std::vector<unsigned char>(height * width * channels)};
  for (unsigned char& pixel : image.pixels) pixel = static_cast<unsigned char>(random.Below(256));
  return image;
}

// A JPEG file. `space` has as many components as the image has channels.
inline std::string JpegOf(const Image& image, J_COLOR_SPACE space = JCS_RGB, bool progressive = false,
                          int quality = 95) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT: the library's type
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_height = static_cast<JDIMENSION>(image.height);
  jpeg.image_width = static_cast<JDIMENSION>(image.width);
  jpeg.input_components = static_cast<int>(image.channels);
  jpeg.in_color_space = space;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  if (progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<unsigned char*>(image.pixels.data() + jpeg.next_scanline * image.width * image.channels);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&jpeg);
  std::free(bytes);
  return file;
}

// A PNG file of the library's `format`, whose rows are `samples`.
template <class Sample>
std::string PngOf(std::size_t height, std::size_t width, png_uint_32 format, const std::vector<Sample>& samples,
                  const void* colours = nullptr, png_uint_32 colour_count = 0) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.height = static_cast<png_uint_32>(height);
  png.width = static_cast<png_uint_32>(width);
  png.format = format;
  png.colormap_entries = colour_count;
  png_alloc_size_t size = 0;
  EXPECT_TRUE(png_image_write_to_memory(&png, nullptr, &size, 0, samples.data(), 0, colours)) << png.message;
  std::string file(size, '\0');
  EXPECT_TRUE(png_image_write_to_memory(&png, file.data(), &size, 0, samples.data(), 0, colours)) << png.message;
  file.resize(size);
  return file;
}

inline std::string PngOf(const Image& image) {
  return PngOf(image.height, image.width, image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB, image.pixels);
}

}  // namespace freshet::data
