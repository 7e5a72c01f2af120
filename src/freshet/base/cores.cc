#include "base/cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string_view>

#include "base/str.h"

namespace freshet::base {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The quotas of one group: cpu.max of version 2 ("150000 100000" or "max 100000", in microseconds), and the two files
// of version 1, where no limit is -1.
double QuotaAt(const std::string& folder) {
  std::string text = FirstLine(folder + "/cpu.max");
  if (text.empty()) text = Str(FirstLine(folder + "/cpu.cfs_quota_us"), " ", FirstLine(folder + "/cpu.cfs_period_us"));
  char* rest = nullptr;
  const double quota = std::strtod(text.c_str(), &rest), period = std::strtod(rest, nullptr);
  return quota > 0 && period > 0 ? quota / period : kNoLimit;
}

bool Contains(std::string_view list, std::string_view word) {
  const auto words = Split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Where the hierarchy that limits processor time is mounted: version 2, or version 1's with the controller cpu.
// A line of mountinfo: id, parent, device, root, where, options, then words up to a "-", type, source, more options.
std::vector<std::string> Mounts(const std::string& root, bool second) {
  std::vector<std::string> found;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t middle = line.find(" - ");
    if (middle == std::string::npos) continue;
    const auto before = Split(std::string_view(line).substr(0, middle), ' ');
    const auto after = Split(std::string_view(line).substr(middle + 3), ' ');
    if (before.size() < 5 || after.size() < 3) continue;
    if (second ? after[0] == "cgroup2" : after[0] == "cgroup" && Contains(after[2], "cpu"))
      found.push_back(root + std::string(before[4]));
  }
  return found;
}

// The least of a group and all above it. In a container the path may be that of the host, and only its end or nothing
// of it be there; what is mounted is then the container's own group.
double LeastUpwards(const std::string& mount, std::string path) {
  double least = kNoLimit;
  while (true) {
    least = std::min(least, QuotaAt(mount + path));
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return least;
    path.resize(slash);
  }
}

int Limited(int cores, double quota) {
  return std::max(1, static_cast<int>(std::min(static_cast<double>(cores), std::ceil(quota))));
}

}  // namespace

double QuotaCores(const std::string& root) {
  double least = kNoLimit;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // number:controllers:path; version 2 has number 0 and no names
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (!controllers.empty() && !Contains(controllers, "cpu")) continue;
    for (const std::string& mount : Mounts(root, controllers.empty()))
      least = std::min(least, LeastUpwards(mount, line.substr(second + 1)));
  }
  return least;
}

int HostCores(const std::string& root) {
  return Limited(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), QuotaCores(root));
}

int AvailableCores(const std::string& root) {
  cpu_set_t set;
  const bool known = sched_getaffinity(0, sizeof set, &set) == 0;  // not so on machines of more than 1024 cores
  return known ? Limited(CPU_COUNT(&set), QuotaCores(root)) : HostCores(root);
}

}  // namespace freshet::base
