#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "data/rows.h"

namespace freshet::strategy {

// Rows as bytes, for other members of the group: labels, weights and numbers, and back. kCorrupt for bytes that are no
// rows.
std::vector<std::byte> PackRows(const data::Rows& rows);
Result<void> UnpackRows(std::span<const std::byte> bytes, data::Rows& rows);

}  // namespace freshet::strategy
