#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "data/table.h"

namespace freshet::python {

// A table over arrays of Python's, which it keeps from going. The native table may outlive a call and this object only
// as long as nobody reads it.
struct Table {
  std::shared_ptr<data::Table> native;
  std::vector<nanobind::object> kept;
};

void BindTables(nanobind::module_& module);

}  // namespace freshet::python
