#pragma once

#include <string>

#include "base/descriptor.h"

namespace freshet::cli {

// Carries what a worker writes to one of our own outputs, line by line, each with the worker's mark before it, so that
// lines of several workers do not mix.
//
// Threads: one. Blocking: only where it writes to. What nobody can take any more (a closed pipe) is dropped.
class LineRelay {
 public:
  // Reads from `from`, which does not block; writes to `to`, which it borrows.
  LineRelay(base::Descriptor from, int to, std::string mark);

  int descriptor() const { return from_.get(); }
  bool open() const { return from_.open(); }
  // Carries what is there; at the end of it, also a last line without an end, and closes.
  void Pump();
  // The same, at once: what has not been written by now does not count.
  void Finish();

 private:
  void Carry(std::string_view line);

  base::Descriptor from_;
  const int to_;
  const std::string mark_;
  std::string held_;  // a line whose end has not come
};

}  // namespace freshet::cli
