#pragma once

#include <functional>

#include "base/executor.h"
#include "data/source.h"

namespace freshet::data {

// Drives all blocks of a source through the executor's threads. Blocks are read and parsed in parallel, ahead of need;
// each then goes through `in_order` (after source.Finish), one block at a time, in the source's order, so that what it
// does is the same for any number of threads. The first error, in that order, ends everything and is returned.
using BlockWork = std::function<Result<void>(Rows& rows)>;
Result<void> DriveInOrder(base::Executor& executor, RowSource& source, const BlockWork& in_order);

// As above; afterwards each block also goes through `at_once`, many at the same time on different threads (0 …
// width-1).
using SharedWork = std::function<Result<void>(int thread, Rows& rows)>;
Result<void> DriveShared(base::Executor& executor, RowSource& source, const BlockWork& in_order,
                         const SharedWork& at_once);

}  // namespace freshet::data
