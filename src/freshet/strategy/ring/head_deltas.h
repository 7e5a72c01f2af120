#pragma once

#include <span>
#include <vector>

#include "model/network/head_loss.h"
#include "strategy/ring/stage.h"

namespace freshet::strategy::ring {

// Loss and deltas at the heads of stages. Threads: one. Borrows the loss.
class HeadDeltas {
 public:
  explicit HeadDeltas(const model::network::HeadLoss& loss) : loss_(loss) {}

  // Of a micro-batch that a stage has run forward: those rows, and the same as the network reads them, where a head asks
  // for that. Gives the loss at the network's answer, 0 where that is not here, and copies its scores, unless there is no
  // room for any.
  double Make(Stage& stage, std::size_t micro, const data::Batch& rows, const float* input, std::span<float> scores);

 private:
  const model::network::HeadLoss& loss_;
  std::vector<float> unwanted_;
};

}  // namespace freshet::strategy::ring
