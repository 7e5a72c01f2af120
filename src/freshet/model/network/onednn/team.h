#pragma once

// The team of OpenMP's threads that computes layers, oneDNN's and ours. Included by the files of this folder only.

#include "model/network/backend.h"

namespace freshet::model::network {

// As the calls of Backend that are named like them; UseTeam is UseThreads.
int UseTeam(int threads);
void InParallel(std::size_t count, std::size_t cost_each, RangeWork work);
void AddInto(float* to, const float* from, std::size_t count);

}  // namespace freshet::model::network
