// How fast a linear model learns row by row through Model::Update: a prediction and an update for every row.

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "inputs.h"
#include "model/model.h"
#include "optimize/optimizer.h"

namespace freshet::bench {
namespace {

using Sharing = optimize::Optimizer::Sharing;

// A logistic model with all it needs to learn.
struct Learner {
  optimize::HeapMemory memory;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<optimize::Optimizer> optimizer;
  std::optional<optimize::Parameters> parameters;
  model::Workspace workspace;

  static Result<std::unique_ptr<Learner>> Make(const std::string& optimizer, std::uint64_t dense_features) {
    auto learner = std::make_unique<Learner>();
    optimize::OptimizerOptions options;
    options.kind = optimizer;
    options.schedule.rate = 0.15;
    learner->optimizer = TRY(optimize::Optimizer::Make(options, learner->memory));
    model::ModelConfig config;
    config.dense = dense_features > 0;
    config.features = dense_features;
    learner->model = TRY(model::Model::Make(config));
    learner->parameters = TRY(learner->model->NewParameters(learner->memory, learner->optimizer->slots()));
    TRY(learner->optimizer->Follow(*learner->parameters));
    return learner;
  }
  // Makes room for the features of these rows.
  Result<void> Prepare(const data::Batch& batch) {
    TRY(model->Prepare(*parameters, batch));
    return optimizer->Follow(*parameters);
  }
  double Update(const data::Batch& batch, std::span<float> scores, Sharing sharing = Sharing::kAlone) {
    return model->Update(*parameters, batch, *optimizer, workspace, scores, sharing);
  }
};

double ErrorRate(const data::Batch& batch, std::span<const float> scores) {
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < batch.rows; ++r) wrong += (scores[r] > 0) != (batch.labels[r] > 0);
  return static_cast<double>(wrong) / static_cast<double>(batch.rows);
}

// Dense rows with labels by a hidden linear model, of which `noise` are flipped.
class DenseRows {
 public:
  static constexpr std::size_t kFeatures = 28;
  static constexpr double kNoise = 0.05;

  DenseRows(std::size_t rows, std::string_view stream) : values_(rows * kFeatures), labels_(rows) {
    base::Random hidden(1, "dense weights"), random(1, stream);
    double weights[kFeatures];
    for (double& weight : weights) weight = hidden.Normal();
    for (std::size_t r = 0; r < rows; ++r) {
      double score = 0;
      for (std::size_t j = 0; j < kFeatures; ++j) {
        const double value = random.Normal();
        values_[r * kFeatures + j] = static_cast<float>(value);
        score += weights[j] * value;
      }
      labels_[r] = (score > 0) != (random.Uniform() < kNoise) ? 1.0f : 0.0f;
    }
  }
  data::Batch batch() const {
    data::Batch view;
    view.rows = labels_.size();
    view.labels = labels_.data();
    view.dense = values_.data();
    view.width = kFeatures;
    return view;
  }

 private:
  std::vector<float> values_, labels_;
};

// Learns all rows, one call each, as a server would; returns the seconds it took.
double UpdateOneByOne(const base::Clock& clock, Learner& learner, const data::Batch& batch, std::span<float> scores) {
  const auto started = clock.Now();
  for (std::size_t r = 0; r < batch.rows; ++r) learner.Update(batch.Slice(r, r + 1), scores.subspan(r, 1));
  return base::Seconds(clock.Now() - started);
}

Result<void> CheckPredictions(Report& report, const data::Batch& batch) {
  const auto learner = TRY(Learner::Make("adaptive", DenseRows::kFeatures));
  double furthest = 0;
  for (std::size_t r = 0; r < batch.rows; ++r) {
    float predicted = 0, before_update = 0;
    learner->model->Predict(*learner->parameters, batch.Slice(r, r + 1), learner->workspace, {&predicted, 1});
    learner->Update(batch.Slice(r, r + 1), {&before_update, 1});
    furthest = std::max(furthest, static_cast<double>(std::abs(predicted - before_update)));
  }
  report.Check("Update returns what Predict would have said", furthest < 1e-4,
               Str("differs by ", furthest, " at most"));
  return {};
}

}  // namespace

Result<void> BenchUpdate(Context& context) {
  const DenseRows train(context.tiny ? 20'000 : 50'000, "dense train"), test(20'000, "dense test");
  const data::Batch batch = train.batch();
  std::vector<float> scores(batch.rows);
  for (const std::string kind : {"adaptive", "adagrad"}) {
    const auto learner = TRY(Learner::Make(kind, DenseRows::kFeatures));
    const auto seconds = TRY(Seconds(
        context, [&]() -> Result<double> { return UpdateOneByOne(context.env.clock, *learner, batch, scores); }));
    Figure figure{Str("single rows of 28 dense features, ", kind), RateOf(static_cast<double>(batch.rows), seconds),
                  "rows/s", 0};
    if (kind == "adaptive") figure.target = AtLeast(3e6);
    context.report.Add(figure);
    scores.resize(std::max(batch.rows, test.batch().rows));
    learner->model->Predict(*learner->parameters, test.batch(), learner->workspace, scores);
    const double error = ErrorRate(test.batch(), scores);
    context.report.Check(
        Str("it learned, ", kind), error < DenseRows::kNoise + 0.03,
        Str("test error ", Fixed(100 * error, 2), " %, ", Fixed(100 * DenseRows::kNoise, 0), " % is noise"));
  }
  return CheckPredictions(context.report, batch.Slice(0, 1'000));
}

Result<void> BenchSparseUpdates(Context& context) {
  data::GenerateOptions generate;
  generate.kind = "url-like";
  generate.rows = context.tiny ? 2'000 : 100'000;
  const data::Rows rows = TRY(ReadRows(context.env, TRY(GenerateFile(context, generate))));
  const data::Batch batch = rows.batch();
  const double millions = static_cast<double>(batch.entries()) / 1e6;
  std::vector<float> scores(batch.rows);
  const auto timed = [&](Learner& learner, Sharing sharing) {
    const auto started = context.env.clock.Now();
    learner.Update(batch, scores, sharing);
    return base::Seconds(context.env.clock.Now() - started);
  };

  double first_error = 0, second_error = 0;
  std::vector<double> first, second, shared;
  for (int i = 0; i <= context.repeats; ++i) {
    const auto learner = TRY(Learner::Make("adaptive", 0));
    TRY(learner->Prepare(batch));
    first.push_back(timed(*learner, Sharing::kAlone));
    first_error = ErrorRate(batch, scores);
    second.push_back(timed(*learner, Sharing::kAlone));
    second_error = ErrorRate(batch, scores);
    shared.push_back(timed(*learner, Sharing::kShared));
  }
  const auto add = [&](std::string what, std::vector<double> seconds) {
    seconds.erase(seconds.begin());  // it warmed up
    context.report.Add({std::move(what), RateOf(millions, std::move(seconds)), "million non-zeros/s", 1});
  };
  add("first pass, fresh memory", first);
  add("second pass", second);
  add("third pass, by relaxed atomics", shared);
  context.report.Check("it learned", second_error < first_error / 2,
                       Str("error ", Fixed(100 * first_error, 2), " % in the first pass, ",
                           Fixed(100 * second_error, 2), " % in the second"));
  return {};
}

}  // namespace freshet::bench
