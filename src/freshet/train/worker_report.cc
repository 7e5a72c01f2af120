#include "train/worker_report.h"

#include <cstring>

namespace freshet::train {

Result<std::vector<WorkerReport>> GatherWorkers(fabric::Collectives& collectives, const strategy::StepTimes& mine) {
  const auto all = TRY(collectives.Gather(std::as_bytes(std::span(&mine, 1))));
  std::vector<WorkerReport> reports;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    WorkerReport report;
    report.rank = static_cast<int>(rank);
    report.host = collectives.fabric().host(report.rank);
    if (all[rank].size() != sizeof report.times)
      return Error{Code::kCorrupt, Str("rank ", rank, " runs another version of this program")};
    std::memcpy(&report.times, all[rank].data(), sizeof report.times);
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace freshet::train
