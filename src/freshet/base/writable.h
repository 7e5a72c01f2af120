#pragma once

#include <string>

#include "base/files.h"

namespace freshet::base {

// kNotFound when the directory of a file to be written is not there, kInvalid when the file is a directory: better
// known before the work than after.
Result<void> CheckPlaceFor(const Files& files, const std::string& path);

}  // namespace freshet::base
