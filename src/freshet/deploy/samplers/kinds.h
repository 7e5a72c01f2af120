#pragma once

#include <memory>

#include "deploy/samplers/sampler.h"

// The kinds of samplers. A new one is a file like recent.cc, a line here and a line in the registry of
// sampler.cc.
namespace freshet::deploy {

using SamplerPtr = std::unique_ptr<Sampler>;
SamplerPtr MakeUniformSampler(const SamplerOptions& options, std::uint64_t seed);
SamplerPtr MakeSweepSampler(const SamplerOptions& options, std::uint64_t seed);
SamplerPtr MakeRecentSampler(const SamplerOptions& options, std::uint64_t seed);
SamplerPtr MakeWindowSampler(const SamplerOptions& options, std::uint64_t seed);
SamplerPtr MakeReservoirSampler(const SamplerOptions& options, std::uint64_t seed);
SamplerPtr MakeHardSampler(const SamplerOptions& options, std::uint64_t seed);
SamplerPtr MakeNoSampler(const SamplerOptions& options, std::uint64_t seed);

}  // namespace freshet::deploy
