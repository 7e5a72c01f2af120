#include "optimize/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "base/random.h"

namespace freshet::optimize {
namespace {

using Sharing = Optimizer::Sharing;

// One weight under a rule, in double: what the fast loops are compared with for ever.
struct Reference {
  double w = 0, a = 0, b = 0;

  void Step(const OptimizerOptions& o, double rate, std::uint64_t t, double x, double delta) {
    double g = x * delta, step = rate;
    if (o.kind == "ftrl") {
      const double before = std::sqrt(b);
      b += g * g;
      a += g - (std::sqrt(b) - before) / rate * w;
      w = std::abs(a) <= o.l1 ? 0 : -(a - std::copysign(o.l1, a)) / ((o.ftrl_beta + std::sqrt(b)) / rate + o.l2);
      return;
    }
    g += o.l2 * w;
    if (o.kind == "sgd") {
      w -= rate * g;
    } else if (o.kind == "momentum") {
      a = o.momentum * a + g;
      w -= rate * a;
    } else if (o.kind == "adagrad") {
      a += g * g;
      step = rate / (std::sqrt(a) + o.epsilon);
      w -= step * g;
    } else if (o.kind == "adam") {
      a = o.beta1 * a + (1 - o.beta1) * g;
      b = o.beta2 * b + (1 - o.beta2) * g * g;
      step = rate / (std::sqrt(b / (1 - std::pow(o.beta2, t))) + o.epsilon);
      w -= step * a / (1 - std::pow(o.beta1, t));
    } else {
      const double before = b;
      a += g * g;
      b = std::max(b, std::abs(x));
      if (before > 0) w *= before / b;
      step = b > 0 ? rate / (std::sqrt(a + 4 * b * b) * b) : 0;
      w -= step * g;
    }
    w = std::copysign(std::max(0.0, std::abs(w) - step * o.l1), w);
  }
};

// Where the optimizer's state lies.
enum class Layout { kApart, kBeside };

struct Bench {
  HeapMemory memory;
  std::unique_ptr<Optimizer> optimizer;
  std::optional<Parameters> parameters;

  Bench(const OptimizerOptions& options, std::uint64_t rows, std::uint64_t width, Layout layout) {
    optimizer = std::move(Optimizer::Make(options, memory)).value();
    const std::uint64_t beside = layout == Layout::kBeside ? width * static_cast<std::uint64_t>(optimizer->slots()) : 0;
    parameters = std::move(Parameters::Create({{"w", rows, width, 0, beside}}, memory)).value();
    EXPECT_TRUE(optimizer->Follow(*parameters).ok());
  }
};

OptimizerOptions OptionsOf(const std::string& kind, double l1, double l2) {
  OptimizerOptions options;
  options.kind = kind;
  options.schedule.rate = kind == "adam" ? 0.01 : 0.1;
  options.l1 = l1;
  options.l2 = l2;
  return options;
}

// A few distinct rows with values, as a sparse example names them.
struct Example {
  std::vector<std::uint32_t> rows;
  std::vector<float> values, deltas;

  Example(base::Random& random, std::uint64_t all_rows, std::uint64_t width) {
    std::vector<std::uint32_t> order(all_rows);
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = all_rows; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    rows.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(random.Below(all_rows + 1)));
    for (std::size_t i = 0; i < rows.size(); ++i)
      values.push_back(random.Below(8) == 0 ? 0.0f : static_cast<float>(random.Normal()));
    for (std::uint64_t k = 0; k < width; ++k) deltas.push_back(static_cast<float>(random.Normal()));
  }
};

class EveryRule : public testing::TestWithParam<std::string> {};

TEST_P(EveryRule, UpdatesSparseRowsAsTheReferenceDoes) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "rules");
    const std::uint64_t rows = 1 + random.Below(30), width = seed % 2 == 0 ? 1 : 1 + random.Below(4);
    const auto options = OptionsOf(GetParam(), seed % 3 == 0 ? 0.01 : 0, seed % 4 == 0 ? 0.1 : 0);
    Bench bench(options, rows, width, seed % 8 < 4 ? Layout::kBeside : Layout::kApart);
    std::vector<Reference> reference(rows * width);
    for (std::uint64_t t = 1; t <= 100; ++t) {
      const Example e(random, rows, width);
      bench.optimizer->BeginStep();
      bench.optimizer->UpdateRows(*bench.parameters, 0, e.rows, e.values, e.deltas, Sharing::kAlone);
      for (std::size_t i = 0; i < e.rows.size(); ++i)
        for (std::uint64_t k = 0; k < width; ++k)
          reference[e.rows[i] * width + k].Step(options, options.schedule.rate, t, e.values[i], e.deltas[k]);
    }
    const std::vector<float> weights = bench.parameters->Gather(0);
    for (std::size_t i = 0; i < weights.size(); ++i)
      ASSERT_NEAR(weights[i], reference[i].w, 2e-4 * std::max(1.0, std::abs(reference[i].w))) << i;
  }
}

