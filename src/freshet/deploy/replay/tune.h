#pragma once

#include "deploy/replay/replay.h"

namespace freshet::deploy {

// What suits a feed, judged by its initial part alone, so that nothing of what arrives later is known.
struct Tuning {
  double rate = 0;         // the best
  double l2 = 0;           // the strongest within 0.2 % of the best
  int initial_epochs = 1;  // the fewest within half a percent of the best
  int retrain_epochs = 1;  // the best for a training from scratch
  double loss = 0;         // of rows not learned yet
};

// Tries rates a factor of two apart around the one given, then pulls (l2), then 1 to 20 epochs. With test rows, a
// random fifth of the initial part is held out, as the test rows are; without, a tenth of it trains a model that meets
// the rest row by row, as arrivals will, and for retrain_epochs the last fifth is held out. The seed is the first of
// the replay.
//
// Threads: the caller's. Failure: kStopped after *stop.
Result<Tuning> Tune(const ReplayOptions& options, const Feed& feed);

}  // namespace freshet::deploy
