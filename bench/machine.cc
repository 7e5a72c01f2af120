#include "machine.h"

#include <cstdio>
#include <fstream>
#include <memory>

#include "base/cores.h"
#include "base/str.h"

namespace freshet::bench {
namespace {

std::string CpuModel() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return std::string(Trim(line.substr(line.find(':') + 1)));
  return "unknown";
}

// The commit as it is now, not as it was when CMake last looked; "-dirty" when files differ from it.
std::string Commit() {
  const std::unique_ptr<FILE, int (*)(FILE*)> git(
      popen("git -C '" FRESHET_SOURCE "' describe --always --dirty 2>/dev/null", "r"), pclose);
  char line[128] = "";
  if (git == nullptr || std::fgets(line, sizeof line, git.get()) == nullptr) return "unknown";
  return std::string(Trim(line));
}

std::string BuildWarning() {
#if !defined(__OPTIMIZE__)
  return "built without optimisation: timings say nothing";
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "built with a sanitizer: timings say nothing";
#else
  return "";
#endif
}

}  // namespace

std::string Machine::ToText() const {
  std::string out = Str("    machine   ", cpu, ", ", cores, cores == 1 ? " core" : " cores", "\n    compiler  ",
                        compiler, "\n    flags     ", flags, "\n    commit    ", commit, "\n");
  if (!warning.empty()) out += Str("    WARNING   ", warning, "\n");
  return out;
}

Machine ThisMachine() {
#if defined(__clang__)
  const std::string compiler = __VERSION__;
#else
  const std::string compiler = "g++ " __VERSION__;
#endif
  return {CpuModel(), base::AvailableCores(), compiler, FRESHET_FLAGS, Commit(), BuildWarning()};
}

}  // namespace freshet::bench
