#pragma once

#include <atomic>

#include "base/result.h"

namespace freshet::data {

// kStopped once somebody has set *stop; for loops over blocks. Null: nobody will.
inline Result<void> GoOn(const std::atomic<bool>* stop) {
  if (stop != nullptr && stop->load(std::memory_order_relaxed)) return Error{Code::kStopped, "stopped"};
  return {};
}

}  // namespace freshet::data
