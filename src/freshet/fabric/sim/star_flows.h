#pragma once

#include <list>

#include "fabric/sim/flows.h"
#include "fabric/sim/platform.h"

namespace freshet::fabric::sim {

// Nodes around a switch that is never the bottleneck. Flows share each node's link, in and out, as fairly as can be:
// none could have more without one that has no more having less. For up to some hundred flows at a time.
class StarFlows final : public Flows {
 public:
  explicit StarFlows(const Platform& platform);

  void Restart() override;
  Duration Advance(Duration until) override;
  void Start(int from, int to, double bytes, std::function<void()> left) override;
  Duration Latency(int from, int to) override;
  std::vector<Link> Carried() const override;

 private:
  struct Flow {
    int from = 0, to = 0;
    double bytes = 0, rate = 0;  // left, and of them in a second
    std::function<void()> left;
  };
  void Share();
  void Pass(double seconds);

  const double rate_, limit_;  // of a link, and of a connection by its window
  const Duration latency_;
  double now_ = 0;       // seconds
  bool shared_ = false;  // do the rates fit those that are under way?
  std::list<Flow> flows_;
  std::vector<double> in_, out_;  // bytes, by node
};

}  // namespace freshet::fabric::sim
