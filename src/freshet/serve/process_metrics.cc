#include "serve/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

namespace freshet::serve {
namespace {

double ResidentBytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  unsigned long size = 0, resident = 0;
  const bool read = std::fscanf(file, "%lu %lu", &size, &resident) == 2;
  std::fclose(file);
  return read ? static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) : 0;
}

double OpenDescriptors() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  int count = -3;  // ., .. and the one that lists
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

}  // namespace

void StartProcessMetrics(base::Metrics& metrics, double started_seconds) {
  metrics.gauge("process_start_time_seconds", "", "When the process started, in seconds since 1970.")
      .Set(started_seconds);
  RefreshProcessMetrics(metrics);
}

void RefreshProcessMetrics(base::Metrics& metrics) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  metrics.total("process_cpu_seconds_total", "", "CPU time used, by the program and for it.")
      .Set(seconds(usage.ru_utime) + seconds(usage.ru_stime));
  metrics.gauge("process_resident_memory_bytes", "", "Memory in use.").Set(ResidentBytes());
  metrics.gauge("process_open_fds", "", "Open file descriptors.").Set(OpenDescriptors());
}

}  // namespace freshet::serve
