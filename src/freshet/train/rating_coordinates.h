#pragma once

#include "train/coordinate_trainer.h"

namespace freshet::train {

// TrainByCoordinates for ratings: along the biases and factors of a factorization. The objective is the mean of
// (error²/2 + l2/2 · (squares of the biases and factors of the rating's user and item)).
// Uses of the options: epochs, patience, hold_out, rated, seed, progress, stop, trace. With patience, the parameters are
// those of the epoch with the best held-out loss.
// Failure: as TrainByCoordinates.
Result<Report> TrainRatingsByCoordinates(const base::Env& env, const TrainOptions& options, const model::Model& model,
                                         optimize::Parameters& parameters, const data::Description& description,
                                         data::RowSource& source, const Coordinates& coordinates);

}  // namespace freshet::train
