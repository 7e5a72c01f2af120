#include "workers_view.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace freshet::cli {

Result<std::vector<WorkerLine>> GatherWorkers(fabric::Collectives& collectives, const strategy::StepTimes& mine) {
  const auto all = TRY(collectives.Gather(std::as_bytes(std::span(&mine, 1))));
  std::vector<WorkerLine> lines;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    WorkerLine line;
    line.rank = static_cast<int>(rank);
    line.host = collectives.fabric().host(line.rank);
    if (all[rank].size() != sizeof line.times)
      return Error{Code::kCorrupt, Str("rank ", rank, " runs another version of this program")};
    std::memcpy(&line.times, all[rank].data(), sizeof line.times);
    lines.push_back(std::move(line));
  }
  return lines;
}

nlohmann::ordered_json ToJson(const WorkerLine& worker) {
  const strategy::StepTimes& t = worker.times;
  return {{"rank", worker.rank},        {"host", worker.host},
          {"steps", t.steps},           {"rows", t.rows},
          {"compute", t.compute},       {"wait", t.wait},
          {"exchange", t.exchange},     {"apply", t.apply},
          {"bytes_sent", t.bytes_sent}, {"bytes_dense", t.bytes_dense}};
}

std::string ToText(const std::vector<WorkerLine>& workers, bool compressed) {
  if (workers.empty()) return "";
  std::string out = "worker          rows   compute      wait  exchange     apply       sent\n";
  const auto right = [](const std::string& text, std::size_t width) {
    return std::string(width - std::min(width, text.size()), ' ') + text;
  };
  std::vector<double> busy;
  for (const WorkerLine& worker : workers) {
    const strategy::StepTimes& t = worker.times;
    busy.push_back(t.compute + t.apply);
    out += Str(right(Str(worker.rank), 4), "  ", right(Grouped(t.rows), 12), right(Str(Fixed(t.compute, 2), " s"), 10),
               right(Str(Fixed(t.wait, 2), " s"), 10), right(Str(Fixed(t.exchange, 2), " s"), 10),
               right(Str(Fixed(t.apply, 2), " s"), 10), right(HumanBytes(static_cast<double>(t.bytes_sent)), 11), "\n");
  }
  std::uint64_t sent = 0, dense = 0;
  for (const WorkerLine& worker : workers) {
    sent += worker.times.bytes_sent;
    dense += worker.times.bytes_dense;
  }
  if (compressed && sent > 0 && dense > sent)
    out += Str("exchanged    ", Fixed(static_cast<double>(dense) / static_cast<double>(sent), 1),
               " times fewer bytes than dense\n");
  std::vector<double> sorted = busy;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  const double median = sorted[sorted.size() / 2];
  for (std::size_t i = 0; i < workers.size(); ++i)
    if (workers.size() > 2 && busy[i] > 1.5 * median && busy[i] > 1)
      out += Str("straggler    rank ", i, " on ", workers[i].host, ": ", Fixed(busy[i], 1),
                 " s of work where the median is ", Fixed(median, 1), " s\n");
  return out;
}

}  // namespace freshet::cli
