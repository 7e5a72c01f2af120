#pragma once

#include <memory>

#include "fabric/sim/flows.h"
#include "fabric/sim/platform.h"

namespace freshet::fabric::sim {

// The flows of a platform as SimGrid's network model moves them: fat trees, tori, dragonflies, regions, with contention
// on every link of the way.
//
// SimGrid has one engine in a process, and so has a process one of these at a time, and in all its life one platform.
// It can be used for one simulation after another.
//
// kInvalid when this process had another platform before, or SimGrid refuses it.
Result<std::unique_ptr<Flows>> MakeSimGridFlows(const Platform& platform);

}  // namespace freshet::fabric::sim
