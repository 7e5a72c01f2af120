#include "deploy/tally.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace freshet::deploy {

void Tally::Save(nlohmann::ordered_json& vitals) const {
  vitals["counts"] = {learned, since_version, since_retraining, iterations};
  vitals["error_after_retraining"] = error_after_retraining;
}

Result<void> Tally::Load(const nlohmann::ordered_json& vitals) {
  const auto counts = vitals.at("counts").get<std::vector<std::uint64_t>>();
  if (counts.size() != 4) return Error{Code::kCorrupt, "the counts of a version are damaged"};
  learned = counts[0], since_version = counts[1], since_retraining = counts[2], iterations = counts[3];
  error_after_retraining = vitals.at("error_after_retraining");
  return {};
}

}  // namespace freshet::deploy
