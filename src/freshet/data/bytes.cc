#include "data/bytes.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace freshet::data {
namespace {

// A file from its beginning though some bytes have been read already to look at them.
class Source {
 public:
  Source(std::unique_ptr<base::InputFile> file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Result<std::string_view> Peek(std::size_t bytes) {
    peeked_.resize(bytes);
    peeked_.resize(TRY(file_->Read(peeked_)));
    return std::string_view(peeked_);
  }
  Result<std::size_t> Read(std::span<char> out) {
    const std::size_t first = std::min(out.size(), peeked_.size() - taken_);
    std::copy_n(peeked_.data() + taken_, first, out.data());
    taken_ += first;
    if (first == out.size()) return first;
    return first + TRY(file_->Read(out.subspan(first)));
  }
  const base::InputFile& file() const { return *file_; }
  const std::string& path() const { return path_; }

 private:
  std::unique_ptr<base::InputFile> file_;
  const std::string path_;
  std::string peeked_;
  std::size_t taken_ = 0;
};

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(Source source) : source_(std::move(source)) {}
  Result<std::size_t> Read(std::span<char> out) override { return source_.Read(out); }
  std::optional<std::uint64_t> size() const override { return source_.file().size(); }
  Result<std::size_t> ReadAt(std::uint64_t offset, std::span<char> out) const override {
    return source_.file().ReadAt(offset, out);
  }

 private:
  Source source_;
};

// What the three libraries have in common: bytes in, bytes out, how it ended.
struct Step {
  std::size_t consumed, produced;
  enum { kGoesOn, kStreamEnd, kDamaged } state;
};

// Drives an unpacking library: keeps its input filled, starts anew at the end of each member of a concatenated file.
template <class Codec>
class UnpackedStream final : public ByteStream {
 public:
  explicit UnpackedStream(Source source) : source_(std::move(source)), packed_(1 << 16) {}

  Result<std::size_t> Read(std::span<char> out) override {
    std::size_t done = 0;
    while (done < out.size() && !ended_) {
      if (at_ == filled_) {
        filled_ = TRY(source_.Read(packed_));
        at_ = 0;
      }
      if (filled_ == 0 && !inside_) {
        ended_ = true;
        break;
      }
      const Step step = codec_.Go({packed_.data() + at_, filled_ - at_}, out.subspan(done));
      // With no more bytes to give, a codec may still have some of its own to hand out.
      if (filled_ == 0 && step.produced == 0 && step.state == Step::kGoesOn)
        return Error{Code::kBadInput,
                     Str(source_.path(), ": the ", Codec::kName, " data is cut off; the file is incomplete")};
      at_ += step.consumed;
      done += step.produced;
      packed_total_ += step.consumed;
      unpacked_total_ += step.produced;
      if (step.state == Step::kDamaged)
        return Error{Code::kBadInput,
                     Str(source_.path(), ": damaged ", Codec::kName, " data near byte ", packed_total_)};
      inside_ = step.state == Step::kGoesOn;
      if (step.state == Step::kStreamEnd) codec_.Restart();
      if (unpacked_total_ > (1 << 20) && unpacked_total_ / 1000 > packed_total_)
        return Error{Code::kBadInput, Str(source_.path(),
                                          ": unpacks to more than 1,000 times its size; refused as a decompression "
                                          "bomb, unpack it yourself if it is real")};
    }
    return done;
  }

 private:
  Source source_;
  Codec codec_;
  std::vector<char> packed_;
  std::size_t at_ = 0, filled_ = 0;
  bool inside_ = false, ended_ = false;
  std::uint64_t packed_total_ = 0, unpacked_total_ = 0;
};

class Gzip {
 public:
  static constexpr std::string_view kName = "gzip";
  Gzip() { CHECK(inflateInit2(&stream_, 15 + 16) == Z_OK); }
  ~Gzip() { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  void Restart() { CHECK(inflateReset(&stream_) == Z_OK); }
  Step Go(std::span<char> in, std::span<char> out) {
    stream_.next_in = reinterpret_cast<Bytef*>(in.data());
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), 1u << 30));
    const auto room = stream_.avail_out;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    return {in.size() - stream_.avail_in, room - stream_.avail_out,
            code == Z_STREAM_END ? Step::kStreamEnd
                                 : (code == Z_OK || code == Z_BUF_ERROR ? Step::kGoesOn : Step::kDamaged)};
  }

 private:
  z_stream stream_{};
};

class Xz {
 public:
  static constexpr std::string_view kName = "xz";
  Xz() { Start(); }
  ~Xz() { lzma_end(&stream_); }
  Xz(const Xz&) = delete;
  void Restart() { Start(); }
  Step Go(std::span<char> in, std::span<char> out) {
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    stream_.avail_out = out.size();
    const lzma_ret code = lzma_code(&stream_, LZMA_RUN);
    return {in.size() - stream_.avail_in, out.size() - stream_.avail_out,
            code == LZMA_STREAM_END ? Step::kStreamEnd
                                    : (code == LZMA_OK || code == LZMA_BUF_ERROR ? Step::kGoesOn : Step::kDamaged)};
  }

 private:
  void Start() { CHECK(lzma_stream_decoder(&stream_, kMostMemoryBytes, 0) == LZMA_OK); }
  static constexpr std::uint64_t kMostMemoryBytes = 256 << 20;
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

class Zstd {
 public:
  static constexpr std::string_view kName = "zstd";
  Zstd() : stream_(ZSTD_createDStream()) { CHECK(stream_ != nullptr); }
  ~Zstd() { ZSTD_freeDStream(stream_); }
  Zstd(const Zstd&) = delete;
  void Restart() { ZSTD_initDStream(stream_); }
  Step Go(std::span<char> in, std::span<char> out) {
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const std::size_t left = ZSTD_decompressStream(stream_, &output, &input);
    return {input.pos, output.pos,
            ZSTD_isError(left) ? Step::kDamaged : (left == 0 ? Step::kStreamEnd : Step::kGoesOn)};
  }

 private:
  ZSTD_DStream* const stream_;
};

}  // namespace

Result<std::size_t> ByteStream::ReadAt(std::uint64_t, std::span<char>) const {
  return Error{Code::kInvalid, "this input can only be read from first to last"};
}

bool Repeatable(const base::Files& files, const std::string& path) { return !files.IsDevice(path); }

Result<std::unique_ptr<ByteStream>> OpenBytes(base::Files& files, const std::string& path) {
  using namespace std::string_view_literals;
  Source source(TRY(files.OpenRead(path)), path == "-" ? "standard input" : path);
  const std::string_view magic = TRY(source.Peek(6));
  std::unique_ptr<ByteStream> stream;
  if (magic.starts_with("\x1f\x8b"sv))
    stream = std::make_unique<UnpackedStream<Gzip>>(std::move(source));
  else if (magic.starts_with("\xfd"
                             "7zXZ\0"sv))
    stream = std::make_unique<UnpackedStream<Xz>>(std::move(source));
  else if (magic.starts_with("\x28\xb5\x2f\xfd"sv))
    stream = std::make_unique<UnpackedStream<Zstd>>(std::move(source));
  else
    stream = std::make_unique<PlainStream>(std::move(source));
  return stream;
}

}  // namespace freshet::data
