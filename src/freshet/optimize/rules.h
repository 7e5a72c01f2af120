#pragma once

#include <memory>

#include "optimize/optimizer.h"

// The update rules. A new one is a file like sgd.cc, a line here and a line in the registry of optimizer.cc.
namespace freshet::optimize {

using OptimizerPtr = std::unique_ptr<Optimizer>;
OptimizerPtr MakeAdaptive(const OptimizerOptions& options, Memory& memory);
OptimizerPtr MakeSgd(const OptimizerOptions& options, Memory& memory);
OptimizerPtr MakeMomentum(const OptimizerOptions& options, Memory& memory);
OptimizerPtr MakeAdaGrad(const OptimizerOptions& options, Memory& memory);
OptimizerPtr MakeAdam(const OptimizerOptions& options, Memory& memory);
OptimizerPtr MakeFtrl(const OptimizerOptions& options, Memory& memory);

}  // namespace freshet::optimize
