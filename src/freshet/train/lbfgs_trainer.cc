#include "train/lbfgs_trainer.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/option.h"
#include "data/cache.h"
#include "data/drive.h"
#include "data/standardise.h"
#include "model/slices.h"
#include "optimize/lbfgs.h"
#include "train/checkpoint_files.h"

namespace freshet::train {
namespace {

using strategy::StepTimes;

void Scatter(std::span<const float> flat, optimize::Parameters& parameters) {
  for (std::size_t b = 0; b < parameters.blocks(); ++b) {
    const auto values = parameters.Values(b);
    std::copy_n(flat.begin(), values.size(), values.begin());
    flat = flat.subspan(values.size());
  }
}

std::vector<float> Gather(const optimize::Parameters& parameters) {
  std::vector<float> flat;
  for (std::size_t b = 0; b < parameters.blocks(); ++b)
    flat.insert(flat.end(), parameters.Values(b).begin(), parameters.Values(b).end());
  return flat;
}

// The gradient times `scale`, as long as the parameters.
void Flatten(const optimize::Gradient& gradient, const optimize::Parameters& parameters, float scale,
             std::span<float> flat) {
  std::fill(flat.begin(), flat.end(), 0.0f);
  std::size_t offset = 0;
  for (std::size_t b = 0; b < parameters.blocks(); ++b) {
    const auto& block = gradient.blocks[b];
    if (!block.empty())
      for (std::size_t i = 0; i < block.memory().size(); ++i) flat[offset + i] = block.memory()[i] * scale;
    for (std::size_t i = 0; i < block.touched().size(); ++i) {
      const auto values = block.Values(i);
      float* const to = flat.data() + offset + block.touched()[i] * block.width();
      for (std::size_t k = 0; k < values.size(); ++k) to[k] = values[k] * scale;
    }
    offset += parameters.Values(b).size();
  }
}

// One run: its rows, its objective, and how it does.
class LbfgsTrainer {
 public:
  LbfgsTrainer(const base::Env& env, const TrainOptions& options, const model::Model& model,
               optimize::Parameters& parameters, data::Description& description, double l2,
               strategy::FullBatch& together)
      : env_(env),
        options_(options),
        model_(model),
        parameters_(parameters),
        description_(description),
        l2_(l2),
        unit_(description.target.deviation() * description.target.deviation()),
        together_(together),
        started_(env.clock.Now()),
        told_(started_) {}

  Result<Report> Run(data::RowSource& source) {
    TRY(Keep(source));
    gradient_ = TRY(model_.NewGradient(memory_));
    report_.progressive = SumsFor(model_, description_);
    vector_ = Gather(parameters_);
    const auto start = together_.Mine(vector_);
    optimize::Lbfgs lbfgs(
        {start.begin(), start.end()}, {}, [this](auto at, auto gradient) { return Objective(at, gradient); },
        [this](auto parts) { return together_.SumOverRanges(parts); });
    for (bool more = true; more && iteration_ < options_.epochs; Show()) {
      const base::Span span(options_.trace, "step", base::Trace::kTraining,
                            base::Trace::Details{.step = static_cast<std::uint64_t>(iteration_)});
      more = TRY(Step(lbfgs));
      value_ = lbfgs.value() * unit_;
      if (iteration_ == 0) report_.progressive = report_.last_epoch;
      report_.epochs = ++iteration_;
    }
    TRY(Place(lbfgs.point()));
    report_.seconds = base::Seconds(env_.clock.Now() - started_);
    return std::move(report_);
  }

 private:
  bool stopping() const { return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed); }
  static Error Stopped() { return {Code::kStopped, "stopped"}; }
  Result<void> GoOn() const { return stopping() ? Stopped() : Result<void>(); }

  // Did somebody want what has just been read or computed to stop? Other errors are errors.
  Result<bool> WasStopped(const Result<void>& done) const {
    if (!done.ok() && done.error().code != Code::kStopped) return done.error();
    return !done.ok() || stopping();
  }

