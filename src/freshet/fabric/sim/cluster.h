#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/fibers.h"
#include "fabric/sim/cores.h"
#include "fabric/sim/flows.h"
#include "fabric/sim/platform.h"
#include "fabric/sim/platform_network.h"
#include "fabric/sim/sim_fabric.h"

namespace freshet::fabric::sim {

struct ClusterOptions {
  Platform platform;
  int nodes = 1;                                         // of the platform's that are used: the first ones
  int workers_per_node = 1;                              // ranks of a node follow each other
  int more_nodes = 0;                                    // behind those, with one worker each
  std::uint64_t seed = 1;                                // of the order of what happens at once
  std::map<std::string, double, std::less<>> work = {};  // seconds a byte, for Charges::work
  int slow_node = -1;                                    // one whose cores take slow_times as long
  double slow_times = 1;
  SimOptions fabric = {};  // hosts are filled in
};

// Workers on the nodes of a platform, in simulated time: how long something takes there. (For what goes wrong, see
// World.)
//
// Threads: one. Blocking: Run, until all bodies have returned. Ownership: borrows the flows.
class Cluster {
 public:
  class Member;
  using Body = std::function<void(Member& member)>;

  Cluster(ClusterOptions options, Flows& flows);
  ~Cluster();

  void Run(const Body& body);

  int size() const { return static_cast<int>(node_of_.size()); }
  base::Clock::Duration now() const { return fibers_.Now(); }
  const Cores& cores(int node) const { return *cores_[static_cast<std::size_t>(node)]; }
  std::uint64_t letters() const { return network_.letters(); }
  // Seconds that each rank's core spent on messages: taking, adding, encoding.
  const std::vector<double>& on_messages() const { return on_messages_; }

 private:
  const ClusterOptions options_;
  base::Fibers fibers_;
  Flows& flows_;
  std::vector<int> node_of_;
  PlatformNetwork network_;
  std::vector<std::unique_ptr<Cores>> cores_;  // by node
  std::vector<double> on_messages_;            // by rank
};

// What the body of one worker is given.
class Cluster::Member {
 public:
  Member(Cluster& cluster, int rank) : cluster_(cluster), rank_(rank) {}

  int rank() const { return rank_; }
  int node() const { return cluster_.node_of_[static_cast<std::size_t>(rank_)]; }
  base::Clock& clock() { return cluster_.fibers_; }
  Cores& cores() { return *cluster_.cores_[static_cast<std::size_t>(node())]; }
  std::unique_ptr<Fabric> Connect();  // its place in the group; one at a time

 private:
  Cluster& cluster_;
  const int rank_;
};

}  // namespace freshet::fabric::sim
