#pragma once

#include "data/description.h"

namespace freshet::cli {

// What the description notes, on standard error: the first few sentences, and where the rest can be seen.
void ShowNotes(const data::Description& description);

}  // namespace freshet::cli
