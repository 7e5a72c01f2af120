#include "fabric/sim/platform_network.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace freshet::fabric::sim {
namespace {

using Duration = base::Clock::Duration;

constexpr std::size_t kShortBytes = 4096;

Duration TimeOf(double seconds) { return Duration(static_cast<Duration::rep>(std::llround(seconds * 1e9))); }

}  // namespace

PlatformNetwork::PlatformNetwork(base::Fibers& fibers, Flows& flows, const Platform& platform, std::vector<int> node_of)
    : fibers_(fibers),
      flows_(flows),
      link_rate_(platform.link_gbit * 1e9 / 8 * platform.share),
      local_rate_(platform.local_gb_s * 1e9),
      local_latency_(TimeOf(platform.local_us * 1e-6)),
      node_of_(std::move(node_of)),
      takers_(node_of_.size()) {}

void PlatformNetwork::Attach(int rank, std::function<void(Letter)> take) {
  takers_[static_cast<std::size_t>(rank)] = std::move(take);
}

void PlatformNetwork::Detach(int rank) { takers_[static_cast<std::size_t>(rank)] = nullptr; }

void PlatformNetwork::Send(int to, Letter letter) {
  const int from = letter.from;
  Way& way = this->way(from, to);
  if (!way.open) return;
  ++letters_;
  if (node_of_[static_cast<std::size_t>(from)] == node_of_[static_cast<std::size_t>(to)])
    return SendWithin(way, to, std::move(letter));
  way.waiting.push_back(std::move(letter));
  if (!way.busy) SendNext(from, to);
}

void PlatformNetwork::SendWithin(Way& way, int to, Letter letter) {
  const double seconds = static_cast<double>(letter.bytes()) / local_rate_;
  way.free_at = std::max(way.free_at, fibers_.Now()) + TimeOf(seconds);
  ArriveAt(way, to, std::move(letter), way.free_at + local_latency_);
}

void PlatformNetwork::SendNext(int from, int to) {
  Way& way = this->way(from, to);
  const int source = node_of_[static_cast<std::size_t>(from)], target = node_of_[static_cast<std::size_t>(to)];
  const Duration latency = flows_.Latency(source, target);
  while (!way.waiting.empty()) {
    const std::size_t bytes = way.waiting.front().bytes();
    if (bytes > kShortBytes) {
      way.busy = true;
      flows_.Start(source, target, static_cast<double>(bytes), [this, from, to, latency] {
        Way& done = this->way(from, to);
        done.busy = false;
        Letter letter = std::move(done.waiting.front());
        done.waiting.pop_front();
        ArriveAt(done, to, std::move(letter), fibers_.Now() + latency);
        SendNext(from, to);
      });
      return;
    }
    Letter letter = std::move(way.waiting.front());
    way.waiting.pop_front();
    ArriveAt(way, to, std::move(letter), fibers_.Now() + latency + TimeOf(static_cast<double>(bytes) / link_rate_));
  }
}

void PlatformNetwork::ArriveAt(Way& way, int to, Letter letter, Duration when) {
  way.arrives_at = std::max(way.arrives_at, when);
  fibers_.At(way.arrives_at, [this, to, carried = std::make_shared<Letter>(std::move(letter))] {
    if (const auto& take = takers_[static_cast<std::size_t>(to)]) take(std::move(*carried));
  });
}

void PlatformNetwork::Close(int from, int to) {
  Send(to, {.from = from, .kind = Letter::Kind::kClosed});
  way(from, to).open = false;
}

}  // namespace freshet::fabric::sim
