#include "deploy/replay/tune.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/option.h"
#include "base/random.h"
#include "data/standardise.h"
#include "deploy/replay/run.h"
#include "deploy/samplers/shuffle.h"

namespace freshet::deploy {
namespace {

constexpr int kMostEpochs = 20;
constexpr double kPulls[] = {0.2, 0.1, 0.05, 1e-2, 1e-3, 1e-4, 0};
constexpr double kAsGood = 1.002;    // a loss up to so many times the best is as good
constexpr double kNearly = 1.005;    // and so many times it is not worth more epochs
constexpr std::uint64_t kDraws = 3;  // of the rows that are held out at random

using Numbers = std::vector<std::uint64_t>;

// One model in training for a trial.
class Trial {
 public:
  static Result<Trial> Make(const ReplayOptions& options, const Course& course, const Numbers& rows) {
    Trial trial(options, course);
    trial.start_ = TRY(NewStart(options, *trial.memory_, course, rows, options.seed));
    return trial;
  }

  // Learns rows as the next epoch of training.
  Result<void> Epoch(Numbers rows, int epoch) {
    base::Random random(options_->seed, static_cast<std::uint64_t>(epoch));
    Shuffle(rows, random);
    TRY(runtime_.Run(*start_.model, *start_.state, *course_, {rows, 1, 1, options_->seed, options_->stop}));
    return {};
  }
  // The mean loss of rows met one by one, each learned afterwards.
  Result<double> LossOfArrivals(const Numbers& rows) {
    TRY(Read(rows));
    return TRY(start_.state->Learn(*start_.model, rows_, scores_)) / static_cast<double>(rows.size());
  }
  // The mean loss of rows that are only predicted.
  Result<double> LossOf(const Numbers& rows) {
    TRY(Read(rows));
    if (start_.state->moments.columns() > 0) data::ApplyMoments(start_.state->moments, rows_);
    const data::Batch batch = rows_.batch();
    scores_.resize(batch.rows * start_.model->scores());
    start_.state->Predict(*start_.model, batch, workspace_, scores_);
    return start_.model->LossOf(start_.state->parameters, batch, workspace_, scores_) / static_cast<double>(batch.rows);
  }

 private:
  Trial(const ReplayOptions& options, const Course& course)
      : options_(&options), course_(&course), memory_(std::make_unique<optimize::HeapMemory>()) {}
  Result<void> Read(const Numbers& rows) {
    rows_.width = course_->feed().rows.width;
    rows_.ClearRows();
    return course_->Read(rows, rows_);
  }

  const ReplayOptions* options_;
  const Course* course_;
  std::unique_ptr<optimize::HeapMemory> memory_;
  ReplayStart start_;
  LocalRuntime runtime_;
  data::Rows rows_;
  model::Workspace workspace_;
  std::vector<float> scores_;
};

// The initial part, divided.
struct Parts {
  Numbers train, held_out;  // for a training from scratch
  Numbers first, rest;      // for a life of arrivals
};

Parts Divide(const Course& course, bool tests, std::uint64_t seed) {
  Parts parts;
  const Numbers all = course.Trained(0, course.initial());
  base::Random random(seed, "held out");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool held = tests ? random.Uniform() < 0.2 : i >= all.size() - all.size() / 5;
    (held ? parts.held_out : parts.train).push_back(all[i]);
    (i < std::max<std::size_t>(1, all.size() / 10) ? parts.first : parts.rest).push_back(all[i]);
  }
  return parts;
}

class Tuner {
 public:
  Tuner(ReplayOptions options, const Course& course)
      : options_(std::move(options)), course_(course), tests_(options_.course.test_rows > 0) {
    for (std::uint64_t draw = 0; draw < (tests_ ? kDraws : 1); ++draw)
      parts_.push_back(Divide(course, tests_, options_.seed + draw));
  }

