#pragma once

#include <string_view>

#include "base/result.h"

namespace freshet::model::network::text {

// Texts also come from files that others made, and the TOML parser counts on two things without looking: letters
// beyond ASCII stand in quotes or comments, and a table's header ([name], [[name]]) begins with a name. Refuses texts
// where that is not so, and strings of several lines, which nothing here needs.
Result<void> CheckForParser(std::string_view toml);

}  // namespace freshet::model::network::text
