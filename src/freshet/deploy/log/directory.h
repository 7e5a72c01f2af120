#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace freshet::deploy {

// The files of a directory whose names end in `ending`, sorted; none is no error. Characters that mean something in a
// pattern may stand in the directory's name.
inline Result<std::vector<std::string>> FilesIn(const base::Files& files, const std::string& directory,
                                                std::string_view ending) {
  std::string pattern;
  for (const char c : directory) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  auto found = files.Glob(Str(pattern, "/*", ending));
  if (!found.ok() && found.error().code == Code::kNotFound) return std::vector<std::string>();
  return found;
}

}  // namespace freshet::deploy
