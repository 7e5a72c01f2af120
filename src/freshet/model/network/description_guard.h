#pragma once

#include <string_view>

#include "base/result.h"

namespace freshet::model::network::text {

// Texts also come from files that others made, and the TOML parser's behaviour is not defined when some letters beyond
// ASCII stand outside of quotes and comments. Refuses texts where any do or might seem to: quotes begin after a blank
// or one of = [ { , and end in the same line.
Result<void> CheckForParser(std::string_view toml);

}  // namespace freshet::model::network::text
