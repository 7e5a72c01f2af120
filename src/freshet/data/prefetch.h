#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "data/drive.h"

namespace freshet::data {

// How the consumer of prefetched blocks spent its time.
struct PrefetchStats {
  std::uint64_t blocks = 0;
  base::Clock::Duration waited{0};  // from wanting a block to having it
  base::Clock::Duration worked{0};  // in source.Finish and the work itself
};

// Drives all blocks of a source through `work` on the calling thread, in the source's order, while the executor's other
// threads read and parse up to `depth` blocks ahead (at least 1). For work that has threads of its own which belong to
// the caller's, as OpenMP's do. The calling thread parses too, but only when it would otherwise wait; where it is the
// executor's only thread it does everything.
//
// The first error, in the order of blocks, ends everything and is returned: blocks before it are done, none behind it.
// Adds to `stats`, unless null. Blocks until all is done; not to be called from a task, nor may `work` use the
// executor.
Result<void> DrivePrefetched(base::Executor& executor, const base::Clock& clock, RowSource& source, std::size_t depth,
                             const BlockWork& work, PrefetchStats* stats = nullptr);

}  // namespace freshet::data
