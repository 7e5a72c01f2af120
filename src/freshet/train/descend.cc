#include "train/descend.h"

#include <algorithm>
#include <cmath>

#include "strategy/sum_in_order.h"

namespace freshet::train {
namespace {

using strategy::scheduled::Descending;

constexpr double kLeastGain = 1e-7;
constexpr int kMomentsOfEpoch = 8;  // at which the course is told

// What is shown of an epoch: the objective, as it was last told, over its rounds.
struct Shown {
  std::uint64_t rounds = 0;  // of all epochs
  double loss = 0, weight = 0;
};

void Show(const Descending& descending, const Following& how, int epoch, bool ended, const Descent& descent,
          Shown& shown) {
  const auto rounds = static_cast<double>(descending.rounds() - shown.rounds);
  shown.rounds = descending.rounds();
  shown.loss += descent.objective * rounds;
  shown.weight += rounds;
  Progress progress;
  progress.epochs = how.options.epochs;
  progress.epoch = epoch;
  progress.rows = (static_cast<std::uint64_t>(epoch) + (ended ? 1 : 0)) * how.rows;
  progress.step = descending.updates();
  progress.mean_loss = descent.objective;
  progress.weight = shown.weight;
  progress.total_loss = shown.loss;
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
    Shown shown{.rounds = descending.rounds()};
    for (int moment = 0; moment < kMomentsOfEpoch; ++moment) {
      const double until = report.epochs + (moment + 1.0) / kMomentsOfEpoch;
      while (static_cast<double>(descending.updates()) < until * static_cast<double>(descending.coordinates())) {
        if (!TRY(descending.Round(how.watch.stopping()))) return Error{Code::kStopped, "stopped"};
        if (how.watch.TellingIsDue()) Show(descending, how, report.epochs, false, descent, shown);
      }
      TRY(Tell(descending, how, descent));
    }
    Show(descending, how, report.epochs, true, descent, shown);
    ++report.epochs;
    report.stopped_early = how.ends_early && before - descent.objective < kLeastGain * std::abs(before);
    if (how.epoch_ended && TRY(how.epoch_ended())) report.stopped_early = true;
  }
  descent.updates = descending.updates();
  descent.rounds = descending.rounds();
  descent.put_off = descending.put_off();
  descent.coordinates = descending.coordinates();
  return {};
}

}  // namespace freshet::train
