#pragma once

#include <csignal>

#include "verb.h"

namespace freshet::cli {

// While it lives, Ctrl-C and SIGTERM end the program at once, with a line and the exit code of what was stopped: for work
// that cannot be looked into and of which nothing is kept. One at a time.
class EndsAtSignals {
 public:
  explicit EndsAtSignals(const Door& door);
  EndsAtSignals(const EndsAtSignals&) = delete;
  ~EndsAtSignals();

 private:
  struct sigaction interrupt_ {};  // what was done before
  struct sigaction terminate_ {};
};

}  // namespace freshet::cli
