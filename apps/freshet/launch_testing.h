#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "base/descriptor.h"
#include "base/str.h"

namespace freshet::cli {

// Has this process ended? One that nobody has waited for yet has, too.
inline bool Gone(pid_t pid) {
  if (kill(pid, 0) != 0) return true;
  char text[512] = {};
  const base::Descriptor file(open(Str("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open() || pread(file.get(), text, sizeof text - 1, 0) <= 0) return true;
  return std::string(text).find(") Z") != std::string::npos;
}

// Waits for it, for at most some seconds.
inline bool SoonGone(pid_t pid) {
  for (int i = 0; i < 2000 && !Gone(pid); ++i) usleep(10'000);
  return Gone(pid);
}

}  // namespace freshet::cli
