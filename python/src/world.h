#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/executor.h"
#include "base/faults.h"
#include "optimize/memory.h"

namespace freshet::python {

// The world as this process knows it: one for the whole module. It has no threads (a process may fork); who needs some
// brings an executor.
//
// Threads: any.
class World {
 public:
  static World& Get();

  base::Env env(base::Executor& executor) { return {files_, clock_, log_, executor, faults_}; }
  base::Files& files() { return files_; }
  base::Log& log() { return log_; }
  optimize::Memory& memory() { return memory_; }

  // Lines of the log since the last call, for whoever has the interpreter.
  std::vector<std::string> TakeLines();

 private:
  World();
  base::PosixFiles files_;
  base::SystemClock clock_;
  base::Faults faults_;
  optimize::HeapMemory memory_;
  std::mutex mutex_;
  std::vector<std::string> lines_;  // guarded by the mutex
  base::Log log_;
};

}  // namespace freshet::python
