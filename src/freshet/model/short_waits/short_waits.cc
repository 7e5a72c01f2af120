#include "short_waits.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>

namespace freshet::model {
namespace {

// A team of GCC's OpenMP looks for work for some milliseconds after each piece of it, before it sleeps. Pieces are
// often shorter than that, and where others use the machine too, those who look keep away the very thread they wait
// for: networks become up to a hundred times slower. A short look costs nothing on a quiet machine and little on a busy
// one.
constexpr char kLooks[] = "300";  // some ten microseconds

}  // namespace

void WaitShortly(char** arguments) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  if (getauxval(AT_SECURE) != 0) return;  // may be readable by nobody
  char path[4096];                        // not /proc/self/exe itself, which would become the program's name
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0 || setenv("GOMP_SPINCOUNT", kLooks, 0) != 0) return;
  path[length] = 0;
  execv(path, arguments);  // if it fails, teams wait as they always did
}

}  // namespace freshet::model
