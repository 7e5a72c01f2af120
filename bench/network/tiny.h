#pragma once

#include "base/result.h"

namespace freshet::bench {

// Checks at small sizes that what is timed computes what it should: training lowers the loss whatever the batch, rows
// score the same in any company, and the work alone is the same work. kInvalid says what was wrong.
Result<void> CheckTiny();

}  // namespace freshet::bench
