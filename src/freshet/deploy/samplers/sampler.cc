#include "deploy/samplers/sampler.h"

#include "deploy/samplers/kinds.h"

namespace freshet::deploy {
namespace {

// The registry: one line for each kind.
struct Entry {
  std::string_view name;
  std::unique_ptr<Sampler> (*make)(const SamplerOptions& options, std::uint64_t seed);
};
constexpr Entry kRegistry[] = {
    {"uniform", MakeUniformSampler}, {"sweep", MakeSweepSampler},         {"recent", MakeRecentSampler},
    {"window", MakeWindowSampler},   {"reservoir", MakeReservoirSampler}, {"hard", MakeHardSampler},
    {"none", MakeNoSampler},
};

const Entry* Find(std::string_view kind) {
  for (const Entry& entry : kRegistry)
    if (entry.name == kind) return &entry;
  return nullptr;
}

}  // namespace

std::vector<std::string> Sampler::Kinds() {
  std::vector<std::string> names;
  for (const Entry& entry : kRegistry) names.emplace_back(entry.name);
  return names;
}

Result<void> SamplerOptions::Validate() const {
  std::vector<std::string> wrong;
  if (Find(kind) == nullptr)
    wrong.push_back(Str("sampler ", Quoted(kind), ": expected one of ", Join(Sampler::Kinds(), ", ")));
  if (reservoir_rows == 0) wrong.push_back("reservoir_rows 0: expected 1 or more");
  if (window_rows == 0) wrong.push_back("window_rows 0: expected 1 or more");
  if (!(half_life >= 1e-9 && half_life <= 1e6))  // beyond, the law would leave the range of numbers
    wrong.push_back(Str("half_life ", half_life, ": expected a share of the history from 1e-9 to 1e6, e.g. 0.25"));
  if (!wrong.empty()) return Error{Code::kInvalid, Join(wrong, "; ")};
  return {};
}

Result<std::unique_ptr<Sampler>> Sampler::Make(const SamplerOptions& options, std::uint64_t seed) {
  TRY(options.Validate());
  return Find(options.kind)->make(options, seed);
}

}  // namespace freshet::deploy
