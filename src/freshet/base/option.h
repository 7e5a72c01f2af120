#pragma once

#include <string>
#include <string_view>

namespace freshet {

// The name of an option in a message. A room knows what its options are called and not how they were given: it writes
// Str(Option("batch"), " 3 has no row for some of 4 workers"), and whoever shows the text puts before the name what
// belongs there: the command line two dashes. What marks a name has no width, so that a text that is shown as it is
// reads well, too.
std::string Option(std::string_view name);

// A text with `before` before every name of an option, instead of its mark.
std::string ShowOptions(std::string_view text, std::string_view before = "");

}  // namespace freshet
