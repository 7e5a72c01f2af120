#include <algorithm>

#include "base/check.h"
#include "deploy/samplers/kinds.h"
#include "deploy/samplers/shuffle.h"

namespace freshet::deploy {
namespace {

// Algorithm R (Vitter 1985). What happens to a row depends on the seed, its number and how many came before it, so that
// the reservoir can be rebuilt by observing the same rows again.
class ReservoirSampler final : public Sampler {
 public:
  ReservoirSampler(std::uint64_t most_rows, std::uint64_t seed) : most_rows_(most_rows), seed_(seed) {}

  std::string_view name() const override { return "reservoir"; }

  void Observe(std::uint64_t number, double) override {
    CHECK(number >= next_);
    next_ = number + 1;
    ++observed_;
    if (held_.size() < most_rows_) {
      held_.push_back(number);
      return;
    }
    base::Random random(seed_, "reservoir");
    random.Seek(number);
    const std::uint64_t place = random.Below(observed_);
    if (place < held_.size()) held_[place] = number;
  }

  void Draw(std::uint64_t end, std::uint64_t count, base::Random& random,
            std::vector<std::uint64_t>& numbers) override {
    count = std::min<std::uint64_t>(count, held_.size());
    numbers.clear();
    numbers.reserve(count);
    LazyShuffle shuffle(held_.size(), count);
    while (numbers.size() < count && shuffle.left() > 0) {
      const std::uint64_t number = held_[shuffle.Next(random)];
      if (number >= begin() && number < end) numbers.push_back(number);
    }
  }

  std::vector<std::uint64_t> Save() const override {
    std::vector<std::uint64_t> state = {most_rows_, next_, observed_};
    state.insert(state.end(), held_.begin(), held_.end());
    return state;
  }

  bool Load(std::span<const std::uint64_t> state) override {
    if (state.size() < 3 || state[0] != most_rows_) return false;
    const std::uint64_t next = state[1], observed = state[2];
    const auto held = state.subspan(3);
    if (observed > next || held.size() != std::min(most_rows_, observed)) return false;
    if (std::any_of(held.begin(), held.end(), [&](std::uint64_t number) { return number >= next; })) return false;
    next_ = next;
    observed_ = observed;
    held_.assign(held.begin(), held.end());
    return true;
  }

 private:
  const std::uint64_t most_rows_, seed_;
  std::uint64_t next_ = 0;      // the least number that may come
  std::uint64_t observed_ = 0;  // rows so far
  std::vector<std::uint64_t> held_;
};

}  // namespace

SamplerPtr MakeReservoirSampler(const SamplerOptions& options, std::uint64_t seed) {
  return std::make_unique<ReservoirSampler>(options.reservoir_rows, seed);
}

}  // namespace freshet::deploy
