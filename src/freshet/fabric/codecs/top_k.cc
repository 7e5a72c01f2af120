#include <algorithm>
#include <array>
#include <cmath>

#include "fabric/codecs/chosen.h"
#include "fabric/codecs/kinds.h"

namespace freshet::fabric {
namespace {

// Magnitudes as numbers of 31 bits, told apart digit by digit from the top: of 11, 10 and 10 bits.
struct Digit {
  unsigned shift, bits;
};
constexpr Digit kDigits[] = {{20, 11}, {10, 10}, {0, 10}};

struct Cut {
  std::uint32_t magnitude = 0;  // all above travel
  std::size_t ties = 0;         // and as many that are equal to it, from the front
};

// The k-th largest magnitude, exactly, by counting: three passes, no copy, the same on every machine. k > 0.
Cut FindCut(std::span<const float> values, std::size_t k) {
  std::uint32_t prefix = 0;
  for (const Digit digit : kDigits) {
    std::array<std::size_t, 1 << 11> counts{};
    const std::uint32_t mask = (1u << digit.bits) - 1;
    const unsigned above = digit.shift + digit.bits;
    for (const float value : values) {
      const std::uint32_t magnitude = MagnitudeBits(value);
      if (magnitude >> above == prefix >> above) ++counts[(magnitude >> digit.shift) & mask];
    }
    std::uint32_t at = mask;
    for (; counts[at] < k; --at) k -= counts[at];
    prefix |= at << digit.shift;
  }
  return {prefix, k};
}

class TopK final : public ChosenCodec {
 public:
  explicit TopK(double fraction) : ChosenCodec(fraction), fraction_(fraction) {}
  std::string_view name() const override { return "topk"; }

 private:
  void Choose(std::span<const float> values, std::vector<std::uint32_t>& chosen) override {
    if (values.empty()) return;
    const double share = std::ceil(fraction_ * static_cast<double>(values.size()));
    const std::size_t k = std::clamp<std::size_t>(static_cast<std::size_t>(share), 1, values.size());
    Cut cut = FindCut(values, k);
    if (cut.magnitude == 0) cut.ties = 0;  // zeros say nothing
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t magnitude = MagnitudeBits(values[i]);
      if (magnitude < cut.magnitude) continue;
      if (magnitude == cut.magnitude) {
        if (cut.ties == 0) continue;
        --cut.ties;
      }
      chosen.push_back(static_cast<std::uint32_t>(i));
    }
  }

  const double fraction_;
};

}  // namespace

CodecPtr MakeTopK(const CodecOptions& options) { return std::make_unique<TopK>(options.fraction); }

}  // namespace freshet::fabric
