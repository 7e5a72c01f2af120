// How teams of threads wait, as GCC's OpenMP itself says it when this program starts.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/str.h"

namespace freshet::model::network {
namespace {

// What OpenMP looked for work when this program was last started with such an environment: '300'.
std::string LooksWith(const std::string& environment) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string program(path, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  FILE* const pipe = popen(Str("env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY OMP_DISPLAY_ENV=verbose ", environment, " '",
                               program, "' --gtest_list_tests 2>&1")
                               .c_str(),
                           "r");
  std::string text, found;
  char part[4096];
  while (std::fgets(part, sizeof part, pipe) != nullptr) text += part;
  pclose(pipe);
  for (const std::string_view line : Split(text, '\n'))
    if (const std::size_t at = line.find("GOMP_SPINCOUNT = "); at != std::string_view::npos)
      found = line.substr(at + 17);
  return found;
}

TEST(Team, WaitsShortlyUnlessItIsToldOtherwise) {
  EXPECT_EQ(LooksWith(""), "'300'");
  EXPECT_EQ(LooksWith("GOMP_SPINCOUNT=77"), "'77'");
  EXPECT_EQ(LooksWith("OMP_WAIT_POLICY=active"), "'30000000000'");
}

}  // namespace
}  // namespace freshet::model::network
