#include "sibling.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

namespace freshet::cli {

Error BecomeSibling(const std::string& name, const std::vector<std::string>& arguments, std::string_view what,
                    std::string_view how) {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  if (length < 0) return {Code::kIo, Str("cannot find out where this program lies: ", std::strerror(errno))};
  std::string path(self, static_cast<std::size_t>(length));
  path = path.substr(0, path.rfind('/') + 1) + name;
  std::vector<char*> argv = {path.data()};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(path.c_str(), argv.data());
  if (errno != ENOENT) return {Code::kIo, Str("cannot run ", path, ": ", std::strerror(errno))};
  return {Code::kInvalid, Str(what, " needs ", path, ", which is not there: ", how)};
}

}  // namespace freshet::cli
