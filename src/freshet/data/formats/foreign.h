#pragma once

#include "data/formats/format.h"

namespace freshet::data {

// kBadInput, with what the file is and how to make rows of it, when its first bytes are of a kind that is known and not
// read here: Parquet, Arrow, NumPy, spreadsheets, JSON … With `told` a format was named, so that text is taken for what
// its owner says it is; other bytes still are what they are.
Result<void> RefuseForeign(const Head& head, bool told);

}  // namespace freshet::data
