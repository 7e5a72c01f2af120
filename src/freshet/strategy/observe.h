#pragma once

#include "data/rows.h"
#include "strategy/strategy.h"

namespace freshet::strategy {

// Has the model look (Model::Observe) at what all workers hand out of their rows (model/digest.h), in the order of
// ranks, so that all know the same afterwards. All call it together, some perhaps with nothing.
Result<void> ObserveTogether(const Strategy::World& world, const data::Rows& mine);

}  // namespace freshet::strategy
