#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "base/fibers.h"
#include "base/random.h"
#include "fabric/sim/wires.h"

namespace freshet::fabric::sim {

// How fast it is, the same between all.
struct Link {
  base::Clock::Duration latency = std::chrono::microseconds(50);
  base::Clock::Duration jitter = std::chrono::microseconds(20);  // at most so much more, drawn from the seed
  double bytes_per_second = 1e9;                                 // into and out of each member
};

// A network to which faults happen. A member's letters leave one after the other, at the speed of its link.
//
// Letters for a member that has not come yet wait for it.
//
// Faults: what goes one way can be held back (a partition: it arrives, in order, when that is over), be late, or be
// lost with its connection. Somebody killed has no connections any more.
//
// Threads: as base::Fibers. Ownership: borrows the fibers.
class Network final : public Wires {
 public:
  Network(base::Fibers& fibers, int size, const Link& link, std::uint64_t seed);

  int size() const override { return static_cast<int>(leaves_at_.size()); }
  void Attach(int rank, std::function<void(Letter)> take) override;
  void Detach(int rank) override { takers_[static_cast<std::size_t>(rank)] = nullptr; }
  void Send(int to, Letter letter) override;
  void Close(int from, int to) override;

  void Hold(int from, int to) { way(from, to).held = true; }
  void Release(int from, int to);
  void Delay(int from, int to, base::Clock::Duration more) { way(from, to).more = more; }
  void Reset(int one, int other);  // both ends learn of it; what was under way is lost
  void Kill(int rank);             // the same of all it has
  void Silence(int rank);          // nothing gets to it or from it any more

  void Watch(std::function<void(int to, const Letter& letter)> watch) { watch_ = std::move(watch); }  // what arrives

 private:
  struct Way {
    bool open = true, held = false;
    std::uint64_t life = 0;  // what was sent in an earlier one never arrives
    base::Clock::Duration arrives_at{0};
    base::Clock::Duration more{0};
    std::deque<Letter> caught, waiting;  // held back: on their way, and after those before they left
  };
  Way& way(int from, int to) {
    return ways_[static_cast<std::size_t>(from) * leaves_at_.size() + static_cast<std::size_t>(to)];
  }
  void Dispatch(int to, Letter letter);
  void Deliver(int to, Letter letter);
  void End(int from, int to);

  base::Fibers& fibers_;
  const Link link_;
  base::Random random_;
  std::vector<base::Clock::Duration> leaves_at_;  // by member: when its link is free again
  std::vector<Way> ways_;
  std::vector<std::function<void(Letter)>> takers_;
  std::vector<std::optional<std::vector<Letter>>> early_;  // by member, until it comes for the first time
  std::function<void(int to, const Letter& letter)> watch_;
};

}  // namespace freshet::fabric::sim
