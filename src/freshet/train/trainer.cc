#include "train/trainer.h"

#include <unistd.h>

#include <cmath>
#include <utility>

#include "base/random.h"
#include "data/augment.h"
#include "data/drive.h"
#include "train/trainer_state.h"

namespace freshet::train {
namespace {

using Sharing = optimize::Optimizer::Sharing;

// The numeric columns of a row, which come first among its features.
float* NumbersOf(data::Rows& rows, std::size_t r) {
  return rows.width > 0 ? &rows.dense[r * rows.width] : &rows.values[rows.offsets[r]];
}

}  // namespace

data::Labels::Kind TaskOf(const model::Model& model, const data::Description& description) {
  return model.Supervised() ? description.labels.kind : data::Labels::Kind::kAuto;
}

bool HoldOut::Holds(const data::Batch& batch, std::size_t row) const {
  if (after_time > 0) return batch.times != nullptr && batch.times[row] >= after_time;
  if (fraction <= 0) return false;
  const std::uint64_t sample = batch.samples == nullptr ? row : batch.samples[row];
  return static_cast<double>(base::Hash64(sample ^ base::Hash64(seed)) >> 11) * 0x1p-53 < fraction;
}

void Standardise(data::Moments& moments, data::Rows& rows) {
  for (std::size_t r = 0; r < rows.size(); ++r) {
    float* const numbers = NumbersOf(rows, r);
    moments.Observe(numbers);
    moments.Apply(numbers);
  }
}

void Standardise(const data::Description& description, data::Rows& rows) {
  if (description.standardise) ApplyMoments(description.moments, rows);
  if (!description.view.any()) return;
  auto shown = data::Augment::Make(description, {});
  CHECK(shown.ok());  // a description that was loaded or made fits itself
  shown.value().ForPrediction(rows);
}

Result<void> DriveFor(const base::Env& env, const model::Model& model, data::RowSource& source,
                      const data::BlockWork& work, std::size_t prefetch, data::PrefetchStats* stats) {
  if (model.config().kind != "network") return data::DriveInOrder(env.executor, source, work);
  return data::DrivePrefetched(env.executor, env.clock, source, prefetch, work, stats);
}

void ApplyMoments(const data::Moments& moments, data::Rows& rows) {
  for (std::size_t r = 0; r < rows.size(); ++r) moments.Apply(NumbersOf(rows, r));
}

Trainer::Trainer(const base::Env& env, TrainOptions options, const model::Model& model,
                 optimize::Parameters& parameters, optimize::Optimizer& optimizer, data::Description& description)
    : env_(env),
      options_(std::move(options)),
      model_(model),
      parameters_(parameters),
      optimizer_(optimizer),
      description_(description),
      state_(std::make_unique<State>(model, description, options_)) {}

Trainer::~Trainer() {
  if (options_.cache_path.empty() && options_.checkpoint_path.empty() && !state_->cache_path.empty() &&
      env_.files.Exists(state_->cache_path))
    (void)env_.files.Remove(state_->cache_path);
}

bool Trainer::Stratified() const {
  return model_.config().kind == "factorization" && options_.batch == 1 && options_.strategy == nullptr;
}

bool Trainer::MayShare() const {
  return options_.strategy == nullptr && !options_.deterministic && env_.executor.width() > 1 &&
         model_.config().kind == "linear" && !model_.config().dense && options_.batch == 1 && !options_.shuffle &&
         !options_.hold_out.any() && options_.checkpoint_path.empty();
}

Error Trainer::Diverged() const {
  return {Code::kDiverged,
          Str("the loss is no longer finite after ", state_->seen.rows(), " rows of epoch ", state_->epoch + 1,
              " (rate ", optimizer_.rate(), "); try --rate ", optimizer_.options().schedule.rate / 10,
              ", --standardise for unscaled columns, or --optimizer adaptive")};
}

Result<Report> Trainer::Run(data::RowSource& source) {
  State& s = *state_;
  TRY(optimizer_.Follow(parameters_));
  if (options_.batch > 1 && options_.strategy == nullptr) s.gradient = TRY(model_.NewGradient(s.memory));
  s.workspace.threads = env_.executor.width();
  s.augment = TRY(data::Augment::Make(description_, {options_.seed, options_.mirror}));
  TRY(LoadCheckpoint());
  if (!s.cuts.empty()) TRY(source.CutAt(s.cuts));
  s.started = s.checkpointed = env_.clock.Now();
  s.report.stopped_early = options_.patience > 0 && s.epochs_since_best >= options_.patience;
  for (; s.epoch < options_.epochs && !s.report.stopped_early; ++s.epoch) {
    s.wanted = env_.clock.Now();
    data::RowSource* const rows = TRY(SourceFor(source, s.epoch));
    s.measured = env_.clock.Now();
    TRY(Epoch(*rows));
    TRY(Join());
    Measure();
    s.report.epochs = s.epoch + 1;
    s.report.last_epoch = s.seen;
    if (s.epoch == 0) s.progressive = s.seen;
    if (!parameters_.AllFinite()) return Diverged();
    if (s.writer) {
      TRY(s.writer->Close(description_));
      s.writer = nullptr;
      s.cache = TRY(data::CacheReader::Open(env_.files, s.cache_path));
    }
    if (options_.hold_out.any()) {
      TRY(EvaluateHeldOut(source));
      const bool better = s.report.held_out_losses.size() == 1 || s.report.held_out->loss() < s.best_loss;
      if (better) {
        s.best_loss = s.report.held_out->loss();
        s.epochs_since_best = 0;
        if (options_.patience > 0) {
          if (!s.best) s.best = TRY(model_.NewParameters(s.memory));
          s.best->CopyFrom(parameters_);
        }
      } else if (++s.epochs_since_best >= options_.patience && options_.patience > 0) {
        s.report.stopped_early = true;
      }
    }
    TRY(Rebalance(source));
    s.seen = Evaluation(TaskOf(model_, description_));
    s.position = {};
    if (!options_.checkpoint_path.empty()) {
      ++s.epoch;  // what is saved goes on with the next epoch
      TRY(SaveCheckpoint({}));
      --s.epoch;
    }
    const bool stop = options_.strategy == nullptr ? Stopping() : options_.strategy->stop_agreed();
    if (stop && s.epoch + 1 < options_.epochs && !s.report.stopped_early) return Stopped();
  }
  if (s.best) parameters_.CopyFrom(*s.best);
  if (s.best || (options_.hold_out.any() && !s.report.held_out)) {  // another model than the last, or another process
    TRY(EvaluateHeldOut(source));
    s.report.held_out_losses.pop_back();
  }
  s.report.progressive = s.progressive;
  return std::move(s.report);
}

// The first epoch reads the source itself, later ones the cache, which is written on the way if there will be any.
Result<data::RowSource*> Trainer::SourceFor(data::RowSource& source, int epoch) {
  State& s = *state_;
  if (s.strata_whole) return &source;
  const bool is_cache = dynamic_cast<data::CacheReader*>(&source) != nullptr;
  const bool again = options_.epochs > 1 || (options_.hold_out.any() && !Stratified());
  const bool wanted = !options_.cache_path.empty() || (again && source.worth_keeping());
  data::RowSource* chosen = &source;
  if (wanted && !is_cache) {
    if (s.cache_path.empty()) {
      s.cache_path = options_.cache_path;
      if (s.cache_path.empty() && !options_.checkpoint_path.empty()) s.cache_path = options_.checkpoint_path + ".rows";
      if (!s.cache_path.empty()) s.cache_path = RankPath(s.cache_path);
      if (s.cache_path.empty())
        s.cache_path = Str(options_.scratch_directory, "/freshet.", getpid(), ".",
                           reinterpret_cast<std::uintptr_t>(this), ".rows");
    }
    const bool may_fit = Stratified() && options_.cache_path.empty();  // then nobody will read it
    if (s.cache == nullptr && s.position.block == 0 && epoch == 0) {
      if (!may_fit) s.writer = TRY(data::CacheWriter::Create(env_.files, s.cache_path));
    } else if (s.cache == nullptr && epoch > 0) {
      TRY(BuildCache(source));
    }
    if (s.cache != nullptr) chosen = s.cache.get();
  }
  chosen->Permute(options_.shuffle ? options_.seed + static_cast<std::uint64_t>(epoch) : 0);
  TRY(chosen->Seek(s.position));
  return chosen;
}

Result<void> Trainer::BuildCache(data::RowSource& source) {
  State& s = *state_;
  TRY(source.Seek({}));
  auto writer = TRY(data::CacheWriter::Create(env_.files, s.cache_path));
  TRY(data::DriveInOrder(env_.executor, source, [&](data::Rows& rows) { return writer->Append(rows); }));
  TRY(writer->Close(description_));
  s.cache = TRY(data::CacheReader::Open(env_.files, s.cache_path));
  return {};
}

Result<void> Trainer::Epoch(data::RowSource& source) {
  if (Stratified()) return EpochStratified(source);
  if (MayShare()) return EpochShared(source);
  return EpochInOrder(source);
}

// What every block goes through, in order: into the cache, standardised, and its features given a place in the model.
Result<void> Trainer::PrepareBlock(data::Rows& rows) {
  State& s = *state_;
  if (s.writer) TRY(s.writer->Append(rows));
  if (description_.standardise && s.epoch == 0)
    Standardise(description_.moments, rows);
  else if (description_.standardise)
    ApplyMoments(description_.moments, rows);
  data::Batch batch = rows.batch();
  if (description_.view.any()) batch.width = s.augment->width();  // what the model will be shown of them
  TRY(model_.Prepare(parameters_, batch));
  return optimizer_.Follow(parameters_);
}

Result<void> Trainer::EpochInOrder(data::RowSource& source) {
  State& s = *state_;
  const bool direct =
      options_.batch == 1 && !options_.shuffle && !options_.hold_out.any() && options_.strategy == nullptr;
  const auto work = [&](data::Rows& rows) -> Result<void> {
    TRY(PrepareBlock(rows));
    const data::Batch batch = rows.batch();
    if (direct) {
      SetProgress(ProgressAt(source, rows.begin));
      TRY(TrainBatch(batch));
    } else {
      if (s.window.size() == 0) s.window_begin = ProgressAt(source, rows.begin);
      for (std::size_t r = 0; r < batch.rows; ++r)
        if (!options_.hold_out.Holds(batch, r)) s.window.Add(batch, r);
      TRY(TrainWindow(ProgressAt(source, rows.end), false));
    }
    return AfterBlock(source, rows.end);
  };
  data::PrefetchStats stats;
  TRY(DriveFor(env_, model_, source, work, options_.prefetch, &stats));
  if (stats.blocks > 0) s.report.wait_seconds = s.report.wait_seconds.value_or(0) + base::Seconds(stats.waited);
  return TrainWindow(ProgressAt(source, s.position), true);
}

// Trains on what the window holds, as far as it is due: whole mini-batches, or everything when it is full or the end.
// The rows were read while training progressed to `progress`.
Result<void> Trainer::TrainWindow(double progress, bool end_of_epoch) {
  State& s = *state_;
  if (s.window.size() == 0) return {};
  if (options_.shuffle) {
    if (!end_of_epoch && s.window.bytes() < options_.shuffle_window_bytes) return {};
    const data::Batch mixed = s.window.Shuffled(base::Random(options_.seed + s.windows++, "shuffle"));
    // The window can be the whole epoch: the rate changes on the way, not only from window to window.
    constexpr std::size_t kPieces = 64;
    const std::size_t piece = (mixed.rows / kPieces / StepRows() + 1) * StepRows();
    for (std::size_t begin = 0; begin < mixed.rows; begin += piece) {
      const double share = static_cast<double>(begin) / static_cast<double>(mixed.rows);
      SetProgress(s.window_begin + share * (progress - s.window_begin));
      TRY(TrainBatch(mixed.Slice(begin, std::min(begin + piece, mixed.rows))));
    }
    s.window.Clear();
    return {};
  }
  const std::size_t due = end_of_epoch ? s.window.size() : s.window.size() / StepRows() * StepRows();
  SetProgress(progress);
  TRY(TrainBatch(s.window.batch().Slice(0, due)));
  s.window.DropFront(due);
  return {};
}

double Trainer::ProgressAt(const data::RowSource& source, const data::Position& position) const {
  return (state_->epoch + source.Fraction(position).value_or(0)) / options_.epochs;
}

Result<void> Trainer::TrainBatch(const data::Batch& batch) {
  State& s = *state_;
  const auto begun = env_.clock.Now();
  const bool alone = options_.batch == 1 || model_.config().kind == "kmeans";  // k-means has a rule of its own
  const bool shown = description_.view.any() || options_.mirror;
  const std::size_t most = options_.strategy == nullptr && alone && !shown ? batch.rows : StepRows();
  for (std::size_t begin = 0; begin < batch.rows; begin += most) {
    const data::Batch piece = batch.Slice(begin, std::min<std::size_t>(begin + most, batch.rows));
    data::Batch mine = options_.strategy == nullptr ? piece : options_.strategy->Share(piece);
    s.scores.resize(mine.rows * model_.scores());
    if (shown) {
      s.shown.resize(mine.rows * s.augment->width());
      s.augment->ForTraining(mine, static_cast<std::uint64_t>(s.epoch), s.shown.data());
      mine.dense = s.shown.data();
      mine.width = s.augment->width();
    }
    double loss = 0;
    CountRead();
    if (options_.strategy != nullptr) {
      const bool due = base::Seconds(env_.clock.Now() - s.checkpointed) >= options_.checkpoint_seconds;
      options_.strategy->Ask(Stopping(), due && options_.strategy->rank() == 0);
      loss = TRY(options_.strategy->Step(piece, mine, s.scores));
    } else {
      const base::Span span(options_.trace, "step", base::Trace::kTraining, {.step = optimizer_.step()});
      loss = alone ? TrainRows(mine, s.scores) : TrainStep(mine, s.scores);
    }
    s.seen.Add(mine, s.scores, loss);
    s.wanted = env_.clock.Now();
    s.report.rows += mine.rows;
    if (!std::isfinite(s.seen.total_loss())) return Diverged();
    if (!ReadsAll() && options_.strategy->stop_agreed()) return Stopped();
  }
  s.report.update_seconds += base::Seconds(env_.clock.Now() - begun);
  return {};
}

// One update from each row.
double Trainer::TrainRows(const data::Batch& batch, std::span<float> scores) {
  const base::Span span(options_.trace, "compute", base::Trace::kTraining, {.step = optimizer_.step()});
  return model_.Update(parameters_, batch, optimizer_, state_->workspace, scores, Sharing::kAlone);
}

// One update from the gradient of several rows.
double Trainer::TrainStep(const data::Batch& batch, std::span<float> scores) {
  State& s = *state_;
  std::optional<base::Span> span(std::in_place, options_.trace, "compute", base::Trace::kTraining,
                                 base::Trace::Details{.step = optimizer_.step()});
  model_.Observe(parameters_, batch, optimizer_);
  s.gradient.Clear();
  s.workspace.step = optimizer_.step();
  const double loss = model_.LossAndGradient(parameters_, batch, s.workspace, s.gradient, scores);
  double weight = 0;
  for (std::size_t r = 0; r < batch.rows; ++r) weight += batch.weight(r);
  span.emplace(options_.trace, "apply", base::Trace::kTraining, base::Trace::Details{.step = optimizer_.step()});
  model_.Apply(parameters_, s.gradient, weight, optimizer_, s.workspace);
  return loss;
}

// One model, many threads: each block is prepared in order, then trained on beside others by relaxed atomics. While the
// model is small, threads would only fight over its cache lines: blocks are then trained on in order, too.
Result<void> Trainer::EpochShared(data::RowSource& source) {
  State& s = *state_;
  struct Local {
    std::unique_ptr<optimize::Optimizer> optimizer;
    model::Workspace workspace;
    std::vector<float> scores;
  };
  std::vector<Local> locals(static_cast<std::size_t>(env_.executor.width()));
  for (Local& local : locals) local.optimizer = optimizer_.Sibling();
  std::mutex mutex;  // guards s.seen, s.report, the steps of optimizer_ and the call of AfterBlock
  const auto prepare = [&](data::Rows& rows) -> Result<void> {
    TRY(PrepareBlock(rows));
    if (parameters_.rows(0) >= kSharedWeights) return {};
    const std::lock_guard lock(mutex);
    optimizer_.SetProgress(ProgressAt(source, rows.begin));
    TRY(TrainBatch(rows.batch()));
    rows.ClearRows();  // nothing left for `work`
    return AfterBlock(source, rows.end);
  };
  const auto work = [&](int thread, data::Rows& rows) -> Result<void> {
    if (rows.size() == 0) return {};
    Local& local = locals[static_cast<std::size_t>(thread)];
    const data::Batch batch = rows.batch();
    local.scores.resize(batch.rows * model_.scores());
    {
      const std::lock_guard lock(mutex);
      local.optimizer->SetProgress(ProgressAt(source, rows.begin));
      local.optimizer->SetStep(optimizer_.step());  // the steps of all threads together
      optimizer_.SetStep(optimizer_.step() + batch.rows);
    }
    const base::Span span(options_.trace, "compute", base::Trace::kThreads + static_cast<std::uint32_t>(thread),
                          {.step = local.optimizer->step()});
    const auto begun = env_.clock.Now();
    const double loss =
        model_.Update(parameters_, batch, *local.optimizer, local.workspace, local.scores, Sharing::kShared);
    const std::lock_guard lock(mutex);
    s.report.update_seconds += base::Seconds(env_.clock.Now() - begun);
    s.report.shared = true;
    s.seen.Add(batch, local.scores, loss);
    s.report.rows += batch.rows;
    if (!std::isfinite(s.seen.total_loss())) return Diverged();
    return AfterBlock(source, rows.end);
  };
  return data::DriveShared(env_.executor, source, prepare, work);
}

// Tells the world how far we are, and stops or checkpoints when it is time.
Result<void> Trainer::AfterBlock(const data::RowSource& source, const data::Position& position) {
  State& s = *state_;
  s.position = position;
  Show(source.Fraction(position));
  bool due = base::Seconds(env_.clock.Now() - s.checkpointed) >= options_.checkpoint_seconds, stop = Stopping();
  if (options_.strategy != nullptr) {  // all must do the same; who reads rows of its own saves at the end of an epoch
    due = ReadsAll() && options_.strategy->save_agreed();
    stop = ReadsAll() && options_.strategy->stop_agreed();
  }
  if (!options_.checkpoint_path.empty() && (stop || due)) {
    Measure();
    CountRead();
    TRY(SaveCheckpoint(position));
    if (options_.strategy != nullptr) options_.strategy->Forget();
    s.wanted = env_.clock.Now();
  }
  if (stop) return Stopped();
  return {};
}

void Trainer::Show(std::optional<double> fraction) {
  State& s = *state_;
  if (!options_.progress) return;
  Progress progress;
  progress.epoch = s.epoch;
  progress.epochs = options_.epochs;
  progress.rows = s.report.rows;
  progress.mean_loss = s.seen.loss();
  progress.error_rate = s.seen.error_rate();
  progress.rmse = s.seen.rmse();
  progress.total_loss = s.seen.total_loss();
  progress.weight = s.seen.weight();
  if (fraction) progress.fraction = (s.epoch + *fraction) / options_.epochs;
  progress.seconds = base::Seconds(env_.clock.Now() - s.started);
  options_.progress(progress);
}

bool Trainer::Stopping() const { return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed); }

Error Trainer::Stopped() const {
  return {Code::kStopped,
          Str("stopped after ", state_->report.rows, " rows",
              options_.checkpoint_path.empty() ? "" : Str("; checkpoint written to ", options_.checkpoint_path))};
}

// Rows are ready to be learned from: until now they were waited for.
void Trainer::CountRead() {
  if (options_.strategy == nullptr && options_.trace == nullptr) return;
  const auto now = env_.clock.Now();
  if (options_.strategy != nullptr) options_.strategy->CountRead(now - state_->wanted);
  if (options_.trace != nullptr)
    options_.trace->Add("read", base::Trace::kTraining, state_->wanted, now, {.step = optimizer_.step()});
}

// Adds the time since the last measurement to what was spent training.
void Trainer::Measure() {
  const auto now = env_.clock.Now();
  state_->report.seconds += base::Seconds(now - std::exchange(state_->measured, now));
}

}  // namespace freshet::train
