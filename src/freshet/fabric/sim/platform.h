#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace freshet::fabric::sim {

// A cluster as it is described: equal nodes, what joins them, and what they do in a second. As a file it is TOML, one key
// for each of these (Read); some are known by name (Known).
struct Platform {
  std::string name = "platform";
  std::string about;

  // Nodes.
  int nodes = 1;                                    // there are so many
  int cores = 1;                                    // of each
  double core_gflops = 10;                          // floating-point operations of a core, single precision, at best
  double memory_gb_s = 10;                          // bytes that the cores of a node read and write together
  std::vector<std::string> efficiency = {"1=0.5"};  // "rows=share": of the best, at so many rows to compute at once
  double disk_mb_s = 500;                           // of each node
  double shared_disk_gb_s = 0;                      // of a file system that all nodes read from; 0: there is none

  // What joins them. Each node has a link of its own, as fast in as out.
  std::string topology = "star";  // star, fat-tree, torus, dragonfly, regions
  std::string shape;              // fat-tree "18:18" (nodes of a leaf switch, its links up); torus "4x4x8";
                                  // dragonfly "4x2x4x2" (groups, chassis, routers, nodes of a router); regions "3"
  double link_gbit = 10;          // a second; of all links but those that have one of their own
  double link_us = 10;            // latency of a link
  double trunk_gbit = 1;          // regions: of the links between them
  double trunk_ms = 30;           // regions: their latency
  double window_mb = 0;           // a connection has at most so much under way; 0: any amount
  double share = 0.95;            // of a link's speed that is left for what is sent
  double local_gb_s = 5;          // between workers of one node
  double local_us = 5;

  // What a message costs the core that takes it.
  double message_us = 5;
  double crowded_us = 0;  // more than that, on a node that has more workers than cores
  double copy_gb_s = 5;
  double add_gb_s = 3;
  double short_gb_s = 0;  // copied or added in messages of up to 256 KB, which stay in a core's cache; 0: as others
  double codec_gb_s = 1;  // of floats, encoded or decoded, by any codec that was not measured

  // kInvalid with one line for each thing that cannot be.
  Result<void> Validate() const;
  static Result<Platform> Read(std::string_view text, const std::string& name);
  // Those that come with the program.
  static std::vector<std::string> KnownNames();
  static Result<Platform> Known(std::string_view name);
  std::string ToToml() const;

  // The share of a core's best speed that is reached with so many rows at once: between two that are given, in
  // proportion to the logarithm of the rows.
  double EfficiencyAt(double rows) const;
};

// The whole numbers of a shape, from 1 on; none where something is not one.
std::vector<int> PartsOf(std::string_view shape, char between);

}  // namespace freshet::fabric::sim
