#pragma once

#include <string>
#include <vector>

#include "data/description.h"
#include "data/formats/csv_columns.h"

namespace freshet::data {

// What whoever gave a table may want to know of how it will be read: the decimal comma, dates, columns that look like
// ids, texts that are almost numbers, columns without values. A sentence each, with the flag that says otherwise.
// `columns` is what the head shows of the description's columns.
std::vector<std::string> NotesOf(const Description& description, const std::vector<ColumnSight>& columns,
                                 bool header_sure);

}  // namespace freshet::data
