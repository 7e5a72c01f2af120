#pragma once

#include "strategy/full_batch.h"
#include "train/trainer.h"

namespace freshet::train {

// Trains by L-BFGS on the whole data: options.epochs iterations at most, each one or more passes over parsed rows, of
// which each member of `together` keeps its share. All members call it with the same options; the model and the report
// are then those of all, the parameters the same bits.
// Uses of the options: epochs, learn_moments, cache_path, scratch_directory, progress, stop, trace. Held-out rows,
// checkpoints and batches do not apply. The objective is the mean loss plus l2/2 · |weights|², of labels as they are
// learned (data::Target).
// Failure: kStopped, for all, after *stop of any member; kDiverged, for all, when the loss is no longer finite.
Result<Report> TrainByLbfgs(const base::Env& env, const TrainOptions& options, const model::Model& model,
                            optimize::Parameters& parameters, data::Description& description, data::RowSource& source,
                            double l2, strategy::FullBatch& together);

}  // namespace freshet::train
