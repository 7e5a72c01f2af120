#pragma once

#include "data/rows.h"
#include "model/model.h"

namespace freshet::model {

// What Model::Observe needs of a batch, as rows that are added to `out` (which is as wide as the batch), for workers
// that have rows of their own: to observe what all hand out, in the order of ranks, is to observe all their rows. Adds
// nothing where there is nothing to be learned by looking, or not any more.
void Digest(const Model& model, const optimize::Parameters& parameters, const data::Batch& batch,
            const optimize::Optimizer& optimizer, data::Rows& out);
// The same where it is known what Observe would take.
void Digest(Model::Observes observes, const data::Batch& batch, data::Rows& out);

}  // namespace freshet::model
