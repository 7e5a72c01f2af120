#pragma once

#include <vector>

#include "strategy/ring/schedule.h"
#include "strategy/ring/stage.h"
#include "strategy/strategy.h"

namespace freshet::strategy::ring {

// How a network lies with the members of a ring, and what one of them runs of it.
struct Plan {
  std::vector<model::network::Facts> facts;
  Places places;
  int stages_each = 1;
  Order order = Order::kOneByOne;
  std::size_t micros = 1;        // of a whole update
  std::size_t micro_rows = 1;    // at most
  std::vector<LayerRange> held;  // by this member, stage by stage
  std::vector<Stage> stages;     // the same, made ready
};

// kInvalid for what does not go together: too few layers, more micro-batches than rows, layers that are not known.
Result<Plan> MakePlan(const StrategyOptions& options, const Strategy::World& world);
// That a network can be cut for so many members.
Result<void> CheckCut(const StrategyOptions& options, const model::Model& model, int members);
// Makes ready the stages of a plan as it is held now, of which those that did not change stay.
Result<void> MakeStages(const StrategyOptions& options, const Strategy::World& world, Plan& plan);
// That there are places for the messages of all tensors that would cross a cut there.
bool CanCross(const Plan& plan, std::size_t place);

// Parts of it, for who only wants to know. How many micro-batches an update of so many rows is cut into where nothing is
// said: four for each member, so that filling and draining the pipeline is a small part, but none of less than four rows.
std::uint64_t UsualMicros(std::uint64_t batch, int members);
// How many stages each of so many members holds.
Result<int> StagesEach(const StrategyOptions& options, int members);

}  // namespace freshet::strategy::ring
