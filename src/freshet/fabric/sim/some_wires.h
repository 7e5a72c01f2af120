#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "fabric/sim/wires.h"

namespace freshet::fabric::sim {

// Some of those that wires connect, as a group of their own: rank i is member members[i] of the whole.
//
// Threads: as Wires. Ownership: borrows the whole.
class SomeWires final : public Wires {
 public:
  SomeWires(Wires& whole, std::vector<int> members) : whole_(whole), members_(std::move(members)) {}

  int size() const override { return static_cast<int>(members_.size()); }
  void Attach(int rank, std::function<void(Letter)> take) override {
    whole_.Attach(Whole(rank), [this, take = std::move(take)](Letter letter) {
      const auto from = std::find(members_.begin(), members_.end(), letter.from);
      if (from == members_.end()) return;
      letter.from = static_cast<int>(from - members_.begin());
      take(std::move(letter));
    });
  }
  void Detach(int rank) override { whole_.Detach(Whole(rank)); }
  void Send(int to, Letter letter) override {
    letter.from = Whole(letter.from);
    whole_.Send(Whole(to), std::move(letter));
  }
  void Close(int from, int to) override { whole_.Close(Whole(from), Whole(to)); }

 private:
  int Whole(int rank) const { return members_[static_cast<std::size_t>(rank)]; }

  Wires& whole_;
  const std::vector<int> members_;
};

}  // namespace freshet::fabric::sim
