#pragma once

#include "strategy/modules/assembly.h"
#include "strategy/ring/schedule.h"

namespace freshet::strategy::modules {

// The order in which members run the micro-batches of an update through their modules (an action's `stage` is the number
// of a module): that of a run of all members which was made beforehand, in time as the modules are estimated to take,
// each doing what it can do soonest, of that what goes back first. Who follows it never comes to a halt, since that run
// came to its end. Micro-batches pass each module in their order, forward and back.
//
//   flush  all forward, then all back
//   1f1b   back as soon as possible; of a module so many micro-batches are under way at most as there are modules, one
//          after another, from there to the end of the network
//
// kInvalid for other orders.
Result<ring::Schedule> MakeOrder(const Assembly& assembly, ring::Order order, std::size_t micros);

}  // namespace freshet::strategy::modules
