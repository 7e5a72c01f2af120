#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace freshet::cli {

// Could freshet train be given this text as --config? `name` is what the text is called in what is wrong with it.
// kInvalid with one line per mistake, and when it has to name data and does not.
Result<void> CheckTrainConfig(std::string_view toml, const std::string& name, bool data);

}  // namespace freshet::cli
