#include "tiny.h"

#include <cmath>

#include "alone.h"
#include "base/clock.h"
#include "peak.h"
#include "trained.h"

namespace freshet::bench {
namespace {

Error Wrong(std::string text) { return {Code::kInvalid, std::move(text)}; }

Result<void> CheckLearning(const Trained::Options& options) {
  const auto trained = TRY(Trained::Make(options));
  const double first = trained->Step();
  double last = first;
  for (int step = 0; step < 20; ++step) last = trained->Step();
  if (!(std::isfinite(last) && last < first))
    return Wrong(Str(options.network, ", batch ", options.rows, ": the loss went from ", first, " to ", last));
  return {};
}

// The first row of a batch of 32 has the scores it has alone.
Result<void> CheckPredictions(const std::string& network) {
  const auto one = TRY(Trained::Make({.network = network, .rows = 1, .threads = 1}));
  const auto many = TRY(Trained::Make({.network = network, .rows = 32, .threads = 1}));
  const std::span<const float> scores = one->Predict(), others = many->Predict();
  for (std::size_t k = 0; k < scores.size(); ++k)
    if (!(std::fabs(scores[k] - others[k]) <= 1e-4f * (1 + std::fabs(scores[k]))))
      return Wrong(Str(network, ": a row scores ", scores[k], " alone and ", others[k], " among others"));
  return {};
}

Result<void> CheckAlone(const std::string& network, std::size_t expected_layers) {
  base::SystemClock clock;
  const auto trained = TRY(Trained::Make({.network = network, .rows = 4, .threads = 1}));
  const auto alone = TRY(Alone::Make(trained->graph(), 4, 1));
  alone->Run(clock);
  if (alone->layers().size() != expected_layers || !alone->Plausible())
    return Wrong(Str(network, ": expected ", expected_layers, " layers with plausible results alone, found ",
                     alone->layers().size()));
  return {};
}

}  // namespace

Result<void> CheckTiny() {
  TRY(CheckLearning({.network = "mlp", .rows = 1, .threads = 1, .optimizer = "sgd", .rate = 0.01}));
  TRY(CheckLearning({.network = "mlp", .rows = 32, .threads = 1, .optimizer = "sgd", .rate = 0.05}));
  TRY(CheckLearning({.network = "lenet5", .rows = 32, .threads = 1, .rate = 0.002}));
  TRY(CheckPredictions("mlp"));
  TRY(CheckPredictions("cifar-quick"));
  TRY(CheckAlone("cifar-quick", 5));
  TRY(CheckAlone("resnet20", 22));
  base::SystemClock clock;
  if (!(PeakFlops(2, clock) > 0)) return Wrong("the multiply-adds that measure the machine gave a wrong sum");
  return {};
}

}  // namespace freshet::bench
