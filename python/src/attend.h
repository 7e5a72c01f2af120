#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <functional>
#include <optional>

#include "base/result.h"

namespace freshet::python {

// Raises the exception of freshet.errors that stands for the error's code, with its text; options are called by the
// names that Python knows.
[[noreturn]] void Raise(const Error& error);

template <class T>
T ValueOf(Result<T> result) {
  if (!result.ok()) Raise(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

// Hands the lines of the log to Python's logging, as "freshet".
void TellLog();

// Does `work` on a thread of its own while the caller's waits without the interpreter's lock, and, every 20 ms, with it:
// for signals (Ctrl-C raises KeyboardInterrupt) and for `tick`, which may call Python. When either raises, `stop` is set,
// which the work looks at, and the exception goes on once the work has ended. Work that throws (no memory) throws here.
void Attend(std::atomic<bool>& stop, const std::function<void()>& tick, const std::function<void()>& work);

template <class T>
T Attended(std::atomic<bool>& stop, const std::function<void()>& tick, const std::function<Result<T>()>& work) {
  std::optional<Result<T>> result;
  Attend(stop, tick, [&] { result = work(); });
  return ValueOf<T>(*std::move(result));
}

}  // namespace freshet::python
