#pragma once

#include "data/moments.h"

namespace freshet::data {

// The moments of the rows of both, as if those of `second`, which has as many columns, had been observed last; with
// factors that lag behind neither.
Moments Merged(const Moments& first, const Moments& second);

}  // namespace freshet::data
