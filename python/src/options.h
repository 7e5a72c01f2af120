#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

#include "base/settings.h"

namespace freshet::python {

// Sets options from a dict of Python's: names with _ for -, values that are bools, numbers, texts or lists of texts.
// Raises what is wrong, all at once. None leaves an option as it is.
void SetOptions(const nanobind::dict& values, base::Settings& settings);

}  // namespace freshet::python
