#pragma once

#include <vector>

#include "fabric/fabric.h"

namespace freshet::fabric {

// Some members of a fabric as a fabric of their own: the same connections, other ranks. Its messages have tags apart
// from everything else's. Failures name the ranks of the whole.
//
// Ownership: borrows the whole, which outlives it.
class Subset final : public Fabric {
 public:
  // `ranks` of the whole, ascending, this member's among them; `apart` is added to every tag.
  Subset(Fabric& whole, std::vector<int> ranks, Tag apart);

  std::string_view name() const override { return whole_.name(); }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  std::uint64_t generation() const override { return whole_.generation(); }
  const std::string& host(int rank) const override { return whole_.host(Whole(rank)); }

  Result<Transfer> StartSend(int to, Tag tag, std::span<const std::byte> bytes) override {
    return whole_.StartSend(Whole(to), tag + apart_, bytes);
  }
  Result<Transfer> StartReceive(int from, Tag tag, std::span<std::byte> into) override {
    return whole_.StartReceive(Whole(from), tag + apart_, into);
  }
  Result<Transfer> StartReceiveAdd(int from, Tag tag, std::span<float> into) override {
    return whole_.StartReceiveAdd(Whole(from), tag + apart_, into);
  }
  Result<Transfer> StartBorrow(int from, Tag tag) override { return whole_.StartBorrow(Whole(from), tag + apart_); }
  void Release(Transfer borrowed) override { whole_.Release(borrowed); }
  Result<Arrived> Wait(Transfer transfer, base::Clock::Duration timeout = {}) override;
  bool Done(Transfer transfer) override { return whole_.Done(transfer); }
  void Post(std::function<void()> job) override { whole_.Post(std::move(job)); }
  void Abort(const Error& why) override { whole_.Abort(why); }
  std::uint64_t bytes_sent() const override { return whole_.bytes_sent(); }
  std::uint64_t bytes_shared() const override { return whole_.bytes_shared(); }

 private:
  int Whole(int rank) const { return rank == kAnyRank ? kAnyRank : ranks_[static_cast<std::size_t>(rank)]; }

  Fabric& whole_;
  const std::vector<int> ranks_;
  const Tag apart_;
  int rank_ = 0;
};

}  // namespace freshet::fabric
