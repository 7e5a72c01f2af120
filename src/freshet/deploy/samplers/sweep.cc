#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>

#include "base/check.h"
#include "deploy/samplers/kinds.h"
#include "deploy/samplers/shuffle.h"

// A sweep goes over stretches of the history, each in an order of its own that is computed and not kept: what has to be
// remembered is how far each has been taken. Rows that are new at a draw are a stretch of their own, so that they join
// the part not drawn yet; a draw takes from every stretch in proportion to what is left there. When nothing is left,
// the whole history is one stretch again, in another order.
namespace freshet::deploy {
namespace {

using std::uint64_t;

// Where i of 0 … size-1 goes in an order named by the key: a Feistel network over an even number of bits, repeated
// until it lands below size (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
uint64_t Permuted(uint64_t key, uint64_t size, uint64_t i) {
  const auto half = std::max<uint64_t>(1, (std::bit_width(size - 1) + 1) / 2);
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = i >> half, right = i & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      left ^= base::Hash64(key + (round << 56) + right) & mask;
      std::swap(left, right);
    }
    i = left << half | right;
  } while (i >= size);
  return i;
}

class SweepSampler final : public Sampler {
 public:
  explicit SweepSampler(uint64_t seed) : seed_(seed) {}

  std::string_view name() const override { return "sweep"; }

  void Draw(uint64_t end, uint64_t count, base::Random& random, std::vector<uint64_t>& numbers) override {
    numbers.clear();
    count = std::min(count, end - std::min(begin(), end));
    if (count == 0) return;
    Cover(end);
    std::unordered_set<uint64_t> before;  // drawn at the end of the last sweep
    while (numbers.size() < count) {
      if (Left() == 0) {
        StartSweep(end);
        before.insert(numbers.begin(), numbers.end());
      }
      Take(count - numbers.size(), random, before, numbers);
    }
    Shuffle(numbers, random);
  }

  std::vector<uint64_t> Save() const override {
    std::vector<uint64_t> state = {base::Hash64(seed_), sweep_};
    for (const Stretch& stretch : stretches_) state.insert(state.end(), {stretch.begin, stretch.end, stretch.taken});
    return state;
  }

  bool Load(std::span<const uint64_t> state) override {
    if (state.size() % 3 != 2 || state[0] != base::Hash64(seed_)) return false;
    if ((state.size() == 2) != (state[1] == 0)) return false;
    std::vector<Stretch> stretches;
    for (std::size_t i = 2; i < state.size(); i += 3) {
      const Stretch stretch{state[i], state[i + 1], state[i + 2]};
      if (stretch.begin >= stretch.end || stretch.taken > stretch.size()) return false;
      if (!stretches.empty() && stretch.begin != stretches.back().end) return false;
      stretches.push_back(stretch);
    }
    sweep_ = state[1];
    stretches_ = std::move(stretches);
    return true;
  }

 private:
  struct Stretch {
    uint64_t begin, end;
    uint64_t taken;  // so many of its order
    uint64_t size() const { return end - begin; }
    uint64_t left() const { return size() - taken; }
  };

  void StartSweep(uint64_t end) {
    ++sweep_;
    stretches_ = {{begin(), end, 0}};
  }

  // Makes the stretches reach to the end. When most of their rows are forgotten, it starts anew.
  void Cover(uint64_t end) {
    if (stretches_.empty() || end < stretches_.back().end) return StartSweep(end);
    const uint64_t first = stretches_.front().begin;
    if (begin() > first && begin() - first > (end - first) / 2) return StartSweep(end);
    Stretch& last = stretches_.back();
    if (end == last.end) return;
    if (last.taken == 0)
      last.end = end;
    else
      stretches_.push_back({last.end, end, 0});
  }

  uint64_t Left() const {
    uint64_t left = 0;
    for (const Stretch& stretch : stretches_) left += stretch.left();
    return left;
  }

  // Takes up to `most` rows of this sweep, from each stretch its share: the lengths of the shares, laid end to end, are
  // cut at whole numbers behind a random beginning.
  void Take(uint64_t most, base::Random& random, const std::unordered_set<uint64_t>& before,
            std::vector<uint64_t>& numbers) {
    const auto left = static_cast<double>(Left());
    const double share = static_cast<double>(most) < left ? static_cast<double>(most) / left : 1;
    double place = random.Uniform();
    for (Stretch& stretch : stretches_) {
      const double next = place + share * static_cast<double>(stretch.left());
      const auto count = static_cast<uint64_t>(std::floor(next) - std::floor(place));
      place = next;
      const uint64_t taken = std::min(share < 1 ? count : most, std::min(stretch.left(), most));
      most -= taken;
      TakeFrom(stretch, taken, before, numbers);
    }
  }

  void TakeFrom(Stretch& stretch, uint64_t count, const std::unordered_set<uint64_t>& before,
                std::vector<uint64_t>& numbers) {
    const uint64_t key = base::Hash64(base::Hash64(seed_ ^ sweep_ << 32) ^ stretch.begin);
    for (; count > 0; --count) {
      const uint64_t number = stretch.begin + Permuted(key, stretch.size(), stretch.taken++);
      if (number >= begin() && !before.contains(number)) numbers.push_back(number);
    }
  }

  const uint64_t seed_;
  uint64_t sweep_ = 0;
  std::vector<Stretch> stretches_;  // one after the other
};

}  // namespace

SamplerPtr MakeSweepSampler(const SamplerOptions&, uint64_t seed) { return std::make_unique<SweepSampler>(seed); }

}  // namespace freshet::deploy
