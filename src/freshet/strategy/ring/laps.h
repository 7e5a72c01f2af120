#pragma once

#include <cstdint>
#include <vector>

#include "strategy/ring/traffic.h"

namespace freshet::strategy::ring {

// What all members must know of a step: what anybody asks for, and what the member that has the network's answer found.
struct Tidings {
  double loss = 0;
  std::uint32_t stop = 0, save = 0;
  std::vector<float> scores = {};
};

// How members of a ring tell each other, with the step's own messages: behind the last activations each adds its own and
// tells the next, up to the last member, which knows all; behind the last gradients that goes back to the first. So nobody
// waits for it longer than for those. Scores travel from the member that has the answer only.
//
// Borrows the traffic of the step, and tidings until that has ended. Threads: one.
class Laps {
 public:
  // `answers` is the rank of the member that has the answer.
  Laps(int rank, int size, int answers) : rank_(rank), size_(size), answers_(answers) {}

  // `mine`: what this member asks for; with the answer, loss and scores. The others have room for as many scores.
  Result<void> Up(Traffic& traffic, Tidings& mine);
  // After it `mine` is what all know.
  Result<void> Down(Traffic& traffic, Tidings& mine);

 private:
  struct Head {
    double loss = 0;
    std::uint32_t stop = 0, save = 0;
  };
  const int rank_, size_, answers_;
  Head in_, up_, down_;  // there while they travel
};

}  // namespace freshet::strategy::ring
