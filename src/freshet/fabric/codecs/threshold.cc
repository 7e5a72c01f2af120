#include "fabric/codecs/chosen.h"
#include "fabric/codecs/kinds.h"

namespace freshet::fabric {
namespace {

class Threshold final : public ChosenCodec {
 public:
  Threshold(double threshold, double expected)
      : ChosenCodec(expected), least_bits_(MagnitudeBits(static_cast<float>(threshold))) {}
  std::string_view name() const override { return "threshold"; }

 private:
  void Choose(std::span<const float> values, std::vector<std::uint32_t>& chosen) override {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (MagnitudeBits(values[i]) >= least_bits_) chosen.push_back(static_cast<std::uint32_t>(i));
  }

  const std::uint32_t least_bits_;
};

}  // namespace

CodecPtr MakeThreshold(const CodecOptions& options) {
  return std::make_unique<Threshold>(options.threshold, options.fraction);
}

}  // namespace freshet::fabric
