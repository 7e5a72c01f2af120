#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "data/table.h"

namespace freshet::python {

// The columns of what gives an Arrow stream (the PyCapsule that __arrow_c_stream__ returns), where they lie; of types
// that a table has no place for (bits, views of texts) copies. Appends to `kept` what keeps them from going. Raises for
// columns that are neither numbers nor texts. This is Arrow's C data interface, three structs, and needs no library.
std::vector<data::TableColumn> ColumnsOf(nanobind::handle capsule, std::vector<nanobind::object>& kept);

}  // namespace freshet::python
