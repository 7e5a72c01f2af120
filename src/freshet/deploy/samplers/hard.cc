#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "deploy/samplers/kinds.h"
#include "deploy/samplers/shuffle.h"

// Each row gets the key E / weight, with E exponentially distributed, and the rows with the least keys are held
// (Efraimidis and Spirakis 2006, with keys turned over). Given the least key that was turned away, t, a row of weight w
// is held with the chance 1 - e^(-wt). A draw divides the weights of the held rows by that chance and picks again by
// keys of its own, so that chances are in proportion to weights whether the reservoir is full or not.
//
// Weights are w = loss * (number + 1)^b. Only ratios of weights matter, and those of two rows never change, so that
// what is held stays right as the history grows. Everything is kept as logarithms: a steep b leaves the range of
// numbers.
namespace freshet::deploy {
namespace {

using std::uint64_t;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Held {
  double log_key, log_weight;
  uint64_t number;
};
bool LessKey(const Held& a, const Held& b) { return a.log_key < b.log_key; }

// The logarithm of an exponentially distributed number, never infinite.
double LogExponential(base::Random& random) { return std::log(1e-300 - std::log1p(-random.Uniform())); }

// b: the weight of the row half_life of the history ago is half that of the newest, (1 - half_life)^b = 1/2.
double PowerOf(double half_life) { return half_life < 1 ? std::log(0.5) / std::log1p(-half_life) : 0; }

class HardSampler final : public Sampler {
 public:
  HardSampler(const SamplerOptions& options, uint64_t seed)
      : most_rows_(options.reservoir_rows), seed_(seed), power_(PowerOf(options.half_life)) {}

  std::string_view name() const override { return "hard"; }

  void Observe(uint64_t number, double loss) override {
    CHECK(number >= next_);
    next_ = number + 1;
    if (!(std::isfinite(loss) && loss > 0)) return;
    base::Random random(seed_, "hard");
    random.Seek(number);
    const double log_weight = std::log(loss) + power_ * std::log(static_cast<double>(number) + 1);
    Keep({LogExponential(random) - log_weight, log_weight, number});
  }

  void Draw(uint64_t end, uint64_t count, base::Random& random, std::vector<uint64_t>& numbers) override {
    std::vector<std::pair<double, uint64_t>> keyed;
    keyed.reserve(held_.size());
    for (const Held& row : held_)
      if (row.number >= begin() && row.number < end)
        keyed.emplace_back(LogExponential(random) - row.log_weight + LogChanceOf(row), row.number);
    count = std::min<uint64_t>(count, keyed.size());
    const auto last = keyed.begin() + static_cast<std::ptrdiff_t>(count);
    std::nth_element(keyed.begin(), last, keyed.end());
    numbers.clear();
    numbers.reserve(count);
    for (auto row = keyed.begin(); row != last; ++row) numbers.push_back(row->second);
    Shuffle(numbers, random);
  }

  std::vector<uint64_t> Save() const override {
    std::vector<uint64_t> state = {most_rows_, std::bit_cast<uint64_t>(power_), next_,
                                   std::bit_cast<uint64_t>(log_turned_away_)};
    for (const Held& row : held_)
      state.insert(state.end(),
                   {std::bit_cast<uint64_t>(row.log_key), std::bit_cast<uint64_t>(row.log_weight), row.number});
    return state;
  }

  bool Load(std::span<const uint64_t> state) override {
    if (state.size() < 4 || state.size() % 3 != 1) return false;
    if (state[0] != most_rows_ || state[1] != std::bit_cast<uint64_t>(power_)) return false;
    const auto log_turned_away = std::bit_cast<double>(state[3]);
    std::vector<Held> held;
    for (std::size_t i = 4; i < state.size(); i += 3) {
      held.push_back({std::bit_cast<double>(state[i]), std::bit_cast<double>(state[i + 1]), state[i + 2]});
      if (!std::isfinite(held.back().log_key) || !std::isfinite(held.back().log_weight)) return false;
      if (held.back().number >= state[2]) return false;
    }
    if (std::isnan(log_turned_away) || held.size() > most_rows_) return false;
    if (!std::is_heap(held.begin(), held.end(), LessKey)) return false;
    next_ = state[2];
    log_turned_away_ = log_turned_away;
    held_ = std::move(held);
    return true;
  }

 private:
  void Keep(const Held& row) {
    if (held_.size() == most_rows_) {
      const bool leaves = !LessKey(row, held_.front());
      log_turned_away_ = std::min(log_turned_away_, leaves ? row.log_key : held_.front().log_key);
      if (leaves) return;
      std::pop_heap(held_.begin(), held_.end(), LessKey);
      held_.pop_back();
    }
    held_.push_back(row);
    std::push_heap(held_.begin(), held_.end(), LessKey);
  }

  // ln(1 - e^(-wt)) for the row to be held.
  double LogChanceOf(const Held& row) const {
    const double log_wt = row.log_weight + log_turned_away_;
    return log_wt < -20 ? log_wt : std::log(-std::expm1(-std::exp(log_wt)));
  }

  const uint64_t most_rows_, seed_;
  const double power_;
  uint64_t next_ = 0;                   // the least number that may come
  double log_turned_away_ = kInfinity;  // the least key that is not held
  std::vector<Held> held_;              // a heap with the greatest key in front
};

}  // namespace

SamplerPtr MakeHardSampler(const SamplerOptions& options, uint64_t seed) {
  return std::make_unique<HardSampler>(options, seed);
}

}  // namespace freshet::deploy
