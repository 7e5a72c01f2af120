#include "fabric/sim/network.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace freshet::fabric::sim {

Network::Network(base::Fibers& fibers, int size, const Link& link, std::uint64_t seed)
    : fibers_(fibers),
      link_(link),
      random_(seed, "network"),
      leaves_at_(static_cast<std::size_t>(size)),
      ways_(leaves_at_.size() * leaves_at_.size()),
      takers_(leaves_at_.size()),
      early_(leaves_at_.size(), std::vector<Letter>()) {}

void Network::Attach(int rank, std::function<void(Letter)> take) {
  takers_[static_cast<std::size_t>(rank)] = std::move(take);
  auto early = std::exchange(early_[static_cast<std::size_t>(rank)], std::nullopt);
  if (!early) return;
  for (Letter& letter : *early) Deliver(rank, std::move(letter));
}

void Network::Send(int to, Letter letter) {
  Way& way = this->way(letter.from, to);
  if (!way.open) return;
  if (way.held) return way.waiting.push_back(std::move(letter));
  Dispatch(to, std::move(letter));
}

void Network::Dispatch(int to, Letter letter) {
  using base::Clock;
  Way& way = this->way(letter.from, to);
  Clock::Duration& leaves = leaves_at_[static_cast<std::size_t>(letter.from)];
  const double seconds = static_cast<double>(letter.bytes()) / link_.bytes_per_second;
  leaves = std::max(leaves, fibers_.Now()) +
           std::chrono::duration_cast<Clock::Duration>(std::chrono::duration<double>(seconds));
  const auto jitter = static_cast<std::uint64_t>(link_.jitter.count());
  const Clock::Duration travels =
      link_.latency + way.more +
      Clock::Duration(jitter == 0 ? 0 : static_cast<Clock::Duration::rep>(random_.Below(jitter)));
  way.arrives_at = std::max(way.arrives_at, leaves + travels);
  // std::function wants what it holds to be copied.
  fibers_.At(way.arrives_at, [this, to, life = way.life, letter = std::make_shared<Letter>(std::move(letter))] {
    Way& taken = this->way(letter->from, to);
    if (taken.life != life) return;
    if (taken.held) return taken.caught.push_back(std::move(*letter));
    Deliver(to, std::move(*letter));
  });
}

void Network::Deliver(int to, Letter letter) {
  if (const auto& take = takers_[static_cast<std::size_t>(to)]) {
    if (watch_) watch_(to, letter);
    take(std::move(letter));
  } else if (auto& early = early_[static_cast<std::size_t>(to)]; early) {
    early->push_back(std::move(letter));
  }
}

void Network::Release(int from, int to) {
  Way& way = this->way(from, to);
  way.held = false;
  for (std::deque<Letter>* const held : {&way.caught, &way.waiting})
    for (Letter& letter : std::exchange(*held, {})) Dispatch(to, std::move(letter));
}

void Network::Close(int from, int to) {
  Send(to, {.from = from, .kind = Letter::Kind::kClosed});
  way(from, to).open = false;
}

void Network::End(int from, int to) {
  Way& way = this->way(from, to);
  if (!way.open && way.life > 0) return;
  way.open = false;
  ++way.life;
  way.caught.clear();
  way.waiting.clear();
  fibers_.At(fibers_.Now() + link_.latency,
             [this, from, to] { Deliver(to, {.from = from, .kind = Letter::Kind::kClosed}); });
}

void Network::Reset(int one, int other) {
  End(one, other);
  End(other, one);
}

void Network::Kill(int rank) {
  for (int other = 0; other < size(); ++other)
    if (other != rank) Reset(rank, other);
}

void Network::Silence(int rank) {
  for (int other = 0; other < size(); ++other) {
    Hold(rank, other);
    Hold(other, rank);
  }
}

}  // namespace freshet::fabric::sim
