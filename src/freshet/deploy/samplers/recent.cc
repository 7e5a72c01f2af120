#include <algorithm>
#include <cmath>
#include <numbers>

#include "deploy/samplers/kinds.h"
#include "deploy/samplers/shuffle.h"

// Ages count from 0 for the newest row. A row of age a is drawn with the chance c * 2^(-a / H), where H is half_life *
// end rows and c is such that the chances add up to `count`; where that is above 1, the row is taken for certain and c
// belongs to the others.
//
// The chances of the others, laid end to end, make a line whose length is the number of rows still to draw. One point
// is drawn in every unit of it, and the row it falls into is taken (Deville's systematic sampling, see Chauvet 2012). A
// row that lies across the end of a unit could be hit from both sides: the second draw is made under the condition that
// it is not, in the one way that leaves every chance as it was. So each row has exactly its chance, no row comes twice,
// and nothing has to be tried again however steep the law is.
namespace freshet::deploy {
namespace {

using std::uint64_t;

// The line of chances for rows whose weight shrinks by the factor e^-decay with each row of age.
class Line {
 public:
  Line(double decay, double rows, double length)
      : decay_(decay), scale_(length / -std::expm1(-decay * rows)), rows_(rows) {}

  double Begin(double age) const { return scale_ * -std::expm1(-decay_ * age); }
  double AgeAt(double point) const {
    const double age = std::floor(-std::log1p(std::max(-point / scale_, -1.0)) / decay_);
    return std::min(age, rows_ - 1);
  }

 private:
  const double decay_, scale_, rows_;
};

class RecentSampler final : public Sampler {
 public:
  explicit RecentSampler(double half_life) : half_life_(half_life) {}

  std::string_view name() const override { return "recent"; }
  void Draw(uint64_t end, uint64_t count, base::Random& random, std::vector<uint64_t>& numbers) override {
    numbers.clear();
    const uint64_t rows = end - std::min(begin(), end);
    count = std::min(count, rows);
    if (count == 0) return;
    numbers.reserve(count);
    const double decay = std::numbers::ln2 / (half_life_ * static_cast<double>(end));
    const uint64_t certain = CertainRows(rows, count, decay);
    for (uint64_t age = 0; age < certain; ++age) numbers.push_back(rows - 1 - age);
    if (certain < count) DrawOlder(rows - certain, count - certain, decay, random, numbers);
    for (uint64_t& number : numbers) number += begin();
    Shuffle(numbers, random);
  }

 private:
  // The fewest rows to take for certain so that no other has a chance above 1.
  static uint64_t CertainRows(uint64_t all, uint64_t count, double decay) {
    uint64_t low = 0, high = count;
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      const auto others = static_cast<double>(count - middle), rows = static_cast<double>(all - middle);
      if (others * -std::expm1(-decay) <= -std::expm1(-decay * rows))
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }

  // Draws `count` of the rows 0 … rows - 1.
  static void DrawOlder(uint64_t rows, uint64_t count, double decay, base::Random& random,
                        std::vector<uint64_t>& numbers) {
    const Line line(decay, static_cast<double>(rows), static_cast<double>(count));
    double last = -1;
    for (uint64_t unit = 0; unit < count; ++unit) {
      const auto begin = static_cast<double>(unit);
      const double across = line.AgeAt(begin);  // the row that lies across the beginning of the unit
      const double before = unit == 0 ? 0 : std::clamp(begin - line.Begin(across), 0.0, 1.0);
      const double after = unit == 0 ? 0 : std::clamp(line.Begin(across + 1) - begin, 0.0, 1 - before);
      const double again = across == last || before >= 1 ? 0 : after / (1 - before);
      const double drawn = random.Uniform();
      double age = across;
      if (drawn >= again) age = line.AgeAt(begin + after + (1 - after) * (drawn - again) / (1 - again));
      // Rounding at the borders of rows must neither repeat a row nor leave too few for the units to come.
      last = std::clamp(age, last + 1, static_cast<double>(rows - (count - unit)));
      numbers.push_back(rows - 1 - static_cast<uint64_t>(last));
    }
  }

  const double half_life_;
};

}  // namespace

SamplerPtr MakeRecentSampler(const SamplerOptions& options, uint64_t) {
  return std::make_unique<RecentSampler>(options.half_life);
}

}  // namespace freshet::deploy
