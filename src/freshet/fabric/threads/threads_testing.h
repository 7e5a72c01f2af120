#pragma once

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "fabric/threads/threads_fabric.h"

namespace freshet::fabric {

// Runs body(member) for each member of a new group, each on a thread of its own, and joins them.
inline void RunMembers(int size, const std::function<void(Fabric&)>& body, ThreadsOptions options = {}) {
  const base::SystemClock clock;
  ThreadsGroup group(size, clock, std::move(options));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { body(group.member(rank)); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace freshet::fabric
