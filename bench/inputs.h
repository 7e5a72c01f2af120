#pragma once

#include <optional>
#include <string>

#include "data/generate.h"
#include "data/rows.h"
#include "sections.h"

namespace freshet::bench {

// Generates data into a file of the scratch directory and returns its path.
Result<std::string> GenerateFile(Context& context, const data::GenerateOptions& options);

// A real data set, by its name under the data directory; nothing when it is not there.
std::optional<std::string> FindData(const Context& context, const std::string& name);

// All the text of a file, unpacked.
Result<std::string> ReadText(base::Files& files, const std::string& path);

// Reads all rows of a file as one block.
Result<data::Rows> ReadRows(const base::Env& env, const std::string& path);

}  // namespace freshet::bench
