#include "attend.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "base/option.h"
#include "world.h"

namespace nb = nanobind;

namespace freshet::python {
namespace {

// scale-target becomes scale_target where it is an option, not where it is a word of a sentence.
std::string ByPythonNames(std::string_view text) {
  constexpr char kMark = '\1';
  std::string marked = ShowOptions(text, {&kMark, 1}), out;
  bool name = false;
  for (const char c : marked) {
    if (c == kMark) {
      name = true;
      continue;
    }
    name = name && (std::isalnum(static_cast<unsigned char>(c)) || c == '-');
    out += name && c == '-' ? '_' : c;
  }
  return out;
}

}  // namespace

void Raise(const Error& error) {
  const std::string code(Name(error.code)), text = ByPythonNames(error.text);
  const nb::object raised = nb::module_::import_("freshet.errors").attr("of_code")(code.c_str(), text.c_str());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
  throw nb::python_error();
}

void TellLog() {
  for (const std::string& line : World::Get().TakeLines())
    nb::module_::import_("freshet.errors").attr("log")(line.c_str());
}

void Attend(std::atomic<bool>& stop, const std::function<void()>& tick, const std::function<void()>& work) {
  constexpr auto kEvery = std::chrono::milliseconds(20);
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;                     // guarded by the mutex
  std::exception_ptr thrown, interrupt;  // thrown: by the work, read once it is done
  std::thread worker([&] {
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    done = true;
    ended.notify_one();
  });
  const auto wait = [&] {
    const nb::gil_scoped_release released;
    std::unique_lock lock(mutex);
    return ended.wait_for(lock, kEvery, [&] { return done; });
  };
  while (!wait()) {
    if (interrupt != nullptr) continue;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      TellLog();
      if (tick) tick();
    } catch (...) {
      interrupt = std::current_exception();
      stop = true;
    }
  }
  worker.join();
  if (interrupt != nullptr) std::rethrow_exception(interrupt);
  TellLog();
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

}  // namespace freshet::python
