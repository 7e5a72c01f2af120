#pragma once

#include <cstdint>
#include <string>

namespace freshet::strategy::scheduled {

// What may be said of a descent by coordinates.
struct DescentOptions {
  std::string order = "recent";   // which come next: recent (those that changed most of late), random
  std::uint64_t coordinates = 0;  // of a round (0: 16; of a factorization an eighth of the users, or of the items)
  double rho = 0.3;               // recent: those of a round are not correlated by more
};

}  // namespace freshet::strategy::scheduled