// As at the end of a schedule that falls to nothing.
TEST_P(EveryRule, ARateThatFallsToNothingLeavesWeightsWhereTheyAre) {
  for (const double l1 : {0.0, 0.01}) {
    auto options = OptionsOf(GetParam(), 0, 0);
    options.l1 = GetParam() == "ftrl" ? l1 : 0;
    base::Random random(3, "falling");
    Bench bench(options, 20, 1, Layout::kBeside);
    const auto step = [&](double scale) {
      const Example e(random, 20, 1);
      bench.optimizer->SetScale(scale);
      bench.optimizer->BeginStep();
      bench.optimizer->UpdateRows(*bench.parameters, 0, e.rows, e.values, e.deltas, Sharing::kAlone);
    };
    for (int t = 0; t < 100; ++t) step(1);
    std::vector<float> before = bench.parameters->Gather(0);
    EXPECT_GT(*std::max_element(before.begin(), before.end()), 0.01f);
    for (const double scale : {1e-6, 0.0, 0.0}) {
      step(scale);
      const auto after = bench.parameters->Gather(0);
      for (std::size_t i = 0; i < before.size(); ++i) {
        ASSERT_TRUE(std::isfinite(after[i])) << i;
        if (GetParam() == "adaptive") continue;  // a larger value takes its weight down, whatever the rate
        ASSERT_NEAR(after[i], before[i], 2e-5) << i << " at " << scale;
      }
    }
    step(1);  // and moves on from there
    ASSERT_NE(bench.parameters->Gather(0), before);
  }
}

TEST_P(EveryRule, UpdatesADenseRowAsTheReferenceDoes) {
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "dense");
    const std::uint64_t width = 1 + random.Below(40);
    const auto options = OptionsOf(GetParam(), seed % 3 == 0 ? 0.01 : 0, seed % 4 == 0 ? 0.1 : 0);
    Bench bench(options, 2, width, seed % 2 == 0 ? Layout::kBeside : Layout::kApart);
    std::vector<Reference> reference(width);
    std::vector<float> values(width);
    for (std::uint64_t t = 1; t <= 100; ++t) {
      for (float& value : values) value = random.Below(8) == 0 ? 0.0f : static_cast<float>(random.Normal());
      const auto delta = static_cast<float>(random.Normal());
      bench.optimizer->BeginStep();
      bench.optimizer->UpdateScaled(*bench.parameters, 0, 1, values, delta, Sharing::kAlone);
      for (std::uint64_t j = 0; j < width; ++j) reference[j].Step(options, options.schedule.rate, t, values[j], delta);
    }
    for (std::uint64_t j = 0; j < width; ++j) {
      ASSERT_NEAR(bench.parameters->Row(0, 1)[j], reference[j].w, 2e-4 * std::max(1.0, std::abs(reference[j].w))) << j;
      ASSERT_EQ(bench.parameters->Row(0, 0)[j], 0.0f);
    }
  }
}

TEST_P(EveryRule, AppliesAGradientAsItAppliesTheRowsItCameFrom) {
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "apply");
    const std::uint64_t rows = 1 + random.Below(12), width = 1 + random.Below(3);
    const auto options = OptionsOf(GetParam(), 0, 0.01);
    const Layout layout = seed % 2 == 0 ? Layout::kBeside : Layout::kApart;
    Bench direct(options, rows, width, layout), applied(options, rows, width, layout);
    // Every feature has shown its size before: a gradient alone does not tell it.
    std::vector<std::uint32_t> all(rows);
    std::iota(all.begin(), all.end(), 0);
    const std::vector<float> large(rows, 10.0f), nothing(width, 0.0f);
    for (Bench* bench : {&direct, &applied}) {
      bench->optimizer->BeginStep();
      bench->optimizer->UpdateRows(*bench->parameters, 0, all, large, nothing, Sharing::kAlone);
    }
    for (int t = 0; t < 50; ++t) {
      const Example e(random, rows, width);
      Gradient gradient;
      gradient.blocks.emplace_back(width);
      for (std::size_t i = 0; i < e.rows.size(); ++i)
        for (std::uint64_t k = 0; k < width; ++k) gradient.blocks[0].Touch(e.rows[i])[k] += e.values[i] * e.deltas[k];
      direct.optimizer->BeginStep();
      direct.optimizer->UpdateRows(*direct.parameters, 0, e.rows, e.values, e.deltas, Sharing::kAlone);
      applied.optimizer->BeginStep();
      applied.optimizer->ObserveRows(*applied.parameters, 0, e.rows, e.values);
      applied.optimizer->Apply(*applied.parameters, gradient);
    }
    const auto want = direct.parameters->Gather(0), got = applied.parameters->Gather(0);
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 1e-4 * std::max(1.0f, std::abs(want[i])));
  }
}

