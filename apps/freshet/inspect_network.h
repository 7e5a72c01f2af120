#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/settings.h"
#include "inspect_ring.h"
#include "model/network/graph.h"
#include "verb.h"

namespace freshet::cli {

// What `freshet inspect` shows of a network: its layers and what they cost, as a table, as JSON, as a picture or as the
// text that describes it. A network needs no weights for that: one of the zoo or a text will do.
struct NetworkFlags {
  std::string network, input, draw, optimizer = "momentum";
  std::uint64_t classes = 0, batch = 32;
  bool toml = false;
  RingFlags ring;

  void Register(base::Settings& settings);
  // The network that `network` names: one of the zoo, a text (.toml) or a saved model.
  Result<model::network::Graph> Open(Door& door) const;
  // Layers and totals. Draws the picture when one is asked for.
  Result<nlohmann::ordered_json> Describe(Door& door, const model::network::Graph& graph) const;
};

// The same for people.
std::string NetworkText(const nlohmann::ordered_json& network);

Result<void> InspectNetwork(Door& door, const NetworkFlags& flags, bool json);

}  // namespace freshet::cli
