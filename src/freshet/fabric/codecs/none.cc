#include <cstring>

#include "fabric/codecs/kinds.h"

namespace freshet::fabric {
namespace {

class None final : public Codec {
 public:
  std::string_view name() const override { return "none"; }
  bool uses_residual() const override { return false; }

  void Encode(std::span<const float> values, std::span<float>, std::vector<std::byte>& out) override {
    const auto bytes = std::as_bytes(values);
    out.assign(bytes.begin(), bytes.end());
  }

  std::size_t EncodedBytes(std::size_t count) const override { return count * sizeof(float); }

  Result<void> Decode(std::span<const std::byte> bytes, std::span<float> into, Onto onto) const override {
    TRY(ExpectBytes(name(), bytes.size(), into.size_bytes(), into.size()));
    if (into.empty()) return {};
    if (onto == Onto::kReplace) {
      std::memcpy(into.data(), bytes.data(), bytes.size());
      return {};
    }
    for (std::size_t i = 0; i < into.size(); ++i) {
      float value;  // the bytes may lie at any address
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      into[i] += value;
    }
    return {};
  }
};

}  // namespace

CodecPtr MakeNone(const CodecOptions&) { return std::make_unique<None>(); }

}  // namespace freshet::fabric
