#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "base/faults.h"
#include "base/files.h"
#include "base/log.h"

namespace freshet::base {

// What a door hands to the rooms behind it: everything they may not fetch for themselves. Borrowed; outlives its users.
struct Env {
  Files& files;
  Clock& clock;
  Log& log;
  Executor& executor;
  Faults& faults;
};

}  // namespace freshet::base
