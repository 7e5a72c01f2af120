#include "fabric/sim/star_flows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/str.h"

namespace freshet::fabric::sim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

base::Clock::Duration TimeOf(double seconds) {
  return base::Clock::Duration(static_cast<base::Clock::Duration::rep>(std::ceil(seconds * 1e9)));
}

}  // namespace

StarFlows::StarFlows(const Platform& platform)
    : rate_(platform.link_gbit * 1e9 / 8 * platform.share),
      limit_(platform.window_mb > 0 && platform.link_us > 0 ? platform.window_mb * 1e6 / (4e-6 * platform.link_us)
                                                            : kNever),
      latency_(TimeOf(2e-6 * platform.link_us)),
      in_(static_cast<std::size_t>(platform.nodes)),
      out_(in_.size()) {}

base::Clock::Duration StarFlows::Latency(int, int) { return latency_; }

void StarFlows::Restart() {
  CHECK(flows_.empty());
  now_ = 0;
  in_.assign(in_.size(), 0);
  out_ = in_;
}

void StarFlows::Start(int from, int to, double bytes, std::function<void()> left) {
  flows_.push_back({from, to, std::max(bytes, 1.0), 0, std::move(left)});
  out_[static_cast<std::size_t>(from)] += bytes;
  in_[static_cast<std::size_t>(to)] += bytes;
  shared_ = false;
}

// Progressive filling: all rates rise together; those over the link that is full first stay as they are, and so on.
void StarFlows::Share() {
  if (std::exchange(shared_, true)) return;
  const std::size_t nodes = in_.size();
  std::vector<double> room(2 * nodes, rate_);
  std::vector<int> count(2 * nodes, 0);
  std::vector<Flow*> open;
  const auto links = [&](const Flow& flow) {
    return std::pair(static_cast<std::size_t>(flow.from), nodes + static_cast<std::size_t>(flow.to));
  };
  for (Flow& flow : flows_) {
    flow.rate = 0;
    open.push_back(&flow);
    ++count[links(flow).first], ++count[links(flow).second];
  }
  double level = 0;
  while (!open.empty()) {
    double rise = limit_ - level;
    for (std::size_t link = 0; link < room.size(); ++link)
      if (count[link] > 0) rise = std::min(rise, room[link] / count[link]);
    level += rise;
    for (std::size_t link = 0; link < room.size(); ++link) room[link] -= rise * count[link];
    const auto full = [&](Flow* flow) {
      const auto [out, in] = links(*flow);
      if (level < limit_ && room[out] > 1e-6 * rate_ && room[in] > 1e-6 * rate_) return false;
      flow->rate = level;
      return true;
    };
    const auto rest = std::partition(open.begin(), open.end(), [&](Flow* flow) { return !full(flow); });
    for (auto it = rest; it != open.end(); ++it) --count[links(**it).first], --count[links(**it).second];
    open.erase(rest, open.end());
  }
}

void StarFlows::Pass(double seconds) {
  for (Flow& flow : flows_) flow.bytes -= flow.rate * seconds;
  now_ += seconds;
}

base::Clock::Duration StarFlows::Advance(Duration until) {
  if (flows_.empty()) {
    if (until < Duration::max()) now_ = std::max(now_, base::Seconds(until));
    return until;
  }
  Share();
  double first = kNever;
  for (const Flow& flow : flows_) first = std::min(first, std::max(flow.bytes, 0.0) / flow.rate);
  if (until < Duration::max() && now_ + first > base::Seconds(until)) {
    Pass(std::max(base::Seconds(until) - now_, 0.0));
    return until;
  }
  Pass(first);
  const Duration now = std::min(TimeOf(now_), until);
  std::vector<std::function<void()>> done;
  flows_.remove_if([&](Flow& flow) {
    if (flow.bytes > 1e-9 * flow.rate) return false;  // the last nanosecond is none
    done.push_back(std::move(flow.left));
    return true;
  });
  shared_ = shared_ && done.empty();
  for (const auto& left : done) left();
  return now;
}

std::vector<Flows::Link> StarFlows::Carried() const {
  std::vector<Link> links;
  for (std::size_t node = 0; node < in_.size(); ++node) {
    if (out_[node] > 0) links.push_back({Str("node ", node, " out"), out_[node], rate_});
    if (in_[node] > 0) links.push_back({Str("node ", node, " in"), in_[node], rate_});
  }
  return links;
}

}  // namespace freshet::fabric::sim
