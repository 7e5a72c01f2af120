#include "topology.h"

#include <nlohmann/json.hpp>

#include "train/trainer.h"

namespace freshet::cli {
namespace {

using fabric::Algorithm;

Result<void> CheckUsable(const fabric::Fabric& fabric, Algorithm algorithm) {
  if (algorithm != Algorithm::kNative || fabric.has_native()) return {};
  return Error{Code::kInvalid, Str("fabric ", fabric.name(),
                                   " has no all-reduce of its own (native); name another in --topology or "
                                   "--algorithm-table")};
}

// What rank 0 says, to all.
Result<std::string> FromRankZero(fabric::Collectives& collectives, const std::string& text) {
  const auto all = TRY(collectives.Gather(std::as_bytes(std::span(text.data(), text.size()))));
  return std::string(reinterpret_cast<const char*>(all[0].data()), all[0].size());
}

}  // namespace

Result<Topology> SettleTopology(Door& door, fabric::Collectives& collectives, const TopologyWishes& wishes) {
  const Algorithm algorithm = collectives.options().algorithm;
  const fabric::Fabric& fabric = collectives.fabric();
  Topology topology{.algorithm = std::string(NameOf(algorithm))};
  if (algorithm != Algorithm::kAuto) {
    TRY(CheckUsable(fabric, algorithm));
    return topology;
  }
  const std::string usual = collectives.table().ToText();
  std::string saved;
  if (wishes.table.empty() && fabric.rank() == 0) saved = TRY(train::SavedAlgorithms(door.files, wishes.checkpoint));
  saved = TRY(FromRankZero(collectives, saved));
  const std::string& told = wishes.table.empty() ? saved : wishes.table;
  topology.chosen = wishes.table.empty() ? "resumed" : "given";
  if (!told.empty()) {
    fabric::AlgorithmTable table = TRY(fabric::AlgorithmTable::FromText(told));
    for (const auto& entry : table.entries) TRY(CheckUsable(fabric, entry.algorithm));
    collectives.SetTable(std::move(table));
  } else if (wishes.measure) {
    topology.chosen = "measured";
    TRY(collectives.Calibrate(door.clock));
  } else {
    topology.chosen = "fixed";
  }
  topology.table = collectives.table().ToText();
  topology.usual = topology.table == usual;
  return topology;
}

nlohmann::ordered_json ToJson(const Topology& topology) {
  nlohmann::ordered_json json = {{"algorithm", topology.algorithm}};
  if (topology.table.empty()) return json;
  json["table"] = topology.table;
  json["chosen"] = topology.chosen;
  return json;
}

std::string ToText(const Topology& topology) {
  if (topology.algorithm.empty()) return "";
  if (topology.table.empty()) return Str("topology     ", topology.algorithm, "\n");
  return Str("topology     by bytes: ", topology.table, " (", topology.chosen, ")\n");
}

}  // namespace freshet::cli
