#pragma once

#include <cstdint>
#include <vector>

#include "strategy/ring/traffic.h"

namespace freshet::strategy::ring {

// What all members must know of a step: what anybody asks for, and what the member that has the network's answer found.
struct Tidings {
  double loss = 0;
  std::uint32_t stop = 0, save = 0, admit = 0;
  bool answered = false;  // loss and scores are there
  std::vector<float> scores = {};
};

// How members of a ring tell each other, with the step's own messages: behind the last activations each adds its own and
// tells the next, up to the last member, which knows all; behind the last gradients that goes back to the first. So nobody
// waits for it longer than for those. Scores travel from the member that has the answer only. On the way neighbours tell
// each other how busy they are, and nobody else.
//
// Borrows the traffic of the step, and tidings until that has ended. Threads: one.
class Laps {
 public:
  Laps(int rank, int size) : rank_(rank), size_(size) {}

  // `mine`: what this member asks for; with the answer, loss and scores. The others have room for as many scores.
  // `busy`: seconds of a step in which it computes, as far as it wants that to be known.
  Result<void> Up(Traffic& traffic, Tidings& mine, double busy);
  // After it `mine` is what all know.
  Result<void> Down(Traffic& traffic, Tidings& mine, double busy);

  // What the neighbours told with this step.
  double busy_before() const { return busy_before_; }
  double busy_next() const { return busy_next_; }

 private:
  struct Head {
    double loss = 0, busy = 0;
    std::uint32_t stop = 0, save = 0, admit = 0, answered = 0;
  };
  const int rank_, size_;
  Head in_, up_, down_;        // there while they travel
  bool before_knows_ = false;  // the answer came up from there
  double busy_before_ = 0, busy_next_ = 0;
};

}  // namespace freshet::strategy::ring
