#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fabric/collectives/transfers.h"
#include "strategy/ring/packing.h"

namespace freshet::strategy::ring {

// Places of messages that are no tensors of an edge, and how many tensors an edge may have.
inline constexpr fabric::Tag kTidings = 0, kScores = 1, kFirstEdge = 2;
inline constexpr std::size_t kMostTensors = 64;
// So many stages have places for all their edges.
inline constexpr int kMostStages = 500;

// What one member sends and gets in one step, to and from its two neighbours.
//
// Messages of one place (an edge between two stages, a direction, a tensor) are received in the order they were sent,
// micro-batch by micro-batch. Tensors travel in the form that their packing gives them. Nothing outlives it (Transfers)
// but the packing, which is borrowed. Threads: one.
class Traffic {
 public:
  struct Handle {
    fabric::Transfers::Handle transfer;
    std::optional<std::size_t> parcel = {};
  };

  Traffic(fabric::Fabric& fabric, fabric::Tag tag, Packing& packing)
      : transfers_(fabric, tag, "passing tensors round the ring"), packing_(packing) {}

  // What is told, as it is.
  Result<Handle> SendOn(std::span<const std::byte> bytes, fabric::Tag place) { return Send(kOn, bytes, place); }
  Result<Handle> SendBack(std::span<const std::byte> bytes, fabric::Tag place) { return Send(kBack, bytes, place); }
  Result<Handle> FromBefore(std::span<std::byte> into, fabric::Tag place) { return Receive(kOn, into, place); }
  Result<Handle> FromNext(std::span<std::byte> into, fabric::Tag place) { return Receive(kBack, into, place); }

  // Tensors.
  Result<Handle> SendOn(std::span<const float> tensor, fabric::Tag place) { return Send(kOn, tensor, place); }
  Result<Handle> SendBack(std::span<const float> tensor, fabric::Tag place) { return Send(kBack, tensor, place); }
  Result<Handle> FromBefore(std::span<float> into, fabric::Tag place) { return Receive(kOn, into, place); }
  Result<Handle> FromNext(std::span<float> into, fabric::Tag place) { return Receive(kBack, into, place); }

  Result<void> Wait(std::vector<Handle>& handles) {
    for (const Handle& handle : handles) {
      TRY(transfers_.Wait(handle.transfer));
      if (handle.parcel && std::erase(parcels_, *handle.parcel) > 0) TRY(packing_.Release(*handle.parcel));
    }
    handles.clear();
    return {};
  }
  Result<void> WaitAll() {
    TRY(transfers_.WaitAll());
    for (const std::size_t parcel : std::exchange(parcels_, {})) TRY(packing_.Release(parcel));
    return {};
  }

  std::uint64_t sent_on() const { return bytes_[kOn]; }
  std::uint64_t sent_back() const { return bytes_[kBack]; }

 private:
  enum Way { kOn, kBack };

  Result<Handle> Send(Way way, std::span<const std::byte> bytes, fabric::Tag place) {
    bytes_[way] += bytes.size();
    return Handle{TRY(transfers_.Send(way == kOn ? next() : previous(), bytes, 2 * place + way))};
  }
  Result<Handle> Receive(Way way, std::span<std::byte> into, fabric::Tag place) {
    return Handle{TRY(transfers_.Receive(way == kOn ? previous() : next(), into, 2 * place + way))};
  }
  Result<Handle> Send(Way way, std::span<const float> tensor, fabric::Tag place) {
    if (packing_.plain()) return Send(way, std::as_bytes(tensor), place);
    const std::size_t parcel = packing_.Pack(tensor);
    Handle handle = TRY(Send(way, packing_.bytes(parcel), place));
    parcels_.push_back(parcel);
    handle.parcel = parcel;
    return handle;
  }
  Result<Handle> Receive(Way way, std::span<float> into, fabric::Tag place) {
    if (packing_.plain()) return Receive(way, std::as_writable_bytes(into), place);
    const std::size_t parcel = packing_.Expect(into);
    Handle handle = TRY(Receive(way, packing_.bytes(parcel), place));
    parcels_.push_back(parcel);
    handle.parcel = parcel;
    return handle;
  }
  int next() const { return (transfers_.me() + 1) % transfers_.size(); }
  int previous() const { return (transfers_.me() + transfers_.size() - 1) % transfers_.size(); }

  fabric::Transfers transfers_;
  Packing& packing_;
  std::vector<std::size_t> parcels_;  // on their way
  std::uint64_t bytes_[2] = {0, 0};   // sent, by the way they went
};

}  // namespace freshet::strategy::ring
