#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace freshet::cli {

// Rows of as many cells each, in columns: the first aligned to the left, the others to the right.
std::string Table(const std::vector<std::vector<std::string>>& rows, std::size_t left_columns);

// "1.25 s", "3.10 ms", "12.5 us".
std::string TimeText(double seconds);

}  // namespace freshet::cli
