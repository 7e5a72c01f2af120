#include "base/writable.h"

#include <filesystem>

namespace freshet::base {

Result<void> CheckPlaceFor(const base::Files& files, const std::string& path) {
  if (std::filesystem::is_directory(path))
    return Error{Code::kInvalid, Str("cannot write ", path, ": it is a directory; name a file in it")};
  const std::size_t slash = path.rfind('/');
  if (path.empty() || slash == std::string::npos || slash == 0) return {};
  const std::string directory = path.substr(0, slash);
  if (files.Exists(directory)) return {};
  return Error{Code::kNotFound, Str("cannot write ", path, ": there is no directory ", directory, "; make it first")};
}

}  // namespace freshet::base
