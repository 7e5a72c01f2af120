#pragma once

#include <vector>

#include "data/description.h"

namespace freshet::data {

// What every rating has; a timestamp may follow.
inline std::vector<Column> RatingsColumns() {
  return {{"user", Column::Kind::kCategory}, {"item", Column::Kind::kCategory}, {"rating", Column::Kind::kLabel}};
}

}  // namespace freshet::data
