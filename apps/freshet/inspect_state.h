#pragma once

#include <string>

#include "verb.h"

namespace freshet::cli {

// What `freshet inspect` shows of the directory of a deployment: versions, what the journal holds, damaged places, and
// its last `records` records. Reads only, so that it may be used beside the server.
Result<void> InspectState(Door& door, const std::string& directory, std::uint64_t records, bool json);

}  // namespace freshet::cli
