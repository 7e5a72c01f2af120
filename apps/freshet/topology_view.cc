#include "topology_view.h"

#include <nlohmann/json.hpp>

namespace freshet::cli {

nlohmann::ordered_json ToJson(const train::Topology& topology) {
  nlohmann::ordered_json json = {{"algorithm", topology.algorithm}};
  if (topology.table.empty()) return json;
  json["table"] = topology.table;
  json["chosen"] = topology.chosen;
  return json;
}

std::string ToText(const train::Topology& topology) {
  if (topology.algorithm.empty()) return "";
  if (topology.table.empty()) return Str("topology     ", topology.algorithm, "\n");
  return Str("topology     by bytes: ", topology.table, " (", topology.chosen, ")\n");
}

}  // namespace freshet::cli
