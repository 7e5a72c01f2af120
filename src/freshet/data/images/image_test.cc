#include "data/images/image.h"

#include <algorithm>
#include <cmath>

#include "data/images/image_testing.h"

namespace freshet::data {
namespace {

using namespace std::string_literals;

Image Decoded(std::string_view bytes, std::size_t channels = 3, ImageSize enough = {}) {
  Image image;
  const std::vector<char> exact(bytes.begin(), bytes.end());  // of just that size, for sanitizers
  const auto result = DecodeImage({exact.data(), exact.size()}, channels, enough, image);
  EXPECT_TRUE(result.ok()) << result.error().text;
  EXPECT_EQ(image.channels, channels);
  EXPECT_EQ(image.pixels.size(), image.height * image.width * image.channels);
  return image;
}

// What is wrong with these bytes; "" if nothing is.
std::string Refusal(std::string_view bytes, std::size_t channels = 3) {
  Image image;
  const std::vector<char> exact(bytes.begin(), bytes.end());
  const auto result = DecodeImage({exact.data(), exact.size()}, channels, {}, image);
  if (result.ok()) return "";
  EXPECT_EQ(result.error().code, Code::kBadInput);
  EXPECT_FALSE(result.error().text.empty());
  return result.error().text;
}

void ExpectNear(const Image& image, const Image& expected, int tolerance) {
  ASSERT_EQ(image.height, expected.height);
  ASSERT_EQ(image.width, expected.width);
  ASSERT_EQ(image.pixels.size(), expected.pixels.size());
  int furthest = 0;
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    furthest = std::max(furthest, std::abs(image.pixels[i] - expected.pixels[i]));
  EXPECT_LE(furthest, tolerance);
}

Image Grey(const Image& image) {
  Image grey{image.height, image.width, 1, {}};
  for (std::size_t i = 0; i < image.pixels.size(); i += 3)
    grey.pixels.push_back(static_cast<unsigned char>(
        std::lround(0.299 * image.pixels[i] + 0.587 * image.pixels[i + 1] + 0.114 * image.pixels[i + 2])));
  return grey;
}

void Replace16(std::string& bytes, std::size_t at, std::uint16_t value) {
  bytes[at] = static_cast<char>(value >> 8);
  bytes[at + 1] = static_cast<char>(value);
}

TEST(Image, ComesBackFromPngAsItWas) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "size");
    const Image image = Noise(seed, 1 + random.Below(40), 1 + random.Below(40));
    ExpectNear(Decoded(PngOf(image)), image, 0);
    ExpectNear(Decoded(PngOf(image), 1), Grey(image), 1);
  }
}

TEST(Image, ComesBackFromJpegNearly) {
  const Image image = Slopes(67, 93);
  for (const bool progressive : {false, true}) {
    ExpectNear(Decoded(JpegOf(image, JCS_RGB, progressive)), image, 12);
    ExpectNear(Decoded(JpegOf(image, JCS_RGB, progressive), 1), Grey(image), 6);
  }
}

TEST(Image, OfGreyBecomesColourAndStaysGrey) {
  const Image grey = Slopes(20, 30, 1);
  Image colour{20, 30, 3, {}};
  for (const unsigned char pixel : grey.pixels) colour.pixels.insert(colour.pixels.end(), 3, pixel);
  ExpectNear(Decoded(PngOf(grey)), colour, 0);
  ExpectNear(Decoded(PngOf(grey), 1), grey, 0);
  ExpectNear(Decoded(JpegOf(grey, JCS_GRAYSCALE)), colour, 4);
  ExpectNear(Decoded(JpegOf(grey, JCS_GRAYSCALE), 1), grey, 4);
}

TEST(Image, OfInksIsTurnedIntoLight) {
  const Image light = Slopes(32, 48);
  Image inks{32, 48, 4, {}};  // as Adobe's programs write them: what light is left
  for (std::size_t i = 0; i < light.pixels.size(); i += 3)
    inks.pixels.insert(inks.pixels.end(), {light.pixels[i], light.pixels[i + 1], light.pixels[i + 2], 255});
  const std::string adobe = JpegOf(inks, JCS_CMYK);
  ASSERT_NE(adobe.find("Adobe"), std::string::npos);
  ExpectNear(Decoded(adobe), light, 12);
  ExpectNear(Decoded(adobe, 1), Grey(light), 8);
  Image dark = inks;
  for (std::size_t i = 3; i < dark.pixels.size(); i += 4) dark.pixels[i] = 0;
  ExpectNear(Decoded(JpegOf(dark, JCS_CMYK)), {32, 48, 3, std::vector<unsigned char>(32 * 48 * 3)}, 4);
}

TEST(Image, OfAPaletteOrDeepOrTransparentPngIsReadToo) {
  const png_byte colours[] = {10, 20, 30, 200, 100, 50};
  const std::vector<png_byte> places = {0, 1, 1, 0};
  ExpectNear(Decoded(PngOf(2, 2, PNG_FORMAT_RGB_COLORMAP, places, colours, 2)),
             {2, 2, 3, {10, 20, 30, 200, 100, 50, 200, 100, 50, 10, 20, 30}}, 0);
  // 16 bits, stored as linear light by the library: black and white stay what they are.
  const std::vector<png_uint_16> deep = {0, 65535};
  ExpectNear(Decoded(PngOf(1, 2, PNG_FORMAT_LINEAR_Y, deep), 1), {1, 2, 1, {0, 255}}, 0);
  const std::vector<png_byte> glass = {255, 0, 0, 255, /* and nothing at all: */ 9, 9, 9, 0};
  ExpectNear(Decoded(PngOf(1, 2, PNG_FORMAT_RGBA, glass)), {1, 2, 3, {255, 0, 0, 255, 255, 255}}, 0);
}

