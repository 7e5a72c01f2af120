#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/files.h"

namespace freshet::base {

// A regular file inside a folder, by a name that somebody else chose: relative, without `.` or `..`, and without links
// on the way, so that nothing outside the folder can be reached. The folder itself is trusted ("": the current one).
//
// Failure: kBadInput for such a name, or for something that is no regular file; kIo when it cannot be opened.
Result<std::unique_ptr<InputFile>> OpenBeneath(const std::string& folder, std::string_view name);

}  // namespace freshet::base
