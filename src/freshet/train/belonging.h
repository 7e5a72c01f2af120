#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/together.h"

namespace freshet::train {

// Some options are looked at by some strategies alone: given with another one they would do nothing, and nobody would
// know. An option counts as given when it differs from its default.

// kInvalid for an option that was given and that none of these ways of training together uses; `not_with` is what they
// are called in the message.
Result<void> CheckBelonging(const std::vector<Together>& ways, std::string_view not_with);

// Options that its strategy does not use are as if they had not been given.
void DropForeign(Together& together);

}  // namespace freshet::train
