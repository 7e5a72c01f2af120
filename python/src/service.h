#pragma once

#include <nanobind/nanobind.h>

namespace freshet::python {

// A server in this process: freshet.Server.
void BindService(nanobind::module_& module);

}  // namespace freshet::python
