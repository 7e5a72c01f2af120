#pragma once

#include <span>
#include <vector>

#include "fabric/collectives/transfers.h"

namespace freshet::strategy::ring {

// Places of messages that are no tensors of an edge, and how many tensors an edge may have.
inline constexpr fabric::Tag kTidings = 0, kScores = 1, kFirstEdge = 2;
inline constexpr std::size_t kMostTensors = 64;
// So many stages have places for all their edges.
inline constexpr int kMostStages = 500;

// What one member sends and gets in one step, to and from its two neighbours.
//
// Messages of one place (an edge between two stages, a direction, a tensor) are received in the order they were sent,
// micro-batch by micro-batch. Nothing outlives it (Transfers). Threads: one.
class Traffic {
 public:
  using Handle = fabric::Transfers::Handle;

  Traffic(fabric::Fabric& fabric, fabric::Tag tag) : transfers_(fabric, tag, "passing tensors round the ring") {}

  Result<Handle> SendOn(std::span<const std::byte> bytes, fabric::Tag place) {
    on_ += bytes.size();
    return transfers_.Send(next(), bytes, 2 * place);
  }
  Result<Handle> SendBack(std::span<const std::byte> bytes, fabric::Tag place) {
    back_ += bytes.size();
    return transfers_.Send(previous(), bytes, 2 * place + 1);
  }
  Result<Handle> FromBefore(std::span<std::byte> into, fabric::Tag place) {
    return transfers_.Receive(previous(), into, 2 * place);
  }
  Result<Handle> FromNext(std::span<std::byte> into, fabric::Tag place) {
    return transfers_.Receive(next(), into, 2 * place + 1);
  }
  Result<void> Wait(std::vector<Handle>& handles) {
    for (const Handle handle : handles) TRY(transfers_.Wait(handle));
    handles.clear();
    return {};
  }
  Result<void> WaitAll() { return transfers_.WaitAll(); }

  std::uint64_t sent_on() const { return on_; }
  std::uint64_t sent_back() const { return back_; }

 private:
  int next() const { return (transfers_.me() + 1) % transfers_.size(); }
  int previous() const { return (transfers_.me() + transfers_.size() - 1) % transfers_.size(); }

  fabric::Transfers transfers_;
  std::uint64_t on_ = 0, back_ = 0;
};

}  // namespace freshet::strategy::ring