TEST_P(EveryRule, GivesTheSameSharedAsAloneOnOneThread) {
  for (const Layout layout : {Layout::kApart, Layout::kBeside})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      SCOPED_TRACE(Str("seed ", seed));
      base::Random random(seed, "shared");
      const std::uint64_t rows = 1 + random.Below(30), width = 1 + seed % 3;
      const auto options = OptionsOf(GetParam(), seed % 2 == 0 ? 0 : 0.01, 0.01);
      Bench alone(options, rows, width, layout), shared(options, rows, width, layout);
      std::vector<float> dense(width);
      for (int t = 0; t < 50; ++t) {
        const Example e(random, rows, width);
        for (float& value : dense) value = static_cast<float>(random.Normal());
        for (Bench* bench : {&alone, &shared}) {
          const Sharing sharing = bench == &alone ? Sharing::kAlone : Sharing::kShared;
          bench->optimizer->BeginStep();
          bench->optimizer->UpdateRows(*bench->parameters, 0, e.rows, e.values, e.deltas, sharing);
          bench->optimizer->UpdateScaled(*bench->parameters, 0, 0, dense, 0.3f, sharing);
        }
      }
      const auto want = alone.parameters->Gather(0), got = shared.parameters->Gather(0);
      // The vector loops may contract a multiplication and an addition into one where the others do not.
      for (std::size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 1e-5 * std::max(1.0f, std::abs(want[i])));
    }
}

