#include "train/worker_report.h"

#include <cstring>

#include "train/server_report.h"

namespace freshet::train {

Result<std::vector<WorkerReport>> GatherWorkers(fabric::Collectives& collectives, const strategy::StepTimes& times,
                                                const std::optional<strategy::server::Report>& report) {
  const std::string text = report ? ToJson(*report).dump() : "";  // behind the times
  std::vector<std::byte> bytes(sizeof times + text.size());
  std::memcpy(bytes.data(), &times, sizeof times);
  std::copy_n(text.data(), text.size(), reinterpret_cast<char*>(bytes.data()) + sizeof times);
  const auto all = TRY(collectives.Gather(bytes));
  std::vector<WorkerReport> reports;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    WorkerReport each;
    each.rank = static_cast<int>(rank);
    each.host = collectives.fabric().host(each.rank);
    if (all[rank].size() < sizeof times)
      return Error{Code::kCorrupt, Str("rank ", rank, " runs another version of this program")};
    std::memcpy(&each.times, all[rank].data(), sizeof times);
    const std::string_view told(reinterpret_cast<const char*>(all[rank].data()) + sizeof times,
                                all[rank].size() - sizeof times);
    if (!told.empty()) each.server = TRY(ServerReportFrom(told).While(Str("reading what rank ", rank, " tells")));
    reports.push_back(std::move(each));
  }
  return reports;
}

}  // namespace freshet::train
