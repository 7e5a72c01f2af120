#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "base/fibers.h"
#include "fabric/sim/flows.h"
#include "fabric/sim/platform.h"
#include "fabric/sim/wires.h"

namespace freshet::fabric::sim {

// The wires of a platform: letters of a connection leave one after the other, at the pace of its flows; between workers
// of one node, at the speed of its memory. Short ones take no room: they cost latency alone. Nothing is ever lost.
//
// Ownership: borrows all it is given.
class PlatformNetwork final : public Wires {
 public:
  // `node_of` by rank.
  PlatformNetwork(base::Fibers& fibers, Flows& flows, const Platform& platform, std::vector<int> node_of);

  int size() const override { return static_cast<int>(node_of_.size()); }
  void Attach(int rank, std::function<void(Letter)> take) override;
  void Detach(int rank) override;
  void Send(int to, Letter letter) override;
  void Close(int from, int to) override;

  std::uint64_t letters() const { return letters_; }

 private:
  struct Way {
    bool open = true, busy = false;
    base::Clock::Duration free_at{0}, arrives_at{0};  // within a node; of the last letter
    std::deque<Letter> waiting;
  };
  Way& way(int from, int to) { return ways_[static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint64_t>(to)]; }
  void SendWithin(Way& way, int to, Letter letter);
  void SendNext(int from, int to);
  void ArriveAt(Way& way, int to, Letter letter, base::Clock::Duration when);

  base::Fibers& fibers_;
  Flows& flows_;
  const double link_rate_, local_rate_;  // bytes a second
  const base::Clock::Duration local_latency_;
  const std::vector<int> node_of_;
  std::unordered_map<std::uint64_t, Way> ways_;
  std::vector<std::function<void(Letter)>> takers_;
  std::uint64_t letters_ = 0;
};

}  // namespace freshet::fabric::sim
