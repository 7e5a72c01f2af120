#pragma once

#include <vector>

#include "strategy/ring/schedule.h"
#include "strategy/ring/stage.h"
#include "strategy/strategy.h"

namespace freshet::strategy::ring {

// How a network lies with the members of a ring, and what one of them runs of it.
struct Plan {
  std::vector<model::network::Facts> facts;
  std::vector<StageCut> cut;  // of all members
  int stages_each = 1;
  Order order = Order::kOneByOne;
  std::size_t micros = 1;     // of a whole update
  std::vector<Stage> stages;  // its own
  optimize::Portion portion;  // their blocks
  std::vector<int> holders;   // by block: which member has it
  int answers = 0;            // the member that has the first head
  bool judges = false;        // this one has a head
};

// kInvalid for what does not go together: too few layers, more micro-batches than rows, layers that are not known.
Result<Plan> MakePlan(const StrategyOptions& options, const Strategy::World& world);

// Parts of it, for who only wants to know. How many micro-batches an update of so many rows is cut into where nothing is
// said: four for each member, so that filling and draining the pipeline is a small part, but none of less than four rows.
std::uint64_t UsualMicros(std::uint64_t batch, int members);
// How many stages each of so many members holds.
Result<int> StagesEach(const StrategyOptions& options, int members);

}  // namespace freshet::strategy::ring
