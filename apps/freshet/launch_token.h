#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "fabric/launch/environment.h"

namespace freshet::cli {

// The secret of a job, which its workers prove to each other to know. It travels by files only their user can read and
// by inherited descriptors, never in flags or variables, which others can see.
using Token = std::vector<std::byte>;
inline constexpr std::size_t kTokenBytes = 32;

// A new one, from the system's randomness.
Result<Token> MakeToken();

// A file without a name that holds the token, for workers to inherit. It is closed on exec unless its starter says
// otherwise.
Result<base::Descriptor> HoldToken(const Token& token);

// This worker's token: from `file` (--token-file), else from the descriptor FRESHET_TOKEN_FD that `freshet launch`, or
// whoever else started it, handed down (a file, from its beginning, or a pipe, to its end), else from the file
// FRESHET_TOKEN_FILE. Without any of them, workers that are all on one host share a file of their user in
// $XDG_RUNTIME_DIR (or /tmp), which the first of them makes.
//
// Blocking: never for long, unless a pipe does. Failure: kInvalid for a file that others may read, one that holds no
// token, or workers on several hosts without a token; kIo when a file cannot be read or made.
Result<Token> ReadToken(const std::string& file, const fabric::Place& place, const fabric::Environment& environment);

}  // namespace freshet::cli
