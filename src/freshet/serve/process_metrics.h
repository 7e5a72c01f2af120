#pragma once

#include "base/metrics.h"

namespace freshet::serve {

// The process_* gauges that every dashboard knows: CPU time, memory, descriptors, when it started.
void StartProcessMetrics(base::Metrics& metrics, double started_seconds);
void RefreshProcessMetrics(base::Metrics& metrics);

}  // namespace freshet::serve
