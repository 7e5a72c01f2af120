#include <algorithm>

#include "deploy/samplers/kinds.h"
#include "deploy/samplers/shuffle.h"

namespace freshet::deploy {
namespace {

// uniform, and window: the newest rows only.
class UniformSampler final : public Sampler {
 public:
  UniformSampler(std::string_view name, std::uint64_t window_rows) : name_(name), window_rows_(window_rows) {}

  std::string_view name() const override { return name_; }
  void Draw(std::uint64_t end, std::uint64_t count, base::Random& random,
            std::vector<std::uint64_t>& numbers) override {
    const std::uint64_t rows = std::min(end - std::min(begin(), end), window_rows_);
    count = std::min(count, rows);
    numbers.clear();
    numbers.reserve(count);
    LazyShuffle shuffle(rows, count);
    while (numbers.size() < count) numbers.push_back(end - rows + shuffle.Next(random));
  }

 private:
  const std::string_view name_;
  const std::uint64_t window_rows_;
};

class NoSampler final : public Sampler {
 public:
  std::string_view name() const override { return "none"; }
  void Draw(std::uint64_t, std::uint64_t, base::Random&, std::vector<std::uint64_t>& numbers) override {
    numbers.clear();
  }
};

}  // namespace

SamplerPtr MakeUniformSampler(const SamplerOptions&, std::uint64_t) {
  return std::make_unique<UniformSampler>("uniform", ~std::uint64_t{0});
}

SamplerPtr MakeWindowSampler(const SamplerOptions& options, std::uint64_t) {
  return std::make_unique<UniformSampler>("window", options.window_rows);
}

SamplerPtr MakeNoSampler(const SamplerOptions&, std::uint64_t) { return std::make_unique<NoSampler>(); }

}  // namespace freshet::deploy
