#include "simulate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/check.h"
#include "base/cores.h"
#include "base/random.h"
#include "base/str.h"
#include "base/thread.h"
#include "fabric/codecs/codec.h"

namespace freshet::simulate {
namespace {

using base::Seconds;

constexpr int kLeastRounds = 3;

}  // namespace

Result<StepCost> MeasureBatch(const model::Model& model, const data::Batch& batch, int cores, const base::Clock& clock,
                              double seconds) {
  optimize::HeapMemory memory;
  optimize::Parameters parameters = TRY(model.NewParameters(memory));
  optimize::OptimizerOptions rule;
  rule.kind = model.config().dense ? "momentum" : "adagrad";
  rule.schedule.rate = 1e-6;
  const auto optimizer = TRY(optimize::Optimizer::Make(rule, memory));
  TRY(optimizer->Follow(parameters));
  optimize::Gradient gradient = TRY(model.NewGradient(memory));
  std::vector<float> scores(batch.rows * model.scores());

  model::Workspace workspace;
  workspace.threads = cores;
  TRY(model.Reserve(batch.rows, workspace));
  std::vector<StepCost> rounds;
  const auto begun = clock.Now();
  for (int round = -1; round < kLeastRounds || Seconds(clock.Now() - begun) < seconds; ++round) {
    StepCost cost;
    cost.finished.resize(model.Blocks().size(), 0);
    gradient.Clear();
    const auto start = clock.Now();
    workspace.finished = [&](std::size_t block) { cost.finished[block] = Seconds(clock.Now() - start); };
    (void)model.LossAndGradient(parameters, batch, workspace, gradient, scores);
    cost.compute = Seconds(clock.Now() - start);
    for (double& moment : cost.finished)
      if (moment == 0) moment = cost.compute;  // whoever says nothing is done at the end
    const auto computed = clock.Now();
    model.Apply(parameters, gradient, static_cast<double>(batch.rows), *optimizer, workspace);
    cost.apply = Seconds(clock.Now() - computed);
    if (round >= 0) rounds.push_back(std::move(cost));  // the first one makes things ready
  }
  const auto middle = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
  std::nth_element(rounds.begin(), middle, rounds.end(),
                   [](const StepCost& a, const StepCost& b) { return a.compute + a.apply < b.compute + b.apply; });
  return *middle;
}

namespace {

// One worker's measurements of one number of rows.
Result<StepCost> MeasureOne(const Subject& subject, std::size_t rows, int cores, base::Clock& clock, double seconds) {
  const DrawnRows drawn(*subject.model, rows, rows);
  return MeasureBatch(*subject.model, drawn.batch(), cores, clock, seconds);
}

// Seconds for a byte of `floats` by what `work` does to them.
template <class Work>
double ByteCost(const base::Clock& clock, double seconds, std::size_t floats, const Work& work) {
  work();
  int rounds = 0;
  const auto begun = clock.Now();
  while (rounds < kLeastRounds || Seconds(clock.Now() - begun) < seconds) {
    work();
    ++rounds;
  }
  return Seconds(clock.Now() - begun) / rounds / static_cast<double>(floats * sizeof(float));
}

}  // namespace

Result<std::vector<MeasuredCosts::Point>> MeasureModel(const Subject& subject, const std::vector<std::size_t>& rows,
                                                       const std::vector<int>& cores, int at_once, base::Clock& clock,
                                                       double seconds) {
  std::vector<MeasuredCosts::Point> points;
  for (const int count : cores)
    for (const std::size_t many : rows) {
      const auto workers =
          static_cast<std::size_t>(at_once > 0 ? at_once : std::max(1, base::AvailableCores() / count));
      std::vector<std::optional<Result<StepCost>>> costs(workers);
      {
        std::vector<base::Thread> threads;
        for (std::size_t w = 1; w < workers; ++w)
          threads.emplace_back(clock, [&, w] { costs[w] = MeasureOne(subject, many, count, clock, seconds); });
        costs[0] = MeasureOne(subject, many, count, clock, seconds);
        for (base::Thread& thread : threads) thread.Join();
      }
      for (const auto& cost : costs) TRY(*cost);
      points.push_back({many, count, costs[0]->value()});
    }
  return points;
}

std::map<std::string, double, std::less<>> MeasureCodecs(const base::Clock& clock, double seconds) {
  constexpr std::size_t kFloats = 1 << 20;
  base::Random random(1, "codecs");
  std::vector<float> values(kFloats), residual(kFloats), back(kFloats);
  for (float& value : values) value = static_cast<float>(random.Normal());
  std::map<std::string, double, std::less<>> work;
  for (const std::string& name : fabric::Codec::Names()) {
    const auto codec = fabric::Codec::Make(name).value();
    std::vector<std::byte> bytes;
    work[Str("encode ", name)] = ByteCost(clock, seconds, kFloats, [&] { codec->Encode(values, residual, bytes); });
    work[Str("decode ", name)] =
        ByteCost(clock, seconds, kFloats, [&] { CHECK(codec->Decode(bytes, back, fabric::Codec::Onto::kAdd).ok()); });
  }
  return work;
}

}  // namespace freshet::simulate
