#pragma once

// The one way to include toml++: its macros must be the same everywhere, or the linker mixes two kinds of its
// functions. Bad text is no bug, so its assertions, which would end the program, are off. For .cc files only: it is
// large.

#define TOML_ASSERT(expression) static_assert(true)
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>
