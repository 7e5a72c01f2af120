#pragma once

#include <functional>

#include "fabric/sim/letter.h"

namespace freshet::fabric::sim {

// What carries letters between members in simulated time. Every two have a connection, which like one of TCP brings
// everything in order or ends.
//
// Threads: as base::Fibers.
class Wires {
 public:
  virtual ~Wires() = default;

  virtual int size() const = 0;
  // Who takes the letters for a member; none: they are lost. Called from events.
  virtual void Attach(int rank, std::function<void(Letter)> take) = 0;
  virtual void Detach(int rank) = 0;
  virtual void Send(int to, Letter letter) = 0;
  virtual void Close(int from, int to) = 0;  // the other end learns of it behind what was sent
};

}  // namespace freshet::fabric::sim
