#pragma once

#include <string>

#include "base/files.h"

namespace freshet::cli {

// Tells whoever started this process where it listens: HOST:PORT, with the host as `rendezvous` names it, and a line
// end. `where` is a file, which is there as a whole or not at all, or fd:N, an inherited descriptor, which is closed
// then.
//
// Failure: kInvalid for a descriptor that is none; kIo when it cannot be written.
Result<void> Announce(base::Files& files, const std::string& where, const std::string& rendezvous, int port);

}  // namespace freshet::cli
