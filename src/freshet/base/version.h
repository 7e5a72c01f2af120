#pragma once

#include <string_view>

namespace freshet {

// Of the library and everything that is made of it: "0.1.0".
std::string_view Version();

}  // namespace freshet
