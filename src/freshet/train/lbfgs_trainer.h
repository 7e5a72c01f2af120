#pragma once

#include "train/trainer.h"

namespace freshet::train {

// Trains by L-BFGS on the whole data: options.epochs iterations at most, each one or more passes over parsed rows.
// Uses of the options: epochs, cache_path, scratch_directory, progress, stop. Held-out rows, checkpoints and batches do
// not apply. The objective is the mean loss plus l2/2 · |weights|², of labels as they are learned (data::Target).
Result<Report> TrainByLbfgs(const base::Env& env, const TrainOptions& options, const model::Model& model,
                            optimize::Parameters& parameters, data::Description& description, data::RowSource& source,
                            double l2);

}  // namespace freshet::train
