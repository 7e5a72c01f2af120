#include "launcher_watch.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "base/str.h"
#include "process_state.h"
#include "program.h"

namespace freshet::cli {
namespace {

constexpr std::chrono::milliseconds kLookEvery{250};
constexpr std::chrono::seconds kToEnd{30};

// As it was when that process began; what cannot be read has none.
bool HasVariable(pid_t pid, const std::string& name) {
  std::ifstream file(Str("/proc/", pid, "/environ"));
  for (std::string variable; std::getline(file, variable, '\0');)
    if (variable.starts_with(name + "=")) return true;
  return false;
}

}  // namespace

LauncherWatch::LauncherWatch(const std::string& mark) {
  if (mark.empty()) return;
  launcher_ = getppid();
  auto found = StateOf(launcher_);
  while (found.has_value() && HasVariable(launcher_, mark)) {
    launcher_ = found->parent;
    found = StateOf(launcher_);
  }
  if (!found.has_value()) return;
  started_ = found->started;
  thread_ = base::Thread(clock_, [this] { Watch(); });
}

LauncherWatch::~LauncherWatch() {
  over_.Ring();
  if (thread_.joinable()) thread_.Join();
}

bool LauncherWatch::LauncherIsThere() const {
  const auto found = StateOf(launcher_);
  return found.has_value() && !found->ended() && found->started == started_;
}

void LauncherWatch::Watch() {
  while (!over_.Wait(kLookEvery)) {
    if (LauncherIsThere()) continue;
    WriteError(Str("freshet: the launcher (process ", launcher_, ") is gone; stopping"));
    kill(getpid(), SIGTERM);
    if (over_.Wait(kToEnd)) return;
    kill(getpid(), SIGTERM);  // the second time means now
    return;
  }
}

}  // namespace freshet::cli
