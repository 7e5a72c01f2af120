#include "train/descend.h"

#include <algorithm>
#include <cmath>

#include "strategy/sum_in_order.h"

namespace freshet::train {
namespace {

using strategy::scheduled::Descending;

constexpr double kLeastGain = 1e-7;
constexpr int kMomentsOfEpoch = 8;  // at which the course is told

void Show(const Descending& descending, const Following& how, const Report& report, const Descent& descent) {
  Progress progress;
  progress.epochs = how.options.epochs;
  progress.epoch = std::min(report.epochs, progress.epochs - 1);
  progress.rows = report.epochs * how.rows;
  progress.step = descending.updates();
  progress.mean_loss = descent.objective;
  progress.weight = static_cast<double>(descending.rounds());
  progress.total_loss = progress.mean_loss * progress.weight;
  progress.fraction = std::min(
      static_cast<double>(descending.updates()) / (static_cast<double>(descending.coordinates()) * progress.epochs),
      1.0);
  how.watch.Tell(progress);
}

Result<void> Tell(Descending& descending, const Following& how, Descent& descent) {
  descent.objective = TRY(descending.Objective()) * how.unit;
  descent.course.push_back({descending.updates(), descent.objective});
  if (std::isfinite(descent.objective)) return {};
  return Error{Code::kDiverged,
               Str("the objective is no longer finite after ", descending.updates(), " updates", how.against)};
}

}  // namespace

Result<void> EndOfReading(fabric::Collectives* collectives, const Result<void>& mine) {
  const bool stopped = !mine.ok() && mine.error().code == Code::kStopped;
  if (!stopped) TRY(mine);
  if (collectives == nullptr) return mine;
  if (TRY(strategy::SumInOrder(*collectives, {stopped ? 1.0 : 0.0}))[0] > 0) return Error{Code::kStopped, "stopped"};
  return {};
}

Result<void> Descend(Descending& descending, const Following& how, Report& report, Descent& descent) {
  TRY(Tell(descending, how, descent));
  for (report.epochs = 0; report.epochs < how.options.epochs && !report.stopped_early;) {
    const double before = descent.objective;
    for (int moment = 0; moment < kMomentsOfEpoch; ++moment) {
      const double until = report.epochs + (moment + 1.0) / kMomentsOfEpoch;
      while (static_cast<double>(descending.updates()) < until * static_cast<double>(descending.coordinates())) {
        if (!TRY(descending.Round(how.watch.stopping()))) return Error{Code::kStopped, "stopped"};
        if (how.watch.TellingIsDue()) Show(descending, how, report, descent);
      }
      TRY(Tell(descending, how, descent));
    }
    ++report.epochs;
    report.stopped_early = how.ends_early && before - descent.objective < kLeastGain * std::abs(before);
    if (how.epoch_ended && TRY(how.epoch_ended())) report.stopped_early = true;
    Show(descending, how, report, descent);
  }
  descent.updates = descending.updates();
  descent.rounds = descending.rounds();
  descent.put_off = descending.put_off();
  descent.coordinates = descending.coordinates();
  return {};
}

}  // namespace freshet::train