TEST_P(EveryRule, LetsTwoThreadsUpdateTheSameRowsAtOnce) {  // of interest to ThreadSanitizer above all
  for (const Layout layout : {Layout::kApart, Layout::kBeside}) {
    Bench bench(OptionsOf(GetParam(), 0, 0), 16, 1, layout);
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 2; ++t)
      threads.emplace_back([&bench, t, sibling = std::shared_ptr<Optimizer>(bench.optimizer->Sibling())] {
        base::Random random(t, "threads");
        for (int i = 0; i < 2000; ++i) {
          const Example e(random, 16, 1);
          sibling->BeginStep();
          sibling->UpdateRows(*bench.parameters, 0, e.rows, e.values, e.deltas, Sharing::kShared);
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(bench.parameters->AllFinite());
  }
}

TEST_P(EveryRule, GoesOnFromASavedStateAsIfItHadNeverStopped) {
  for (const Layout layout : {Layout::kApart, Layout::kBeside}) {
    auto options = OptionsOf(GetParam(), 0.001, 0.001);
    options.schedule.kind = "inverse";
    options.schedule.decay = 0.1;
    options.schedule.warmup_steps = 5;
    Bench whole(options, 9, 1, layout), first(options, 9, 1, layout), second(options, 9, 1, layout);
    base::Random random(3, "resume"), same(3, "resume");
    const auto train = [](Bench& bench, base::Random& examples, int steps) {
      for (int t = 0; t < steps; ++t) {
        const Example e(examples, 9, 1);
        bench.optimizer->BeginStep();
        bench.optimizer->UpdateRows(*bench.parameters, 0, e.rows, e.values, e.deltas, Sharing::kAlone);
      }
    };
    train(whole, random, 60);
    train(first, same, 25);
    second.parameters->CopyFrom(*first.parameters);
    if (layout == Layout::kBeside)
      second.parameters->ScatterBeside(0, first.parameters->GatherBeside(0));
    else if (first.optimizer->slots() > 0)
      second.optimizer->state().CopyFrom(first.optimizer->state());
    second.optimizer->SetStep(first.optimizer->step());
    train(second, same, 35);
    EXPECT_EQ(whole.parameters->Gather(0), second.parameters->Gather(0));
    EXPECT_EQ(whole.optimizer->step(), second.optimizer->step());
    EXPECT_EQ(whole.optimizer->rate(), second.optimizer->rate());
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, EveryRule, testing::ValuesIn(Optimizer::Kinds()),
                         [](const auto& param) { return param.param; });

// Predictions of a linear model that learns squared loss from rows whose features are multiplied by `scales`.
std::vector<float> Predictions(std::span<const float> scales, std::uint64_t seed) {
  const auto options = OptionsOf("adaptive", 0, 0);
  const std::uint64_t features = scales.size();
  Bench bench(options, features, 1, seed % 2 == 0 ? Layout::kBeside : Layout::kApart);
  base::Random random(seed, "scaling");
  std::vector<float> predictions, values(features);
  std::vector<std::uint32_t> rows(features);
  std::iota(rows.begin(), rows.end(), 0);
  for (int t = 0; t < 1000; ++t) {
    float label = 0, score = 0;
    for (std::size_t j = 0; j < features; ++j) {
      const auto x = static_cast<float>(random.Normal());
      label += x * static_cast<float>(j % 5);
      values[j] = x * scales[j];
      score += values[j] * *bench.parameters->Row(0, j);
    }
    predictions.push_back(score);
    const float delta = score - label;
    bench.optimizer->BeginStep();
    bench.optimizer->UpdateRows(*bench.parameters, 0, rows, values, {&delta, 1}, Sharing::kAlone);
  }
  return predictions;
}

TEST(Adaptive, DoesNotMindTheScaleOfAFeature) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "scales");
    std::vector<float> ones(10, 1.0f), powers(10), any(10);
    for (float& scale : powers) scale = std::ldexp(1.0f, static_cast<int>(random.Below(21)) - 10);
    for (float& scale : any) scale = static_cast<float>(std::pow(10.0, random.Uniform(-4, 4)));
    const auto plain = Predictions(ones, seed), by_powers = Predictions(powers, seed), by_any = Predictions(any, seed);
    ASSERT_EQ(plain, by_powers);  // multiplying by a power of two is exact, so all that follows is
    for (std::size_t t = 0; t < plain.size(); ++t)
      ASSERT_NEAR(by_any[t], plain[t], 1e-4 * std::max(1.0f, std::abs(plain[t]))) << "step " << t;
    double late_error = 0;
    for (std::size_t t = 900; t < 1000; ++t) late_error = std::max<double>(late_error, std::abs(plain[t]));
    EXPECT_GT(late_error, 1);  // it has learned something to be invariant about
  }
}

TEST(Adaptive, LeavesAWeightWhoseFeatureWasAlwaysZeroAsItIs) {
  Bench bench(OptionsOf("adaptive", 0, 0), 2, 1, Layout::kApart);
  const std::uint32_t rows[] = {0, 1};
  const float values[] = {0, 1}, delta = 2;
  bench.optimizer->BeginStep();
  bench.optimizer->UpdateRows(*bench.parameters, 0, rows, values, {&delta, 1}, Sharing::kAlone);
  EXPECT_EQ(*bench.parameters->Row(0, 0), 0.0f);
  EXPECT_LT(*bench.parameters->Row(0, 1), 0.0f);
}

TEST(Ftrl, GivesWeightsThatAreExactlyZeroUnderL1) {
  // Feature 0 matters, the others are noise: under l1 most of those end at zero, without it none.
  for (const double l1 : {0.0, 30.0}) {
    SCOPED_TRACE(Str("l1 ", l1));
    Bench bench(OptionsOf("ftrl", l1, 0), 50, 1, Layout::kBeside);
    base::Random random(4, "ftrl");
    std::vector<std::uint32_t> rows(50);
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<float> values(50);
    for (int t = 0; t < 2000; ++t) {
      float score = 0;
      for (std::size_t j = 0; j < 50; ++j) {
        values[j] = static_cast<float>(random.Normal());
        score += values[j] * *bench.parameters->Row(0, j);
      }
      const auto label = 2 * values[0] + 0.1f * static_cast<float>(random.Normal());
      const float delta = score - label;
      bench.optimizer->BeginStep();
      bench.optimizer->UpdateRows(*bench.parameters, 0, rows, values, {&delta, 1}, Sharing::kAlone);
    }
    const auto weights = bench.parameters->Gather(0);
    const auto zeros = std::count(weights.begin(), weights.end(), 0.0f);
    EXPECT_NEAR(weights[0], 2, 0.1);
    if (l1 == 0)
      EXPECT_EQ(zeros, 0);
    else
      EXPECT_GE(zeros, 40);
  }
}

