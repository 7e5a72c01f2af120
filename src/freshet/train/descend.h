#pragma once

#include <functional>
#include <string>

#include "strategy/scheduled/descending.h"
#include "train/coordinate_trainer.h"

namespace freshet::train {

// How a descent is followed, whatever is descended.
struct Following {
  const TrainOptions& options;
  Watch& watch;
  std::uint64_t rows = 0;                          // of an epoch
  double unit = 1;                                 // of the objective, in those of the data
  bool ends_early = true;                          // after an epoch that gains less than a ten-millionth
  std::string against = {};                        // divergence: what to do
  std::function<Result<bool>()> epoch_ended = {};  // should there be no other? Asked after each, where given
};

// All have read their rows, as they say, or been told to stop. kStopped for all as soon as one was.
Result<void> EndOfReading(fabric::Collectives* collectives, const Result<void>& mine);

// Makes rounds for options.epochs epochs, each of as many updates as there are coordinates, and tells how they do. All
// members call it alike. Failure: kStopped, for all, after *stop of any member; kDiverged, for all, when the objective is
// no longer finite.
Result<void> Descend(strategy::scheduled::Descending& descending, const Following& how, Report& report,
                     Descent& descent);

}  // namespace freshet::train