  // Reads all rows, keeps those of this member's share (where they cannot be read as well again), and gives all that any
  // member has met a place in the model.
  Result<void> Keep(data::RowSource& source) {
    if (together_.has_all() && !source.worth_keeping()) {
      rows_ = &source;
      return Meet(source);
    }
    const bool kept = !options_.cache_path.empty();
    const std::string path =
        PathOfRank(kept ? options_.cache_path : Str(options_.scratch_directory, "/freshet.", getpid(), ".lbfgs.rows"),
                   together_.rank());
    auto writer = TRY(data::CacheWriter::Create(env_.files, path));
    std::uint64_t read = 0;
    data::Rows share;
    const auto begun = env_.clock.Now();
    const bool stopped =
        TRY(WasStopped(data::DriveInOrder(env_.executor, source, [&](data::Rows& rows) -> Result<void> {
          TRY(GoOn());
          const data::Batch batch = rows.batch();
          share.ClearRows();
          share.width = rows.width;
          for (std::size_t r = 0; r < batch.rows && !together_.has_all(); ++r)
            if (together_.Has(read + r)) share.AppendRow(batch, r);
          read += batch.rows;
          TRY(writer->Append(together_.has_all() ? rows : share));
          if (description_.standardise && options_.learn_moments) data::Standardise(description_.moments, rows);
          return model_.Prepare(parameters_, batch);
        })));
    together_.times().read += base::Seconds(env_.clock.Now() - begun);
    std::vector<double> met = {stopped ? 1.0 : 0.0};
    for (std::size_t b = 0; b < parameters_.blocks(); ++b) met.push_back(static_cast<double>(parameters_.rows(b)));
    met = TRY(together_.Largest(met));
    if (met[0] > 0) return Stopped();
    TRY(model_.MakeRoom(parameters_, std::vector<std::uint64_t>(met.begin() + 1, met.end())));
    TRY(writer->Close(description_));
    cache_ = TRY(data::CacheReader::Open(env_.files, path));
    rows_ = cache_.get();
    if (!kept) TRY(env_.files.Remove(path));  // stays open, and goes with us
    return {};
  }

  // The same of rows that need not be kept.
  Result<void> Meet(data::RowSource& source) {
    const auto begun = env_.clock.Now();
    const auto met = data::DriveInOrder(env_.executor, source, [&](data::Rows& rows) -> Result<void> {
      TRY(GoOn());
      if (description_.standardise && options_.learn_moments) data::Standardise(description_.moments, rows);
      return model_.Prepare(parameters_, rows.batch());
    });
    together_.times().read += base::Seconds(env_.clock.Now() - begun);
    if (TRY(WasStopped(met))) return Stopped();
    return {};
  }

  Result<bool> Step(optimize::Lbfgs& lbfgs) {
    StepTimes& times = together_.times();
    const double others = times.total();
    const auto begun = env_.clock.Now();
    const bool more = TRY(lbfgs.Step());
    times.apply += std::max(base::Seconds(env_.clock.Now() - begun) - (times.total() - others), 0.0);
    ++times.steps;
    return more;
  }

  // Makes a point, of which this member has what it holds, the model's.
  Result<void> Place(std::span<const float> at) {
    std::copy(at.begin(), at.end(), together_.Mine(vector_).begin());
    TRY(together_.Complete(vector_));
    Scatter(vector_, parameters_);
    return {};
  }

  Result<double> Objective(std::span<const float> at, std::span<float> out) {
    TRY(Place(at));
    Evaluation sums = SumsFor(model_, description_);
    const bool stopped = TRY(WasStopped(Pass(sums)));
    together_.times().rows += sums.rows();
    std::vector<double> numbers = sums.Save();
    numbers.push_back(stopped ? 1.0 : 0.0);
    numbers = TRY(together_.Sum(numbers));
    if (numbers.back() > 0) return Stopped();
    numbers.pop_back();
    CHECK(sums.Load(numbers));
    if (sums.weight() == 0) return Error{Code::kBadInput, "no rows to learn from"};
    report_.last_epoch = sums;
    report_.rows += sums.rows();
    Flatten(gradient_, parameters_, static_cast<float>(1 / sums.weight()), vector_);
    TRY(together_.AddUp(vector_));
    const auto mine = together_.Mine(vector_);
    std::copy(mine.begin(), mine.end(), out.begin());
    const double here = sums.loss() / unit_ + TRY(Penalty(at, out));
    if (!std::isfinite(here))
      return Error{Code::kDiverged, "the loss is not finite; check the data for huge values, or standardise it"};
    return here;
  }

