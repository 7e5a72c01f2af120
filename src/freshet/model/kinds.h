#pragma once

#include <memory>

#include "model/model.h"

// The kinds of models. A new one is a file like linear.cc, a line here and a line in the registry of model.cc.
namespace freshet::model {

using ModelPtr = std::unique_ptr<Model>;
ModelPtr MakeLinear(const ModelConfig& config, const Loss& loss);
ModelPtr MakeFactorization(const ModelConfig& config, const Loss& loss);
ModelPtr MakeFactorizationMachine(const ModelConfig& config, const Loss& loss);
ModelPtr MakeKMeans(const ModelConfig& config, const Loss& loss);

}  // namespace freshet::model
