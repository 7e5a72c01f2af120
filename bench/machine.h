#pragma once

#include <string>

namespace freshet::bench {

// What figures depend on besides the code.
struct Machine {
  std::string cpu;
  int cores = 0;
  std::string compiler, flags, commit;
  std::string warning;  // why timings of this build say nothing; "" when they do

  std::string ToText() const;
};
Machine ThisMachine();

}  // namespace freshet::bench