  // Of the whole point; its gradient is added to `out`.
  Result<double> Penalty(std::span<const float> at, std::span<float> out) {
    if (l2_ <= 0) return 0.0;
    double penalty = 0;
    for (std::size_t j = 0; j < at.size(); ++j) {
      out[j] += static_cast<float>(l2_) * at[j];
      penalty += 0.5 * l2_ * at[j] * at[j];
    }
    TRY(together_.SumOverRanges({&penalty, 1}));
    return penalty;
  }

  // The summed gradient of this member's rows.
  Result<void> Pass(Evaluation& sums) {
    TRY(rows_->Seek({}));
    gradient_.Clear();
    const base::Span span(options_.trace, "compute", base::Trace::kTraining);
    const auto begun = env_.clock.Now();
    base::Clock::Duration computing{};
    const auto passed = data::DriveInOrder(env_.executor, *rows_, [&](data::Rows& rows) -> Result<void> {
      const auto ready = env_.clock.Now();
      data::Standardise(description_, rows);
      data::ScaleLabels(description_, rows);
      const data::Batch batch = rows.batch();
      for (std::size_t begin = 0, end = 0; begin < batch.rows; begin = end) {
        TRY(GoOn());
        end = model::SliceEnd(model_, batch, begin, 1);
        const data::Batch slice = batch.Slice(begin, end);
        scores_.resize(slice.rows * model_.scores());
        sums.Add(slice, scores_, model_.LossAndGradient(parameters_, slice, workspace_, gradient_, scores_));
      }
      const auto done = env_.clock.Now();
      computing += done - ready;
      if (base::Seconds(done - told_) >= Watch::kTellSeconds) Show();  // a pass over all rows may take long
      return {};
    });
    together_.times().compute += base::Seconds(computing);
    together_.times().read += base::Seconds(env_.clock.Now() - begun - computing);
    return passed;
  }

  void Show() {
    told_ = env_.clock.Now();
    if (!options_.progress) return;
    Progress progress;
    progress.epoch = std::min(iteration_, options_.epochs - 1);
    progress.epochs = options_.epochs;
    progress.rows = report_.rows;
    progress.mean_loss = value_;
    progress.weight = iteration_;
    progress.total_loss = value_ * progress.weight;
    progress.fraction = static_cast<double>(iteration_) / options_.epochs;
    progress.seconds = base::Seconds(told_ - started_);
    options_.progress(progress);
  }

  const base::Env& env_;
  const TrainOptions& options_;
  const model::Model& model_;
  optimize::Parameters& parameters_;
  data::Description& description_;
  const double l2_;
  // The objective is of labels as they are learned, so that neither its slopes nor what l2 means depend on their units.
  const double unit_;
  strategy::FullBatch& together_;
  const base::Clock::Duration started_;
  base::Clock::Duration told_;

  std::unique_ptr<data::CacheReader> cache_;
  data::RowSource* rows_ = nullptr;  // this member's share: the cache, or what is as good
  optimize::HeapMemory memory_;      // of the gradient, which it outlives
  optimize::Gradient gradient_;
  model::Workspace workspace_;
  std::vector<float> scores_;
  std::vector<float> vector_;  // the point while it is placed, then the gradient
  int iteration_ = 0;
  double value_ = 0;  // of the objective, when the last iteration ended
  Report report_;
};

}  // namespace

Result<Report> TrainByLbfgs(const base::Env& env, const TrainOptions& options, const model::Model& model,
                            optimize::Parameters& parameters, data::Description& description, data::RowSource& source,
                            double l2, strategy::FullBatch& together) {
  if (options.hold_out.any() || options.batch > 1 || !options.checkpoint_path.empty())
    return Error{Code::kInvalid, Str(Option("optimizer"), " lbfgs goes with neither ", Option("holdout"), ", ",
                                     Option("batch"), " nor ", Option("checkpoint"))};
  return LbfgsTrainer(env, options, model, parameters, description, l2, together).Run(source);
}

}  // namespace freshet::train
