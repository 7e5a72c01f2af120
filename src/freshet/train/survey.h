#pragma once

#include <atomic>

#include "base/env.h"
#include "data/description.h"
#include "data/source.h"
#include "fabric/collectives/collectives.h"
#include "model/model.h"

namespace freshet::train {

// How the rows of workers who each read their own follow each other.
enum class RowsOf {
  kOneInput,   // they are parts of one input, in whatever order: a name's place in it tells
  kOwnInputs,  // each worker has an input of its own: those of a lower rank come first
};

// Each worker reads its own rows once, before training, and all tell each other what names and moments they found: the
// description is then the same for all, and knows every name (strategy/merge_descriptions.h). `source` was opened for
// the description and makes it grow; it is at its beginning again afterwards.
//
// All call it together. Failure: as the source's (a bad row) and the fabric's; kStopped after *stop.
Result<void> SurveyTogether(const base::Env& env, fabric::Collectives& collectives, RowsOf whose,
                            data::RowSource& source, data::Description& description, const std::atomic<bool>& stop);

// Gives every name that the description knows its place in the model, so that it is the same for all workers, whoever
// meets it first.
Result<void> PrepareNames(const data::Description& description, const model::Model& model,
                          optimize::Parameters& parameters);

}  // namespace freshet::train
