// The library reports errors by a function that must not return, so decoding leaves through longjmp. The function that
// calls setjmp therefore holds nothing that needs a destructor: everything lives in Decoder, outside of it.

#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <algorithm>
#include <array>

#include "data/images/image_codecs.h"

namespace freshet::data {
namespace {

constexpr int kMostScans = 500;  // a progressive file of more is made to waste time

// After these warnings the library goes on with pixels that are not in the file.
bool IsDamage(int warning) {
  constexpr std::array kDamage = {JWRN_JPEG_EOF, JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE, JWRN_ARITH_BAD_CODE,
                                  JWRN_MUST_RESYNC};
  return std::find(kDamage.begin(), kDamage.end(), warning) != kDamage.end();
}

class Decoder {
 public:
  Decoder() {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr jpeg) { Of(jpeg).Leave(); };
    errors_.emit_message = [](j_common_ptr jpeg, int level) {
      if (level < 0 && IsDamage(jpeg->err->msg_code)) Of(jpeg).Leave();
    };
    errors_.output_message = [](j_common_ptr) {};
    jpeg_.client_data = this;
  }
  ~Decoder() { jpeg_destroy_decompress(&jpeg_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Each is false when the library gave up; Wrong() then says why.
  bool ReadHeader(std::string_view bytes) {
    if (setjmp(exit_) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_.progress = &progress_;
    progress_.progress_monitor = [](j_common_ptr jpeg) {
      if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > kMostScans) Of(jpeg).LeaveForScans();
    };
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&jpeg_, TRUE);
    return true;
  }
  bool Start() {
    if (setjmp(exit_) != 0) return false;
    jpeg_start_decompress(&jpeg_);
    return true;
  }
  bool ReadRows(unsigned char* out, std::size_t row_bytes) {
    if (setjmp(exit_) != 0) return false;
    while (jpeg_.output_scanline < jpeg_.output_height) {
      unsigned char* row = out + jpeg_.output_scanline * row_bytes;
      jpeg_read_scanlines(&jpeg_, &row, 1);
    }
    return true;
  }

  jpeg_decompress_struct& jpeg() { return jpeg_; }
  Error Wrong() {
    if (too_many_scans_) return {Code::kBadInput, Str("a JPEG image of more than ", kMostScans, " scans")};
    std::array<char, JMSG_LENGTH_MAX> text{};
    errors_.format_message(reinterpret_cast<j_common_ptr>(&jpeg_), text.data());
    const int code = errors_.msg_code;
    const bool cut_off = code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JERR_INPUT_EOF;
    return {Code::kBadInput, Str(cut_off ? "a JPEG image that is cut off: " : "a damaged JPEG image: ", text.data())};
  }

 private:
  static Decoder& Of(j_common_ptr jpeg) { return *static_cast<Decoder*>(jpeg->client_data); }
  [[noreturn]] void Leave() { longjmp(exit_, 1); }
  [[noreturn]] void LeaveForScans() {
    too_many_scans_ = true;
    Leave();
  }

  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  bool too_many_scans_ = false;
  std::jmp_buf exit_{};
};

// The smallest of 1/1 … 1/8 that still leaves twice of what is enough.
unsigned Denominator(ImageSize size, ImageSize enough) {
  if (enough.height == 0 || enough.width == 0) return 1;
  unsigned denominator = 8;
  while (denominator > 1 &&
         (size.height / denominator < 2 * enough.height || size.width / denominator < 2 * enough.width))
    denominator /= 2;
  return denominator;
}

// Inks to light, in place. Adobe's programs write how much light is left rather than how much ink is there.
void FromCmyk(Image& image, bool inverted) {
  const std::size_t count = image.height * image.width;
  unsigned char* const pixels = image.pixels.data();
  for (std::size_t i = 0; i < count; ++i) {
    std::array<unsigned, 4> light{};
    for (std::size_t k = 0; k < 4; ++k) light[k] = inverted ? pixels[4 * i + k] : 255u - pixels[4 * i + k];
    for (std::size_t k = 0; k < 3; ++k)
      pixels[3 * i + k] = static_cast<unsigned char>((light[k] * light[3] + 127) / 255);
  }
  image.pixels.resize(count * 3);
  image.channels = 3;
}

}  // namespace

Result<void> DecodeJpeg(std::string_view bytes, std::size_t channels, ImageSize enough, Image& image) {
  Decoder decoder;
  if (!decoder.ReadHeader(bytes)) return decoder.Wrong();
  jpeg_decompress_struct& jpeg = decoder.jpeg();
  const ImageSize size{jpeg.image_height, jpeg.image_width};
  TRY(CheckImageSize(size));
  const bool inks = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  jpeg.out_color_space = inks ? JCS_CMYK : (channels == 1 ? JCS_GRAYSCALE : JCS_RGB);
  jpeg.scale_num = 1;
  jpeg.scale_denom = Denominator(size, enough);
  if (!decoder.Start()) return decoder.Wrong();
  image.height = jpeg.output_height;
  image.width = jpeg.output_width;
  image.channels = static_cast<std::size_t>(jpeg.output_components);
  const std::size_t row_bytes = image.width * image.channels;
  image.pixels.resize(image.height * row_bytes);
  if (!decoder.ReadRows(image.pixels.data(), row_bytes)) return decoder.Wrong();
  if (inks) FromCmyk(image, jpeg.saw_Adobe_marker);
  if (channels == 1 && image.channels == 3) MakeGrey(image);
  return {};
}

}  // namespace freshet::data
