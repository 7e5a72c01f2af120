#include "cluster_flags.h"

#include "base/option.h"
#include "fabric/sim/star_flows.h"
#include "model/network/description.h"
#include "sibling.h"

namespace freshet::cli {

using fabric::sim::Platform;

void ClusterFlags::RegisterCluster(base::Settings& settings) {
  settings.Add("platform", &platform,
               Str("a cluster by name (", Join(Platform::KnownNames(), ", "), ") or a .toml file"), {.value = "NAME"});
  settings.Add("calibration", &calibration,
               "what freshet bench --calibrate measured: computing costs that, and without a platform it is simulated",
               {.value = "FILE"});
}

void ClusterFlags::RegisterModel(base::Settings& settings) {
  settings.Add("model", &model, "a network of the zoo or a text (.toml), or url-like, a linear model of sparse rows",
               {.letter = 'm', .value = "NAME"});
  settings.Add("input", &input, "shape of its inputs, or how many features (its own, if not given)",
               {.value = "3x224x224"});
}

Result<ClusterFlags::Found> ClusterFlags::Find(Door& door) const {
  Found found;
  if (!calibration.empty())
    found.calibration = TRY(simulate::Calibration::FromJson(TRY(base::ReadAll(door.files, calibration)), calibration));
  if (platform.empty() && !found.calibration)
    return Error{Code::kInvalid, Str(Option("platform"), " NAME is needed: ", Join(Platform::KnownNames(), ", "),
                                     ", or a .toml file (freshet simulate --list shows those)")};
  if (platform.empty())
    found.platform = found.calibration->platform;
  else if (platform.ends_with(".toml"))
    found.platform = TRY(Platform::Read(TRY(base::ReadAll(door.files, platform)), platform));
  else
    found.platform = TRY(Platform::Known(platform));
  return found;
}

Result<std::unique_ptr<fabric::sim::Flows>> ClusterFlags::FlowsOf(Door& door, Platform& where, int nodes) const {
  if (where.topology != "star" && !door.extras.make_flows)
    return BecomeSibling("freshet-sim", door.arguments, Str("a ", where.topology),
                         "install libsimgrid-dev and build again, or use a platform that is a star");
  if (nodes > where.nodes) return Error{Code::kInvalid, Str(nodes, " nodes of ", where.name, ": it has ", where.nodes)};
  if (where.topology == "star" || where.topology == "fat-tree") where.nodes = nodes;
  if (where.topology == "regions")  // those that are used are in all of them
    where.nodes = std::max(nodes, fabric::sim::PartsOf(where.shape, 'x')[0]);
  if (where.topology == "star")
    return std::unique_ptr<fabric::sim::Flows>(std::make_unique<fabric::sim::StarFlows>(where));
  return door.extras.make_flows(where);
}

Result<simulate::Subject> ClusterFlags::OpenSubject(Door& door) const {
  if (!model.ends_with(".toml")) return simulate::Subject::Of(model, input);
  if (!input.empty())
    return Error{Code::kInvalid, Str(Option("input"), " ", input, ": the text ", model, " says what its input is")};
  const std::string text = TRY(base::ReadAll(door.files, model));
  return simulate::Subject::OfNetwork(
      model, TRY(model::network::GraphFromToml(text).While(Str("reading ", model, " (it has to say all sizes)"))));
}

Result<ClusterFlags::Chosen> ClusterFlags::Choose(Door& door, Found found, int nodes) const {
  Chosen chosen;
  chosen.platform = std::move(found.platform);
  Platform& here = chosen.platform;
  chosen.subject = TRY(OpenSubject(door));
  chosen.flows = TRY(FlowsOf(door, here, nodes));
  if (found.calibration) {
    chosen.costs = std::make_unique<simulate::MeasuredCosts>(TRY(found.calibration->CostsOf(model, input)));
    chosen.work = found.calibration->work;
  } else {
    chosen.costs = TRY(chosen.subject.CostsOn(here));
  }
  return chosen;
}

}  // namespace freshet::cli
