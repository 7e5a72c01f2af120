#include "workers_view.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "train/server_report.h"

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

constexpr std::size_t kMostShown = 6;  // of what is named one by one

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

bool OnRing(const std::vector<WorkerLine>& workers) {
  return std::any_of(workers.begin(), workers.end(), [](const WorkerLine& worker) {
    const StepTimes& times = worker.times;
    return times.bytes_next + times.bytes_back + times.bytes_moved > 0;
  });
}

// Of a ring: which share of its time each waited for its neighbours, and what it sent to them.
std::string Ring(const std::vector<WorkerLine>& workers) {
  if (!OnRing(workers)) return "";
  const auto any = [&](std::uint64_t StepTimes::*bytes) {
    return std::any_of(workers.begin(), workers.end(),
                       [&](const WorkerLine& worker) { return worker.times.*bytes > 0; });
  };
  const bool handed = any(&StepTimes::bytes_handed), moved = any(&StepTimes::bytes_moved),
             copied = any(&StepTimes::bytes_copied);
  std::string out = Str("ring      idle    to the next    to the one before", handed ? "    rows handed on" : "",
                        moved ? "    weights moved" : "", copied ? "      copies" : "", "\n");
  for (const WorkerLine& worker : workers) {
    const StepTimes& times = worker.times;
    const double idle = times.total() > 0 ? 100 * times.wait / times.total() : 0;
    out += Str(Right(Str(worker.rank), 6), Right(Str(Fixed(idle, 1), " %"), 8),
               Right(HumanBytes(static_cast<double>(times.bytes_next)), 15),
               Right(HumanBytes(static_cast<double>(times.bytes_back)), 21),
               handed ? Right(HumanBytes(static_cast<double>(times.bytes_handed)), 18) : "",
               moved ? Right(HumanBytes(static_cast<double>(times.bytes_moved)), 17) : "",
               copied ? Right(HumanBytes(static_cast<double>(times.bytes_copied)), 12) : "", "\n");
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

// How far workers that only gossip were from each other when all last met.
std::string Apart(const std::vector<WorkerLine>& workers) {
  double squares = 0;
  for (const WorkerLine& worker : workers) squares += worker.times.apart * worker.times.apart;
  if (squares == 0) return "";
  return Str("apart        ", Fixed(100 * std::sqrt(squares / static_cast<double>(workers.size())), 2),
             " % of its length from the mean of all, before they took it at the end\n");
}

// How many others came between a worker's reading and its update, where a parameter server or a ring lets them.
std::string Stale(const std::vector<WorkerLine>& workers) {
  std::array<std::uint64_t, 64> sum{};
  std::uint64_t all = 0, most = 0;
  for (const WorkerLine& worker : workers)
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += worker.times.stale[i];
      all += worker.times.stale[i];
      if (worker.times.stale[i] > 0) most = std::max<std::uint64_t>(most, i);
    }
  if (most == 0) return "";
  std::vector<std::string> shares;
  constexpr std::size_t kShown = 6;
  std::uint64_t shown = 0;
  for (std::size_t i = 0; i <= std::min<std::size_t>(most, kShown); ++i) {
    const std::uint64_t count = i < kShown ? sum[i] : all - shown;
    shown += count;
    shares.push_back(Str(i, i == kShown && most > kShown ? " and more " : " ",
                         Fixed(100.0 * static_cast<double>(count) / static_cast<double>(all), 0), " %"));
  }
  return Str("staleness    of ", Grouped(all),
             OnRing(workers) ? " updates by members: " : " updates by servers: ", Join(shares, ", "), "; at most ",
             most, most + 1 == sum.size() ? " or more\n" : "\n");
}

// Those whom workers of a parameter server waited for, and how long in all.
std::string WaitedFor(const std::vector<WorkerLine>& workers) {
  std::vector<std::pair<double, std::size_t>> ranks;
  for (const WorkerLine& worker : workers)
    for (std::size_t rank = 0; worker.server && rank < worker.server->waited_for.size(); ++rank) {
      if (ranks.size() <= rank) ranks.emplace_back(0.0, rank);
      ranks[rank].first += worker.server->waited_for[rank];
    }
  std::stable_sort(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> shown;
  for (const auto& [seconds, rank] : ranks)
    if (seconds >= 0.01 && shown.size() < kMostShown) shown.push_back(Str("rank ", rank, " ", Fixed(seconds, 2), " s"));
  return shown.empty() ? "" : Str("waited for   ", Join(shown, ", "), "\n");
}

using strategy::server::Report;

// What goes to and from servers, as far as much of it goes to one place. A row is hot of which a hundredth of all bytes
// are and eight times those of a mean one; a range that has more than twice those of the others of its block.
class Hot {
 public:
  explicit Hot(const std::vector<WorkerLine>& workers) {
    for (const WorkerLine& worker : workers)
      for (std::size_t b = 0; worker.server && b < worker.server->blocks.size(); ++b) {
        const Report::Block& block = worker.server->blocks[b];
        if (blocks_.size() <= b) blocks_.resize(b + 1);
        blocks_[b].name = block.name;
        blocks_[b].rows = block.rows;
        blocks_[b].range_rows = block.range_rows;
        blocks_[b].pulled += block.pulled;
        blocks_[b].pushed += block.pushed;
        blocks_[b].hottest.insert(blocks_[b].hottest.end(), block.hottest.begin(), block.hottest.end());
        blocks_[b].busiest.insert(blocks_[b].busiest.end(), block.busiest.begin(), block.busiest.end());
      }
    for (const WorkerLine& worker : workers)
      if (worker.server) moved_ = std::max(moved_, worker.server->moved);
    for (const Report::Block& block : blocks_) all_ += Bytes(block), rows_ += static_cast<double>(block.rows);
  }

  std::string ToText() const {
    std::vector<std::string> parts = Rows();
    if (std::string range = BusiestRange(); !range.empty()) parts.push_back(std::move(range));
    if (moved_ > 0) parts.push_back(Str(moved_, " ranges moved to servers that had less to do"));
    return parts.empty() ? "" : Str("hot          ", Join(parts, "; "), "\n");
  }

 private:
  static double Bytes(const Report::Block& block) { return static_cast<double>(block.pulled + block.pushed); }

  std::vector<std::string> Rows() const {
    std::vector<std::string> parts;
    for (const Report::Block& block : blocks_) {
      std::vector<Report::Row> rows = block.hottest;
      std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
      std::vector<std::string> shown;
      for (const Report::Row& row : rows) {
        const double share = static_cast<double>(row.bytes) / all_;
        if (share > std::max(0.01, 8 / rows_) && shown.size() < kMostShown)
          shown.push_back(Str(row.row, " (", Fixed(100 * share, 1), " %)"));
      }
      if (!shown.empty()) parts.push_back(Str("rows of ", block.name, ": ", Join(shown, ", ")));
    }
    return parts;
  }

  std::string BusiestRange() const {
    const Report::Block* of = nullptr;
    Report::Range most;
    for (const Report::Block& block : blocks_)
      for (const Report::Range& range : block.busiest)
        if (range.bytes > most.bytes) most = range, of = &block;
    if (of == nullptr || of->rows <= of->range_rows) return "";
    const std::uint64_t ranges = (of->rows - 1) / of->range_rows + 1;
    const auto bytes = static_cast<double>(most.bytes);
    if (bytes <= 2 * Bytes(*of) / static_cast<double>(ranges)) return "";
    return Str("busiest range ", most.first, "-", most.last - 1, " of ", of->name, " with ",
               Fixed(std::min(100 * bytes / all_, 100.0), 0), " % of ", HumanBytes(all_));
  }

  std::vector<Report::Block> blocks_;  // of all servers together
  double all_ = 0, rows_ = 0;          // bytes
  std::uint64_t moved_ = 0;
};

}  // namespace

nlohmann::ordered_json ToJson(const WorkerLine& worker) {
  const StepTimes& t = worker.times;
  nlohmann::ordered_json json = {{"rank", worker.rank}, {"host", worker.host}, {"steps", t.steps}, {"rows", t.rows}};
  for (const Part& part : kParts) json[part.name] = t.*part.seconds;
  json["bytes_sent"] = t.bytes_sent;
  json["bytes_shared"] = t.bytes_shared;
  json["bytes_dense"] = t.bytes_dense;
  if (t.bytes_next + t.bytes_back + t.bytes_moved > 0) {
    json["bytes_next"] = t.bytes_next;
    json["bytes_back"] = t.bytes_back;
    json["bytes_handed"] = t.bytes_handed;
    json["bytes_moved"] = t.bytes_moved;
    json["bytes_copied"] = t.bytes_copied;
    json["idle"] = t.total() > 0 ? t.wait / t.total() : 0.0;
  }
  if (t.apart > 0) json["apart"] = t.apart;
  std::size_t stale = t.stale.size();
  while (stale > 0 && t.stale[stale - 1] == 0) --stale;
  if (stale > 0) json["staleness"] = std::vector<std::uint64_t>(t.stale.begin(), t.stale.begin() + stale);
  if (!worker.server) return json;
  for (std::size_t rank = 0; rank < worker.server->waited_for.size(); ++rank)
    if (const double seconds = worker.server->waited_for[rank]; seconds > 0)
      json["waited_for"].push_back({{"rank", rank}, {"seconds", seconds}});
  if (worker.server->blocks.empty()) return json;
  json["server"] = train::ToJson(*worker.server);
  json["server"].erase("waited_for");
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
  return out + Ring(workers) + Apart(workers) + Stale(workers) + WaitedFor(workers) + Hot(workers).ToText() +
         Stragglers(workers);
}

}  // namespace freshet::cli
