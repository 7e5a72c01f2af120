#pragma once

#include <cstddef>
#include <span>

namespace freshet::fabric {

// into[i] += from[i].
void Add(std::span<float> into, const float* from);

// Writes sources[0][i] + sources[1][i] + …, added in this order, to each target; i from 0 to count. A target may be one
// of the sources; otherwise they do not overlap. Reads each source once, in stretches that stay in the nearest cache.
void SumInto(std::span<const float* const> sources, std::span<float* const> targets, std::size_t count);

}  // namespace freshet::fabric
