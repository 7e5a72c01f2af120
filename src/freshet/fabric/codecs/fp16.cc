#include "fabric/codecs/float16.h"

#include <algorithm>
#include <array>

#include "fabric/codecs/kinds.h"

namespace freshet::fabric {
namespace {

// fp16 and bf16: two bytes for each value.
class Float16 final : public Codec {
 public:
  using To = void (*)(std::span<const float>, std::byte*);
  using From = void (*)(const std::byte*, std::span<float>);
  Float16(std::string_view name, To to, From from) : name_(name), to_(to), from_(from) {}

  std::string_view name() const override { return name_; }
  bool uses_residual() const override { return false; }

  void Encode(std::span<const float> values, std::span<float>, std::vector<std::byte>& out) override {
    out.resize(EncodedBytes(values.size()));
    to_(values, out.data());
  }

  std::size_t EncodedBytes(std::size_t count) const override { return 2 * count; }

  Result<void> Decode(std::span<const std::byte> bytes, std::span<float> into, Onto onto) const override {
    TRY(ExpectBytes(name(), bytes.size(), 2 * into.size(), into.size()));
    if (onto == Onto::kReplace) {
      from_(bytes.data(), into);
      return {};
    }
    std::array<float, kCodecGroup> group;
    for (std::size_t begin = 0; begin < into.size(); begin += group.size()) {
      const std::size_t count = std::min(group.size(), into.size() - begin);
      from_(bytes.data() + 2 * begin, std::span(group).first(count));
      for (std::size_t i = 0; i < count; ++i) into[begin + i] += group[i];
    }
    return {};
  }

 private:
  std::string_view name_;
  To to_;
  From from_;
};

}  // namespace

CodecPtr MakeFp16(const CodecOptions&) { return std::make_unique<Float16>("fp16", PackFp16, UnpackFp16); }
CodecPtr MakeBf16(const CodecOptions&) { return std::make_unique<Float16>("bf16", PackBf16, UnpackBf16); }

}  // namespace freshet::fabric
