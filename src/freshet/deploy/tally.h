#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace freshet::deploy {

// What a deployment has counted of its own doings. It is kept with every version, so that a restart goes on counting.
//
// Threads: one at a time.
struct Tally {
  std::uint64_t learned = 0;           // observations, by whatever model there was
  std::uint64_t since_version = 0;     // observations since updates were last kept as a version
  std::uint64_t since_retraining = 0;  // observations
  std::uint64_t iterations = 0;        // that took over, retrainings among them
  double error_after_retraining = -1;  // the recent one, at that moment; below 0: there was none yet

  // Observations that came; the model learned from them, or not.
  void Add(std::uint64_t rows, bool learns) {
    if (learns) learned += rows;
    since_version += rows;
    since_retraining += rows;
  }

  // Adds it to a version's vitals, and back. kCorrupt when it cannot come from Save; Load may throw what the JSON
  // library throws.
  void Save(nlohmann::ordered_json& vitals) const;
  Result<void> Load(const nlohmann::ordered_json& vitals);
};

}  // namespace freshet::deploy