TEST(Optimizer, RefusesWhatItDoesNotKnow) {
  HeapMemory memory;
  OptimizerOptions options;
  options.kind = "magic";
  EXPECT_EQ(Optimizer::Make(options, memory).error().code, Code::kInvalid);
  EXPECT_NE(Optimizer::Make(options, memory).error().text.find("adaptive, sgd"), std::string::npos);
  options = {};
  options.l1 = -1;
  EXPECT_FALSE(Optimizer::Make(options, memory).ok());
  options = {};
  options.schedule.kind = "often";
  EXPECT_FALSE(Optimizer::Make(options, memory).ok());
  options = {};
  options.schedule.rate = 0;
  EXPECT_FALSE(Optimizer::Make(options, memory).ok());
}

TEST(Optimizer, FollowsParametersThatGrowAndKeepsItsState) {
  HeapMemory memory;
  auto optimizer = std::move(Optimizer::Make(OptionsOf("adagrad", 0, 0), memory)).value();
  auto parameters = std::move(Parameters::Create({{"w", 1, 1, 1 << 20}}, memory)).value();
  ASSERT_TRUE(optimizer->Follow(parameters).ok());
  const float gradient = 3;
  optimizer->BeginStep();
  optimizer->UpdateRow(parameters, 0, 0, {&gradient, 1});
  const float before = *optimizer->state().Row(0, 0);
  ASSERT_TRUE(parameters.Grow(0, 100'000).ok());
  ASSERT_TRUE(optimizer->Follow(parameters).ok());
  EXPECT_EQ(before, 9.0f);
  EXPECT_EQ(*optimizer->state().Row(0, 0), before);
  EXPECT_EQ(optimizer->state().rows(0), 100'000u);
  EXPECT_EQ(*optimizer->state().Row(0, 99'999), 0.0f);
}

TEST_P(EveryRule, TakesStepsOfAnotherRateWhileItIsScaled) {
  OptimizerOptions options = OptionsOf(GetParam(), 0, 0);
  options.schedule.kind = "inverse";
  OptimizerOptions doubled = options;
  doubled.schedule.rate *= 2;
  Bench scaled(options, 1, 3, Layout::kApart), twice(doubled, 1, 3, Layout::kApart);
  scaled.optimizer->SetScale(2);
  EXPECT_EQ(scaled.optimizer->rate(), twice.optimizer->rate());
  base::Random random(1, "steps");
  std::vector<float> gradient(3);
  for (int i = 0; i < 20; ++i) {
    for (float& value : gradient) value = static_cast<float>(random.Normal());
    for (Bench* const bench : {&scaled, &twice}) {
      bench->optimizer->BeginStep();
      bench->optimizer->UpdateRow(*bench->parameters, 0, 0, gradient);
    }
  }
  EXPECT_EQ(scaled.parameters->Gather(0), twice.parameters->Gather(0));
  scaled.optimizer->SetScale(1);
  EXPECT_DOUBLE_EQ(scaled.optimizer->rate() * 2, twice.optimizer->rate());
  EXPECT_EQ(scaled.optimizer->step(), 20u);
}

TEST(Optimizer, AFadedSumMakesTheNextStepLargerAndOtherRulesDoNotMind) {
  for (const std::string& kind : Optimizer::Kinds())
    for (const Layout layout : {Layout::kApart, Layout::kBeside}) {
      SCOPED_TRACE(kind);
      const auto last_step = [&](double keep) {
        Bench bench(OptionsOf(kind, 0, 0), 3, 2, layout);
        const std::vector<float> gradient = {1, -1};
        for (int i = 0; i < 100; ++i) {
          bench.optimizer->BeginStep();
          bench.optimizer->UpdateRow(*bench.parameters, 0, 1, gradient);
        }
        bench.optimizer->Fade(*bench.parameters, keep);
        const float before = bench.parameters->Row(0, 1)[0];
        bench.optimizer->BeginStep();
        bench.optimizer->UpdateRow(*bench.parameters, 0, 1, gradient);
        return std::abs(bench.parameters->Row(0, 1)[0] - before);
      };
      const bool sums = kind == "adaptive" || kind == "adagrad";
      EXPECT_NEAR(last_step(0.01) / last_step(1), kind == "adaptive" ? 4.18 : sums ? 7.1 : 1, 0.05);
    }
}

}  // namespace
}  // namespace freshet::optimize
