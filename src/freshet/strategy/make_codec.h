#pragma once

#include <memory>

#include "fabric/codecs/codec.h"
#include "strategy/strategy.h"

namespace freshet::strategy {

// The codec in whose form gradients travel by these options. "power" is none: it is a way to make a sum.
Result<std::unique_ptr<fabric::Codec>> MakeCodec(const StrategyOptions& options);

}  // namespace freshet::strategy
