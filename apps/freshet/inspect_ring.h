#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/settings.h"
#include "model/network/graph.h"
#include "strategy/strategy.h"

namespace freshet::cli {

// What `freshet inspect` shows of a network that is cut for a ring of workers: who would hold, compute and send what.
struct RingFlags {
  int members = 0;  // 0: nobody asked
  strategy::StrategyOptions how;

  void Register(base::Settings& settings);
  // For updates of so many rows, and a rule that remembers so many numbers for each parameter.
  Result<nlohmann::ordered_json> Describe(const model::network::Graph& graph, std::uint64_t batch, int slots) const;
};

// The same for people.
std::string RingText(const nlohmann::ordered_json& ring);

}  // namespace freshet::cli