  Result<Tuning> Go() {
    for (const Parts& parts : parts_)
      if (parts.train.empty() || parts.held_out.empty() || parts.rest.empty())
        return Error{Code::kBadInput, "the initial part has too few rows to tune on"};
    double& rate = options_.deployment.optimizer.schedule.rate;
    double& l2 = options_.deployment.optimizer.l2;
    double best = TRY(LossNow());
    for (const double factor : {2.0, 0.5}) TRY(Walk(rate, factor, best));
    std::vector<double> losses;
    for (const double pull : kPulls) {
      l2 = pull;
      losses.push_back(TRY(LossNow()));
    }
    // The strongest pull of those as good as the best: who trains for ever must not learn by heart.
    best = *std::min_element(losses.begin(), losses.end());
    const auto chosen = std::find_if(losses.begin(), losses.end(), [&](double loss) { return loss <= kAsGood * best; });
    l2 = kPulls[chosen - losses.begin()];
    best = *chosen;
    for (const double factor : {2.0, 0.5}) TRY(Walk(rate, factor, best));
    Tuning tuning;
    tuning.rate = rate;
    tuning.l2 = l2;
    const std::vector<double> held_out = TRY(HeldOutLosses());
    const std::vector<double> lives = tests_ ? held_out : TRY(LifeLosses());
    tuning.retrain_epochs = static_cast<int>(std::min_element(held_out.begin(), held_out.end()) - held_out.begin()) + 1;
    tuning.loss = *std::min_element(lives.begin(), lives.end());
    while (lives[static_cast<std::size_t>(tuning.initial_epochs - 1)] > kNearly * tuning.loss) ++tuning.initial_epochs;
    return tuning;
  }

 private:
  // Multiplies the rate as long as that helps.
  Result<void> Walk(double& rate, double factor, double& best) {
    for (;;) {
      rate *= factor;
      const double loss = TRY(LossNow());
      if (loss < best) {
        best = loss;
      } else {
        rate /= factor;
        return {};
      }
    }
  }

  // Of the options as they are.
  Result<double> LossNow() {
    if (!tests_) return LifeLoss(2);
    const std::vector<double> losses = TRY(HeldOutLosses());
    return *std::min_element(losses.begin(), losses.end());
  }
  // After 1 … kMostEpochs epochs of training from scratch.
  Result<std::vector<double>> HeldOutLosses() {
    std::vector<double> losses(kMostEpochs, 0);
    for (const Parts& parts : parts_) {
      Trial trial = TRY(Trial::Make(options_, course_, parts.train));
      for (int epoch = 0; epoch < kMostEpochs; ++epoch) {
        double& loss = losses[static_cast<std::size_t>(epoch)];
        if (TRY(Finite(trial.Epoch(parts.train, epoch))))
          loss += TRY(trial.LossOf(parts.held_out)) / static_cast<double>(parts_.size());
        else
          loss = std::numeric_limits<double>::infinity();
      }
    }
    return losses;
  }
  Result<std::vector<double>> LifeLosses() {
    std::vector<double> losses;
    for (int epochs = 1; epochs <= kMostEpochs; ++epochs) losses.push_back(TRY(LifeLoss(epochs)));
    return losses;
  }
  // Of a life that begins with so many epochs over a tenth.
  Result<double> LifeLoss(int epochs) {
    const Parts& parts = parts_[0];
    Trial trial = TRY(Trial::Make(options_, course_, parts.first));
    double loss = std::numeric_limits<double>::infinity();
    for (int epoch = 0; epoch < epochs; ++epoch)
      if (!TRY(Finite(trial.Epoch(parts.first, epoch)))) return loss;
    if (const double met = TRY(trial.LossOfArrivals(parts.rest)); std::isfinite(met)) loss = met;
    return loss;
  }
  // False when training diverged, which is an answer and not a failure.
  static Result<bool> Finite(const Result<void>& trained) {
    if (trained.ok()) return true;
    if (trained.error().code == Code::kDiverged) return false;
    return trained.error();
  }

  ReplayOptions options_;
  const Course& course_;
  const bool tests_;
  std::vector<Parts> parts_;
};

}  // namespace

Result<Tuning> Tune(const ReplayOptions& options, const Feed& feed) {
  TRY(options.Validate());
  if (options.course.initial == 0)
    return Error{Code::kInvalid, Str(Option("tune"), " looks at the initial part of the rows, of which ",
                                     Option("initial"), " 0 leaves none")};
  Course::Options course_options = options.course;
  course_options.seed = options.seed;
  const Course course = TRY(Course::Make(feed, course_options));
  return Tuner(options, course).Go();
}

}  // namespace freshet::deploy
