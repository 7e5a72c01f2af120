#include "data/images/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "data/images/image_testing.h"

namespace freshet::data {
namespace {

ImageSize RandomSize(base::Random& random, std::uint64_t most) {
  return {1 + random.Below(most), 1 + random.Below(most)};
}

std::vector<unsigned char> Resized(const Image& image, ImageSize size) {
  std::vector<unsigned char> out;
  Resizer().Resize(image, size, out);
  return out;
}

// The plain version: every output pixel by itself, over all input pixels, in double precision.
double Reference(const Image& image, ImageSize size, std::size_t channel, std::size_t row, std::size_t column) {
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  const double scale = std::min(height / static_cast<double>(size.height), width / static_cast<double>(size.width));
  const double reach = std::max(scale, 1.0);
  const double y = height / 2 + (static_cast<double>(row) + 0.5 - static_cast<double>(size.height) / 2) * scale;
  const double x = width / 2 + (static_cast<double>(column) + 0.5 - static_cast<double>(size.width) / 2) * scale;
  double sum = 0, weights = 0;
  for (std::size_t i = 0; i < image.height; ++i)
    for (std::size_t j = 0; j < image.width; ++j) {
      const double down = std::max(0.0, 1 - std::abs(static_cast<double>(i) + 0.5 - y) / reach);
      const double across = std::max(0.0, 1 - std::abs(static_cast<double>(j) + 0.5 - x) / reach);
      sum += down * across * image.pixels[(i * image.width + j) * image.channels + channel];
      weights += down * across;
    }
  return sum / weights;
}

TEST(Resize, AgreesWithThePlainVersion) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    base::Random random(seed, "resize");
    const auto [height, width] = RandomSize(random, 40);
    const std::size_t channels = random.Below(2) == 0 ? 1 : 3;
    const Image image = Noise(seed, height, width, channels);
    const ImageSize size = RandomSize(random, 24);
    SCOPED_TRACE(Str("seed ", seed, ": ", height, "x", width, " to ", size.height, "x", size.width));
    const auto out = Resized(image, size);
    ASSERT_EQ(out.size(), channels * size.height * size.width);
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t y = 0; y < size.height; ++y)
        for (std::size_t x = 0; x < size.width; ++x)
          ASSERT_NEAR(out[(c * size.height + y) * size.width + x], Reference(image, size, c, y, x), 0.501);
  }
}

TEST(Resize, LeavesAnImageOfTheWantedSizeAsItIs) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    base::Random random(seed, "identity");
    const auto [height, width] = RandomSize(random, 60);
    const Image image = Noise(seed, height, width);
    const auto out = Resized(image, {height, width});
    for (std::size_t i = 0; i < height * width; ++i)
      for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(out[c * height * width + i], image.pixels[3 * i + c]);
  }
}

TEST(Resize, KeepsAConstantImageConstant) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    base::Random random(seed, "constant");
    const auto [height, width] = RandomSize(random, 200);
    const auto value = static_cast<unsigned char>(random.Below(256));
    const Image image{height, width, 1, std::vector<unsigned char>(height * width, value)};
    for (const unsigned char pixel : Resized(image, RandomSize(random, 50))) ASSERT_EQ(pixel, value) << seed;
  }
}

TEST(Resize, TakesTheMiddleOfTheLongerSide) {
  // Three squares side by side: only the one in the middle is left.
  Image image{10, 30, 1, {}};
  for (std::size_t i = 0; i < 300; ++i) image.pixels.push_back(i % 30 / 10 == 1 ? 200 : 0);
  const auto out = Resized(image, {10, 10});
  EXPECT_EQ(std::count(out.begin(), out.end(), 200), 100);
}

TEST(Resize, CountsEveryPixelWhenShrinking) {
  // A fine chessboard becomes its average, not whichever squares are hit.
  Image image{64, 64, 1, {}};
  for (std::size_t i = 0; i < 64 * 64; ++i) image.pixels.push_back((i / 64 + i) % 2 == 0 ? 0 : 254);
  for (const unsigned char pixel : Resized(image, {8, 8})) EXPECT_NEAR(pixel, 127, 2);
}

}  // namespace
}  // namespace freshet::data
