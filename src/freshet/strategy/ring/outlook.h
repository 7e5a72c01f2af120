#pragma once

#include <cstdint>
#include <vector>

#include "strategy/ring/schedule.h"
#include "strategy/ring/stage.h"

namespace freshet::strategy::ring {

// What a ring would be like for one of its members, told before anything runs.
struct Outlook {
  std::vector<StageCut> stages;
  std::uint64_t parameters = 0;
  std::uint64_t working_bytes = 0;  // of activations, their gradients and kernels, with the micro-batches under way
  double cost_share = 0;            // of the estimated cost of all members
  std::uint64_t bytes_next = 0, bytes_back = 0;  // of tensors, for an update, to the next member and the one before
};

// By member; of those who recompute, or of others. kInvalid for what cannot be cut or run.
Result<std::vector<Outlook>> LookAhead(const model::network::Graph& graph, const model::network::Backend& backend,
                                       const CutOptions& options, Order order, bool recompute);

}  // namespace freshet::strategy::ring
