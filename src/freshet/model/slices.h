#pragma once

#include "model/model.h"

namespace freshet::model {

// Where to look up from rows that are worked on one by one, to see whether somebody wants us to stop: the end of the
// slice that begins at row `begin`, of about a millisecond's work. It follows from the rows and the model alone, never
// from a clock, so that what is summed slice by slice is the same on every machine. A slice of a network has
// `network_rows` at most.
std::size_t SliceEnd(const Model& model, const data::Batch& batch, std::size_t begin, std::size_t network_rows);

}  // namespace freshet::model
