#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/settings.h"
#include "fabric/sim/flows.h"
#include "fabric/sim/platform.h"
#include "simulate/calibration.h"
#include "simulate/subject.h"
#include "verb.h"

namespace freshet::cli {

// Flags that say which cluster is simulated and what is trained on it.
struct ClusterFlags {
  std::string platform, calibration, model = "googlenet", input;

  void RegisterCluster(base::Settings& settings);  // the caller begins the groups
  void RegisterModel(base::Settings& settings);

  // The platform that is meant; perhaps the one that was measured.
  struct Found {
    fabric::sim::Platform platform;
    std::optional<simulate::Calibration> calibration;
  };
  Result<Found> Find(Door& door) const;

  // The network of a platform, of which so many nodes are used: others are not made. Becomes freshet-sim when the platform
  // needs it.
  Result<std::unique_ptr<fabric::sim::Flows>> FlowsOf(Door& door, fabric::sim::Platform& where, int nodes) const;

  // What a simulation needs.
  struct Chosen {
    fabric::sim::Platform platform;  // with as many nodes as are used, where that changes nothing else
    simulate::Subject subject;
    std::unique_ptr<simulate::Costs> costs;
    std::unique_ptr<fabric::sim::Flows> flows;
    std::map<std::string, double, std::less<>> work;
  };
  Result<simulate::Subject> OpenSubject(Door& door) const;
  // Becomes freshet-sim when the platform needs it.
  Result<Chosen> Choose(Door& door, Found found, int nodes) const;
};

}  // namespace freshet::cli
