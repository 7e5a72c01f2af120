#include "train/topology.h"

#include "base/option.h"
#include "train/checkpoints.h"

namespace freshet::train {
namespace {

using fabric::Algorithm;

Result<void> CheckUsable(const fabric::Fabric& fabric, Algorithm algorithm) {
  if (algorithm != Algorithm::kNative || fabric.has_native()) return {};
  return Error{Code::kInvalid, Str("fabric ", fabric.name(), " has no all-reduce of its own (native); name another in ",
                                   Option("topology"), " or ", Option("algorithm-table"))};
}

}  // namespace

Result<std::string> FromRankZero(fabric::Collectives& collectives, const std::string& text) {
  const auto all = TRY(collectives.Gather(std::as_bytes(std::span(text.data(), text.size()))));
  return std::string(reinterpret_cast<const char*>(all[0].data()), all[0].size());
}

Result<Topology> SettleTopology(base::Files& files, base::Clock& clock, fabric::Collectives& collectives,
                                const TopologyWishes& wishes) {
  const Algorithm algorithm = collectives.options().algorithm;
  const fabric::Fabric& fabric = collectives.fabric();
  Topology topology{.algorithm = std::string(NameOf(algorithm))};
  if (algorithm != Algorithm::kAuto) {
    TRY(CheckUsable(fabric, algorithm));
    return topology;
  }
  const std::string usual = collectives.table().ToText();
  std::string saved;
  if (wishes.table.empty() && fabric.rank() == 0) saved = TRY(SavedAlgorithms(files, wishes.checkpoint));
  saved = TRY(FromRankZero(collectives, saved));
  const std::string& told = wishes.table.empty() ? saved : wishes.table;
  topology.chosen = wishes.table.empty() ? "resumed" : "given";
  if (!told.empty()) {
    fabric::AlgorithmTable table = TRY(fabric::AlgorithmTable::FromText(told));
    for (const auto& entry : table.entries) TRY(CheckUsable(fabric, entry.algorithm));
    collectives.SetTable(std::move(table));
  } else if (wishes.measure) {
    topology.chosen = "measured";
    TRY(collectives.Calibrate(clock));
  } else {
    topology.chosen = "fixed";
  }
  topology.table = collectives.table().ToText();
  topology.usual = topology.table == usual;
  return topology;
}

}  // namespace freshet::train