TEST(Image, OfJpegIsUnpackedSmallerWhenMuchLargerThanEnough) {
  const std::string file = JpegOf(Slopes(800, 1600));
  const auto size = [&](std::size_t height, std::size_t width) {
    const Image image = Decoded(file, 3, {height, width});
    return std::pair(image.height, image.width);
  };
  EXPECT_EQ(size(0, 0), std::pair(std::size_t{800}, std::size_t{1600}));
  EXPECT_EQ(size(50, 50), std::pair(std::size_t{100}, std::size_t{200}));
  EXPECT_EQ(size(51, 50), std::pair(std::size_t{200}, std::size_t{400}));
  EXPECT_EQ(size(200, 200), std::pair(std::size_t{400}, std::size_t{800}));
  EXPECT_EQ(size(201, 1), std::pair(std::size_t{800}, std::size_t{1600}));
}

TEST(Image, IsRefusedWhenItIsNone) {
  EXPECT_EQ(Refusal(""), "an empty file, expected a JPEG or PNG image");
  EXPECT_NE(Refusal("GIF89a and more").find("expected a JPEG or PNG image"), std::string::npos);
  EXPECT_NE(Refusal("\xff\xd8"), "");
  EXPECT_NE(Refusal("\xff\xd8\xff"), "");
  EXPECT_NE(Refusal("\x89PNG\r\n\x1a\n"), "");
}

TEST(Image, IsRefusedWhenCutOffAnywhere) {
  const Image image = Noise(1, 24, 24);
  for (const std::string& file : {JpegOf(image), JpegOf(image, JCS_RGB, true), PngOf(image)}) {
    ASSERT_EQ(Refusal(file), "");
    // What comes last (an end marker, an empty chunk) says nothing about pixels.
    for (std::size_t size = 0; size + 20 < file.size(); ++size) ASSERT_NE(Refusal(file.substr(0, size)), "") << size;
  }
  EXPECT_NE(Refusal(JpegOf(image).substr(0, 900)).find("cut off"), std::string::npos);
}

TEST(Image, OfAbsurdSizeIsRefusedBeforeItIsUnpacked) {
  std::string jpeg = JpegOf(Slopes(8, 8));
  const std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  Replace16(jpeg, frame + 5, 65000);
  Replace16(jpeg, frame + 7, 65000);
  EXPECT_NE(Refusal(jpeg).find("65000x65000 pixels, expected"), std::string::npos) << Refusal(jpeg);
  std::string png = PngOf(Slopes(8, 8));
  Replace16(png, 18, 60000);  // the width's lower half
  Replace16(png, 22, 60000);
  const std::uint32_t crc = static_cast<std::uint32_t>([&] {
    std::uint32_t sum = ~0u;  // CRC-32 of the type and content of the header chunk
    for (std::size_t i = 12; i < 29; ++i) {
      sum ^= static_cast<unsigned char>(png[i]);
      for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0u);
    }
    return ~sum;
  }());
  Replace16(png, 29, static_cast<std::uint16_t>(crc >> 16));
  Replace16(png, 31, static_cast<std::uint16_t>(crc));
  EXPECT_NE(Refusal(png).find("60000x60000 pixels, expected"), std::string::npos) << Refusal(png);
}

TEST(Image, OfTooManyScansIsRefused) {
  // The first scan of a progressive file, with its tables, over and over.
  const std::string file = JpegOf(Noise(3, 16, 16), JCS_RGB, true);
  const std::size_t tables = file.find("\xff\xc4"), end = file.find("\xff\xc4", file.find("\xff\xda"));
  ASSERT_NE(end, std::string::npos);
  std::string endless = file.substr(0, file.size() - 2);
  for (int i = 0; i < 3000; ++i) endless += file.substr(tables, end - tables);
  EXPECT_EQ(Refusal(endless + "\xff\xd9"), "a JPEG image of more than 500 scans");
}

TEST(Image, OfDamagedBytesIsReadOrRefusedButDoesNoHarm) {
  const Image image = Noise(2, 20, 20);
  const std::string files[] = {JpegOf(image), JpegOf(image, JCS_RGB, true), JpegOf(Noise(2, 20, 20, 4), JCS_CMYK),
                               PngOf(image)};
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "damage");
    std::string file = files[random.Below(std::size(files))];
    for (std::uint64_t i = 0; i <= random.Below(4); ++i)
      file[random.Below(file.size())] = static_cast<char>(random.Below(256));
    Image out;
    const auto result = DecodeImage(file, 1 + 2 * random.Below(2), {random.Below(12), random.Below(12)}, out);
    if (!result.ok()) continue;
    ASSERT_EQ(out.pixels.size(), out.height * out.width * out.channels);
  }
}

}  // namespace
}  // namespace freshet::data
