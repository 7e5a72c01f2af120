#include "train/trainer.h"

#include <utility>

#include "base/option.h"
#include "data/cache.h"
#include "data/images/augment.h"
#include "data/standardise.h"
#include "train/trainer_state.h"

namespace freshet::train {
namespace {

// Where parsed rows are kept: where it was said, or beside the checkpoint, so that who goes on finds them; "": nowhere
// that matters.
std::string CachePath(const TrainOptions& options) {
  if (options.strategy != nullptr && options.strategy->changes()) return "";  // ranks do not name anybody
  const std::string beside = options.checkpoint_path.empty() ? "" : options.checkpoint_path + ".rows";
  const std::string path = options.cache_path.empty() ? beside : options.cache_path;
  return path.empty() || options.strategy == nullptr ? path : PathOfRank(path, options.strategy->rank());
}

}  // namespace

Trainer::State::State(const base::Env& env, const model::Model& model, const optimize::Parameters& parameters,
                      const data::Description& description, const TrainOptions& options)
    : Standing(model, description, options.shuffle ? options.shuffle_window_bytes : 0),
      watch(env.clock, options.stop, options.progress, options.checkpoint_seconds),
      cache(env.files, CachePath(options), options.scratch_directory),
      strata(options.seed),
      held_out(env, options.hold_out, model, parameters, description),
      early(options.patience, model, memory) {}

Trainer::Trainer(const base::Env& env, TrainOptions options, const model::Model& model,
                 optimize::Parameters& parameters, optimize::Optimizer& optimizer, data::Description& description)
    : env_(env),
      options_(std::move(options)),
      model_(model),
      parameters_(parameters),
      optimizer_(optimizer),
      description_(description),
      state_(std::make_unique<State>(env, model, parameters, description, options_)) {}

Trainer::~Trainer() = default;

bool Trainer::Stratified() const {
  return model_.ratings() != nullptr && options_.batch == 1 && (strategy_->alone() || strategy_->walk() != nullptr);
}

bool Trainer::MayShare() const {
  return strategy_->alone() && !options_.deterministic && env_.executor.width() > 1 && model_.traits().shares_updates &&
         options_.batch == 1 && !options_.shuffle && !options_.hold_out.any() && options_.checkpoint_path.empty();
}

Error Trainer::Diverged() const {
  return {Code::kDiverged,
          Str("the loss is no longer finite after ", state_->seen.rows(), " rows of epoch ", state_->epoch + 1,
              " (rate ", optimizer_.rate(), "); try ", Option("rate"), " ", optimizer_.options().schedule.rate / 10,
              ", ", Option("standardise"), " for unscaled columns, or ", Option("optimizer"), " adaptive")};
}

Result<Report> Trainer::Run(data::RowSource& source) {
  State& s = *state_;
  s.source = &source;
  TRY(optimizer_.Follow(parameters_));
  TRY(ChooseStrategy());
  s.augment = TRY(data::Augment::Make(description_, {options_.seed, options_.mirror}));
  if (Shown()) strategy_->SetShow([this, &s](const data::Batch& rows) { return Show(rows, s.shown_of_others); });
  bool comes = strategy_->comes();
  TRY(Resume());
  const bool resumed = s.epoch > 0 || s.learned || s.position.block > 0;
  if (!s.cuts.empty()) TRY(source.CutAt(s.cuts));
  s.watch.Start();
  s.report.stopped_early = s.early.stops();
  for (; s.epoch < options_.epochs && !s.report.stopped_early; ++s.epoch) {
    if (!s.learned) {
      s.watch.WantRows();
      const auto rows = SourceFor(source, s.epoch);
      if (comes) TRY(rows);  // the others have met already
      if (!comes) TRY(StopTogether(rows.ok() ? Result<void>() : rows.error()));
      comes = false;
      if (s.epoch == 0) source.SetRowsWhere(s.where);
      s.watch.BeginLap();
      TRY(Epoch(*rows.value()));
      TRY(Join());
      s.seconds += s.watch.Lap();
      s.learned = true;
    }
    s.report.epochs = s.epoch + 1;
    s.report.last_epoch = s.seen;
    if (s.epoch == 0) s.progressive = s.seen;
    if (!parameters_.AllFinite()) return Diverged();
    TRY(s.cache.End(description_));
    if (options_.hold_out.any()) {
      const auto evaluated = EvaluateHeldOut(source);
      if (!evaluated.ok() && evaluated.error().code == Code::kStopped && !options_.checkpoint_path.empty())
        TRY(SaveCheckpoint());
      TRY(evaluated);
      TRY(s.early.Add(s.report.held_out->loss(), parameters_));
      s.report.stopped_early = s.early.stops();
    }
    TRY(Rebalance(source));
    s.seen = SumsFor(model_, description_);
    s.position = {};
    s.learned = false;
    if (!options_.checkpoint_path.empty()) {
      ++s.epoch;  // what is saved goes on with the next epoch
      TRY(SaveCheckpoint());
      --s.epoch;
    }
    Ask(env_.clock.Now());
    if (strategy_->stop_agreed() && s.epoch + 1 < options_.epochs && !s.report.stopped_early) return Stopped();
  }
  const optimize::Parameters* const best = s.early.best();
  if (best != nullptr) parameters_.CopyFrom(*best);
  // Of another model than the last, or of another process.
  if (best != nullptr || (options_.hold_out.any() && !s.report.held_out)) TRY(EvaluateHeldOut(source));
  s.report.held_out_losses = s.early.record().losses;
  if (options_.rated != nullptr && resumed) TRY(CollectRated(source));
  s.report.progressive = s.progressive;
  s.report.rows = s.rows;
  s.report.seconds = s.seconds;
  return std::move(s.report);
}

// Goes on from the checkpoint, if there is one, or from where others are.
Result<void> Trainer::Resume() {
  State& s = *state_;
  if (options_.checkpoint_path.empty() && !strategy_->changes()) return {};
  s.checkpoints.emplace(env_,
                        Checkpoints::Options{.path = options_.checkpoint_path,
                                             .fingerprint = options_.fingerprint,
                                             .inputs = options_.inputs,
                                             .common = options_.common,
                                             .choice = options_.choice},
                        Checkpoints::World{model_, parameters_, optimizer_, description_, *strategy_});
  strategy_->SetGive([&s] { return s.checkpoints->Give(s, s.early); });
  if (strategy_->comes()) {
    // Before anybody waits for it: what it will read again and again.
    if (KeepsRows(*s.source)) TRY(FillCache(*s.source));
    TRY(s.checkpoints->Take(TRY(strategy_->Take()), s, s.early));
  } else if (options_.checkpoint_path.empty() || !TRY(s.checkpoints->Load(s, s.early))) {
    return {};
  }
  SetProgress(s.progress);
  s.report.epochs = s.epoch;
  if (s.cached) s.cache.Reopen();
  return {};
}

// Are parsed rows kept for later epochs?
bool Trainer::KeepsRows(const data::RowSource& source) const {
  if (state_->strata_whole || options_.leases != nullptr || !strategy_->has_rows()) return false;
  const bool is_cache = dynamic_cast<const data::CacheReader*>(&source) != nullptr;
  const bool again = options_.epochs > 1 || (options_.hold_out.any() && !Stratified());
  return !is_cache && (!options_.cache_path.empty() || (again && source.worth_keeping()));
}

Result<void> Trainer::FillCache(data::RowSource& source) {
  return state_->cache.Fill(env_.executor, source, description_, [this] { return !state_->watch.stopping(); });
}

// The first epoch reads the source itself, later ones the cache, which is written on the way if there will be any.
Result<data::RowSource*> Trainer::SourceFor(data::RowSource& source, int epoch) {
  State& s = *state_;
  if (s.strata_whole || options_.leases != nullptr || !strategy_->has_rows()) return &source;
  data::RowSource* chosen = &source;
  if (KeepsRows(source)) {
    const bool may_fit = Stratified() && options_.cache_path.empty();  // then nobody will read it
    if (s.cache.rows() == nullptr && s.position.block == 0 && epoch == 0) {
      if (!may_fit) TRY(s.cache.Begin());
    } else if (s.cache.rows() == nullptr && epoch > 0) {
      TRY(FillCache(source));
    }
    // Who came has filled it already, but names and moments are learned in the first epoch.
    if (s.cache.rows() != nullptr && (epoch > 0 || !strategy_->changes())) chosen = s.cache.rows();
  }
  chosen->Permute(options_.shuffle ? options_.seed + static_cast<std::uint64_t>(epoch) : 0);
  TRY(chosen->Seek(s.position));
  return chosen;
}

Result<void> Trainer::Epoch(data::RowSource& source) {
  if (!strategy_->has_rows()) return {};  // it takes part when the epoch is joined
  if (options_.leases != nullptr) return EpochLeased();
  if (Stratified()) return EpochStratified(source);
  if (MayShare()) return EpochShared(source);
  return EpochInOrder(source);
}

// What every block goes through, in order: into the cache, standardised, its labels scaled, and its features given a
// place in the model.
Result<void> Trainer::PrepareBlock(data::Rows& rows) {
  State& s = *state_;
  TRY(s.cache.Add(rows));
  if (options_.rated != nullptr && s.epoch == 0) options_.rated->Add(rows.batch());
  if (description_.standardise && s.epoch == 0 && options_.learn_moments)
    data::Standardise(description_.moments, rows);
  else if (description_.standardise)
    data::ApplyMoments(description_.moments, rows);
  data::ScaleLabels(description_, rows);
  data::Batch batch = rows.batch();
  if (description_.view.any()) batch.width = s.augment->width();  // what the model will be shown of them
  TRY(model_.Prepare(parameters_, batch));
  return optimizer_.Follow(parameters_);
}

Result<void> Trainer::EpochInOrder(data::RowSource& source) {
  State& s = *state_;
  const bool direct = options_.batch == 1 && !options_.shuffle && !options_.hold_out.any() && strategy_->alone();
  const auto work = [&](data::Rows& rows) -> Result<void> {
    TRY(PrepareBlock(rows));
    const data::Batch batch = rows.batch();
    s.position = rows.end;
    s.length_known = source.Fraction(rows.end).has_value();
    if (direct) {
      const double progress = ProgressAt(source, rows.begin);
      TRY(TrainLot({.rows = batch, .due = batch.rows, .from = progress, .to = progress}));
    } else {
      if (s.window.size() == 0) s.window_begin = ProgressAt(source, rows.begin);
      for (std::size_t r = 0; r < batch.rows; ++r)
        if (!options_.hold_out.Holds(batch, r)) s.window.Add(batch, r);
      TRY(TrainWindow(ProgressAt(source, rows.end), false));
    }
    return AfterBlock(source, rows.end);
  };
  TRY(TrainRestOfLot());
  data::PrefetchStats stats;
  TRY(DriveFor(env_, model_, source, work, options_.prefetch, &stats));
  if (stats.blocks > 0) s.report.wait_seconds = s.report.wait_seconds.value_or(0) + base::Seconds(stats.waited);
  const std::uint64_t rows = s.rows;
  const double progress = ProgressAt(source, s.position);
  TRY(TrainWindow(progress, true));
  if (s.rows > rows) Show(progress);
  return {};
}

}  // namespace freshet::train
