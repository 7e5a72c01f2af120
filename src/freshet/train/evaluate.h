#pragma once

#include <atomic>

#include "base/env.h"
#include "data/drive.h"
#include "data/prefetch.h"
#include "model/model.h"
#include "train/evaluation.h"

namespace freshet::train {

// Predicts every row of a source and sums up how good that was. Description is applied, not changed. kStopped after
// *stop.
Result<Evaluation> Evaluate(const base::Env& env, const model::Model& model, const optimize::Parameters& parameters,
                            const data::Description& description, data::RowSource& source,
                            const std::atomic<bool>* stop = nullptr);

// Predicts the rows of a batch and adds how good that was to `sums`. kStopped as soon as `goes_on` says no.
Result<void> AddPredictions(const model::Model& model, const optimize::Parameters& parameters, const data::Batch& batch,
                            model::Workspace& workspace, std::vector<float>& scores, Evaluation& sums);

// Drives a source through `work` in order, on whatever thread suits the model.
Result<void> DriveFor(const base::Env& env, const model::Model& model, data::RowSource& source,
                      const data::BlockWork& work, std::size_t prefetch = 4, data::PrefetchStats* stats = nullptr);

}  // namespace freshet::train
