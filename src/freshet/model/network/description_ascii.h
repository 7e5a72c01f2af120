#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace freshet::model::network::text {

// The same TOML in ASCII: letters beyond it become escapes in double quotes and vanish from comments. Texts also come
// from files that others made, and the parser's behaviour is not defined for some such letters in odd places; so it
// sees none. kInvalid where one stands elsewhere, and for strings of several lines, which nothing here needs.
Result<std::string> ToAscii(std::string_view toml);

}  // namespace freshet::model::network::text
