#pragma once

#include <cstdint>
#include <vector>

#include "fabric/collectives/collectives.h"
#include "strategy/scheduled/options.h"
#include "train/trainer.h"

namespace freshet::train {

// How a descent by coordinates did.
struct Descent {
  std::uint64_t updates = 0, rounds = 0;  // of coordinates, and how many of them there were together
  std::uint64_t put_off = 0;              // times that one had to wait for another on which it depends
  std::uint64_t coordinates = 0, nonzero = 0;
  double objective = 0;
  struct Moment {
    std::uint64_t updates = 0;
    double objective = 0;
  };
  std::vector<Moment> course = {};  // of the objective, from before the first update on
};

// With whom, and how, a model is trained by descent along its coordinates.
struct Coordinates {
  strategy::scheduled::DescentOptions how;
  double l1 = 0, l2 = 0;
  fabric::Collectives* collectives = nullptr;  // null: there are no others
  strategy::StepTimes& times;                  // where its time went is added here
  Descent& descent;                            // how it did goes here
};

// Trains on all rows, which are kept in memory by columns, each member those of its coordinates: options.epochs times as
// many updates as there are coordinates at most, until an epoch gains less than a ten-millionth. All members call it with
// the same options and read the same rows; the model and the report are then those of all, the parameters the same bits
// whatever their number. The objective is the mean loss plus l1 · |weights| plus l2/2 · |weights|², of labels as they
// are learned (data::Target); the bias is not held back.
// Uses of the options: epochs, learn_moments, seed, progress, stop, trace. Held-out rows, checkpoints and batches do not
// apply. Of a factorization: see rating_coordinates.h.
// Failure: kInvalid for other models, and for linear ones but those of one score and squared or logistic loss; kStopped,
// for all, after *stop of any member; kDiverged, for all, when the objective is no longer finite.
Result<Report> TrainByCoordinates(const base::Env& env, const TrainOptions& options, const model::Model& model,
                                  optimize::Parameters& parameters, data::Description& description,
                                  data::RowSource& source, const Coordinates& coordinates);

}  // namespace freshet::train
