#pragma once

#include <memory>

#include "model/model.h"

namespace freshet::model {

// The same model with room for more classes: linear with softmax, or a network whose heads are fully connected layers
// and meet the label by softmax. What it has learned goes over by deploy::State::TakeFewerClasses. kInvalid with the
// reason for models that cannot have more.
Result<std::unique_ptr<Model>> WithClasses(const Model& model, std::uint64_t classes);

}  // namespace freshet::model
