#pragma once

#include <cstddef>
#include <string_view>

namespace freshet::base {

// How many bytes the UTF-8 character at the beginning of `text` has; 0 when there is none.
std::size_t CharacterBytes(std::string_view text);

bool IsUtf8(std::string_view text);

}  // namespace freshet::base
