#include "process_state.h"

#include <fstream>
#include <sstream>

#include "base/str.h"

namespace freshet::cli {

std::optional<ProcessState> StateOf(pid_t pid) {
  std::ifstream file(Str("/proc/", pid, "/stat"));
  std::string line;
  if (!std::getline(file, line, '\0')) return std::nullopt;
  const std::size_t name_end = line.rfind(')');  // a name may hold anything, also spaces, brackets and ends of lines
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  ProcessState found;
  fields >> found.state >> found.parent;
  constexpr int kFieldsBetween = 17;  // from the parent, the 4th, to the time of the start, the 22nd
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  if (!(fields >> found.started)) return std::nullopt;
  return found;
}

}  // namespace freshet::cli
