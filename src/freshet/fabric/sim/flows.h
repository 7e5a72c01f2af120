#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/fibers.h"

namespace freshet::fabric::sim {

// How long bytes take between the nodes of a platform while others are under way, too: the network's share of a
// simulation, which may be somebody else's simulator.
//
// Threads: as base::Fibers, beside which it runs.
class Flows : public base::Pace {
 public:
  using Duration = base::Clock::Duration;

  // Another simulation begins, at 0; nothing is under way.
  virtual void Restart() = 0;
  // Bytes begin to leave `from` now; `left` is called when the last has. None are under way between a node and itself.
  virtual void Start(int from, int to, double bytes, std::function<void()> left) = 0;
  // From the last byte's leaving to its arrival.
  virtual Duration Latency(int from, int to) = 0;

  // What went over each link that something went over.
  struct Link {
    std::string name;
    double bytes = 0;
    double bytes_per_second = 0;  // it could carry
  };
  virtual std::vector<Link> Carried() const = 0;
};

}  // namespace freshet::fabric::sim
