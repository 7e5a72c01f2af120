// Training on parts of an input whose readers change: after every change each has other parts, and goes on with them from
// the update that all have come to. The place in an epoch is the number of updates, which is the same for all; nothing
// waits in a window.

#include <algorithm>

#include "train/trainer_state.h"

namespace freshet::train {
namespace {

// Rows of a part that are held in memory at once; the same for all workers.
std::uint64_t WindowOf(const TrainOptions& options, const data::Description& description) {
  constexpr std::uint64_t kSparseRowBytes = 512;  // as a guess
  const std::uint64_t row = description.dense ? sizeof(float) * description.features : kSparseRowBytes;
  return std::clamp<std::uint64_t>(options.shuffle_window_bytes / options.leases->parts() / row, 16, 1 << 16);
}

}  // namespace

Result<void> Trainer::EpochLeased() {
  State& s = *state_;
  data::LeasedParts& parts = *options_.leases;
  const HoldOut& held = options_.hold_out;
  parts.SetWanted(!held.any() ? data::LeasedParts::Wanted()
                              : [&held](const data::Batch& batch, std::size_t row) { return !held.Holds(batch, row); });
  parts.SetUpdate(strategy_->piece_of_all());
  parts.SetWindow(WindowOf(options_, description_));
  parts.Permute(options_.shuffle ? options_.seed + static_cast<std::uint64_t>(s.epoch) : 0);
  s.length_known = true;
  while (!TRY(TrainOnLease())) {
  }
  return {};
}

// By what all know alike: how many rows there are was found out in the first epoch, and is guessed until then.
double Trainer::ProgressOfLease() const {
  const State& s = *state_;
  if (s.epoch == 0 || s.joined_rows == 0) return ProgressAt(*options_.leases, s.position);
  const double of_epoch = static_cast<double>(s.joined_rows) / s.epoch;
  return (s.epoch + std::min(static_cast<double>(s.rows - s.joined_rows) / of_epoch, 1.0)) / options_.epochs;
}

// Until the epoch has no more rows; false when the parts are others' from here on.
Result<bool> Trainer::TrainOnLease() {
  State& s = *state_;
  data::LeasedParts& parts = *options_.leases;
  const std::uint64_t generation = strategy_->generation();
  const auto begun = env_.clock.Now();
  bool same = true;
  const auto work = [&](data::Rows& rows) -> Result<void> {
    TRY(PrepareBlock(rows));
    const data::Batch batch = rows.batch();
    for (std::size_t begin = 0, end = 0; begin < batch.rows && same; begin = end) {
      end = std::min(begin + parts.rows(), batch.rows);
      SetProgress(ProgressOfLease());
      const bool made = TRY(TrainPiece(batch.Slice(begin, end)));
      same = made && strategy_->generation() == generation;
    }
    if (!same) return Error{Code::kStopped, "parts have other readers"};
    Show(Reached());
    return {};
  };
  parts.Lease(static_cast<std::uint64_t>(strategy_->rank()), static_cast<std::uint64_t>(strategy_->size()));
  TRY(parts.Seek(s.position));
  data::PrefetchStats stats;
  const Result<void> driven = DriveFor(env_, model_, parts, work, options_.prefetch, &stats);
  if (stats.blocks > 0) s.report.wait_seconds = s.report.wait_seconds.value_or(0) + base::Seconds(stats.waited);
  s.report.update_seconds += base::Seconds(env_.clock.Now() - begun);
  if (!same) return false;
  TRY(driven);
  while (true) {  // others may have some left
    SetProgress(ProgressOfLease());
    Ask(s.watch.rows_wanted());
    const auto dry = strategy_->StepDry();
    if (!dry.ok()) return KeepWhatThereIs(dry.error());
    s.watch.WantRows();
    const std::size_t rows = strategy_->rows_of_step();
    if (rows > 0) {
      s.rows += rows - strategy_->given_up();
      ++s.position.block;
    } else if (!dry.value() && !strategy_->stop_agreed()) {
      return false;  // it was not made
    }
    const bool somebody_comes = strategy_->admission_agreed();
    TRY(AfterUpdate());
    if (dry.value() && !somebody_comes) return true;
    if (strategy_->generation() != generation || somebody_comes) return false;  // who comes begins with this step
  }
}

// By all together, each its parts. Should somebody be lost meanwhile, once more: the sum says whether every part is in it.
Result<void> Trainer::EvaluateLeased(std::size_t width, const HeldOut::GoesOn& goes_on, Evaluation& held) {
  State& s = *state_;
  data::LeasedParts& parts = *options_.leases;
  parts.SetWanted({});
  parts.SetUpdate(strategy_->piece_of_all());
  for (bool whole = false; !whole;) {
    held = SumsFor(model_, description_, Evaluation::Extent::kWithAuc);
    parts.Lease(static_cast<std::uint64_t>(strategy_->rank()), static_cast<std::uint64_t>(strategy_->size()));
    TRY(StopTogether(s.held_out.PredictRows(parts, width, goes_on, held)));
    std::vector<double> sums = held.Save();
    const std::vector<double> mine = parts.Held();
    sums.insert(sums.end(), mine.begin(), mine.end());
    sums = TRY(strategy_->Sum(sums));
    const auto counted = sums.end() - static_cast<std::ptrdiff_t>(mine.size());
    whole = std::all_of(counted, sums.end(), [](double times) { return times == 1; });
    sums.erase(counted, sums.end());
    CHECK(held.Load(sums));
  }
  return {};
}

}  // namespace freshet::train
