#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace freshet::cli {

// What the system says of a process, by /proc.
struct ProcessState {
  char state = '?';           // R, S, D: at work or waiting; T: stopped by a signal; Z: ended, and nobody has asked how
  pid_t parent = 0;           // who started it, or who has taken it over
  std::uint64_t started = 0;  // in ticks since the system's start: numbers of processes are used again

  bool frozen() const { return state == 'T'; }
  bool ended() const { return state == 'Z' || state == 'X'; }
};

// Nothing when there is no such process, or it is hidden from us.
std::optional<ProcessState> StateOf(pid_t pid);

}  // namespace freshet::cli
