#include "workers_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace freshet::cli {
namespace {

using strategy::StepTimes;

struct Part {
  const char* name;
  double StepTimes::*seconds;
};
constexpr Part kParts[] = {{"read", &StepTimes::read},
                           {"compute", &StepTimes::compute},
                           {"wait", &StepTimes::wait},
                           {"exchange", &StepTimes::exchange},
                           {"apply", &StepTimes::apply}};

std::string Right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::uint64_t Sent(const StepTimes& times) { return times.bytes_sent + times.bytes_shared; }

StepTimes Sum(const std::vector<WorkerLine>& workers) {
  StepTimes sum;
  for (const WorkerLine& worker : workers) {
    for (const Part& part : kParts) sum.*part.seconds += worker.times.*part.seconds;
    sum.steps += worker.times.steps;
    sum.bytes_sent += worker.times.bytes_sent;
    sum.bytes_shared += worker.times.bytes_shared;
    sum.bytes_dense += worker.times.bytes_dense;
  }
  return sum;
}

// Against what a dense exchange by a ring would have sent; "" when it was as much.
std::string Saved(const StepTimes& times) {
  if (times.bytes_dense == 0 || Sent(times) >= times.bytes_dense) return "";
  const double share = static_cast<double>(Sent(times)) / static_cast<double>(times.bytes_dense);
  return Str(Fixed(100 * (1 - share), 1), " %");
}

std::string Table(const std::vector<WorkerLine>& workers) {
  std::string out = "worker          rows";
  for (const Part& part : kParts) out += Right(part.name, 10);
  const bool less = !Saved(Sum(workers)).empty();  // in all: topologies load some workers more than others
  out += Str("       sent", less ? "     saved" : "", "\n");
  for (const WorkerLine& worker : workers) {
    out += Str(Right(Str(worker.rank), 6), Right(Grouped(worker.times.rows), 14));
    for (const Part& part : kParts) out += Right(Str(Fixed(worker.times.*part.seconds, 2), " s"), 10);
    out += Right(HumanBytes(static_cast<double>(Sent(worker.times))), 11);
    if (less) out += Right(Saved(worker.times), 10);
    out += "\n";
  }
  return out;
}

// What a worker is busy with while others may wait for it.
double Work(const StepTimes& times) { return times.read + times.compute + times.apply; }

// The part of its work that most sets a worker apart from the others.
const char* Mostly(const std::vector<WorkerLine>& workers, std::size_t straggler) {
  const char* name = "compute";
  double most = 0;
  for (const Part& part : {kParts[0], kParts[1], kParts[4]}) {
    double others = 0;
    for (const WorkerLine& worker : workers) others += worker.times.*part.seconds;
    const double mine = workers[straggler].times.*part.seconds;
    const double above = mine - (others - mine) / static_cast<double>(workers.size() - 1);
    if (above > most) name = part.name;
    most = std::max(most, above);
  }
  return name;
}

// Whoever works half as long again as the median of the others, and at least a second.
std::string Stragglers(const std::vector<WorkerLine>& workers) {
  std::string out;
  for (std::size_t i = 0; i < workers.size() && workers.size() > 1; ++i) {
    std::vector<double> others;
    for (std::size_t k = 0; k < workers.size(); ++k)
      if (k != i) others.push_back(Work(workers[k].times));
    std::sort(others.begin(), others.end());
    const double median = others[others.size() / 2], work = Work(workers[i].times);
    if (work <= 1.5 * median || work < 1) continue;
    out +=
        Str("straggler    rank ", workers[i].rank, " on ", workers[i].host, ": ", Fixed(work, 1),
            " s of work where the median of the others is ", Fixed(median, 1), " s, mostly ", Mostly(workers, i), "\n");
  }
  return out;
}

}  // namespace

nlohmann::ordered_json ToJson(const WorkerLine& worker) {
  const StepTimes& t = worker.times;
  nlohmann::ordered_json json = {{"rank", worker.rank}, {"host", worker.host}, {"steps", t.steps}, {"rows", t.rows}};
  for (const Part& part : kParts) json[part.name] = t.*part.seconds;
  json["bytes_sent"] = t.bytes_sent;
  json["bytes_shared"] = t.bytes_shared;
  json["bytes_dense"] = t.bytes_dense;
  return json;
}

nlohmann::ordered_json StepJson(const std::vector<WorkerLine>& workers) {
  const StepTimes sum = Sum(workers);
  if (sum.steps == 0) return nlohmann::ordered_json::object();
  nlohmann::ordered_json json = {{"seconds", sum.total() / static_cast<double>(sum.steps)}};
  for (const Part& part : kParts) json[part.name] = sum.total() > 0 ? sum.*part.seconds / sum.total() : 0.0;
  return json;
}

std::string ToText(const std::vector<WorkerLine>& workers, bool compressed) {
  if (workers.empty()) return "";
  std::string out = Table(workers);
  const StepTimes sum = Sum(workers);
  if (sum.steps > 0 && sum.total() > 0) {
    std::vector<std::string> shares;
    for (const Part& part : kParts)
      shares.push_back(Str(part.name, " ", Fixed(100 * (sum.*part.seconds) / sum.total(), 0), " %"));
    out += Str("step         ", Fixed(1e3 * sum.total() / static_cast<double>(sum.steps), 2),
               " ms: ", Join(shares, ", "), "\n");
  }
  if (compressed && Sent(sum) > 0 && sum.bytes_dense > Sent(sum))
    out += Str("exchanged    ", Fixed(static_cast<double>(sum.bytes_dense) / static_cast<double>(Sent(sum)), 1),
               " times fewer bytes than dense\n");
  return out + Stragglers(workers);
}

}  // namespace freshet::cli
