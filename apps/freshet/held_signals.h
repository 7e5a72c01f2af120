#pragma once

#include <csignal>

#include "verb.h"

namespace freshet::cli {

// Keeps Ctrl-C and SIGTERM for us to ask for, while it lives.
class HeldSignals {
 public:
  explicit HeldSignals(const Door& door) : door_(door) {
    sigemptyset(&held_);
    sigaddset(&held_, SIGINT);
    sigaddset(&held_, SIGTERM);
    sigprocmask(SIG_BLOCK, &held_, &before_);
  }
  ~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;

  int Next() {
    if (door_.stop && !early_) return early_ = true, SIGTERM;  // it came before we held them
    const timespec now{};
    const int signal = sigtimedwait(&held_, nullptr, &now);
    return signal > 0 ? signal : 0;
  }

 private:
  const Door& door_;
  bool early_ = false;
  sigset_t held_, before_;
};

}  // namespace freshet::cli
