#pragma once

#include <functional>
#include <span>
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
  const base::Clock& clock() const override { return whole_.clock(); }

  Result<Transfer> StartSend(int to, Tag tag, std::span<const std::byte> bytes) override {
    return whole_.StartSend(Whole(to), tag + apart_, bytes);
  }
  Result<Transfer> StartHollowSend(int to, Tag tag, std::span<const std::byte> bytes, std::size_t hollow) override {
    return whole_.StartHollowSend(Whole(to), tag + apart_, bytes, hollow);
  }
  Result<Transfer> StartReceive(From from, Tag tag, std::span<std::byte> into) override {
    return OfWhole(from, [&](From whole) { return whole_.StartReceive(whole, tag + apart_, into); });
  }
  Result<Transfer> StartReceiveAdd(From from, Tag tag, std::span<float> into) override {
    return OfWhole(from, [&](From whole) { return whole_.StartReceiveAdd(whole, tag + apart_, into); });
  }
  Result<Transfer> StartBorrow(From from, Tag tag) override {
    return OfWhole(from, [&](From whole) { return whole_.StartBorrow(whole, tag + apart_); });
  }
  void Release(Transfer borrowed) override { whole_.Release(borrowed); }
  Result<Arrived> Wait(Transfer transfer, base::Clock::Duration timeout = {}) override;
  bool Done(Transfer transfer) override { return whole_.Done(transfer); }
  Result<std::size_t> WaitAny(std::span<const Transfer> transfers, base::Clock::Duration timeout = {}) override {
    return whole_.WaitAny(transfers, timeout);
  }
  std::vector<Loss> Lost(std::size_t known = 0) const override;  // of these members alone
  Result<Transfer> StartLoss(From of, std::size_t known) override {
    return OfWhole(of, [&](From whole) { return whole_.StartLoss(whole, known); });
  }
  void Post(std::function<void()> job) override { whole_.Post(std::move(job)); }
  void Spend(std::string_view work, std::size_t bytes) override { whole_.Spend(work, bytes); }
  void Abort(const Error& why) override { whole_.Abort(why); }
  std::uint64_t bytes_sent() const override { return whole_.bytes_sent(); }
  std::uint64_t bytes_shared() const override { return whole_.bytes_shared(); }

 private:
  int Whole(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  int Here(int rank_of_whole) const;  // kAnyRank for one that is not among these
  // start(those of the whole).
  template <class Start>
  Result<Transfer> OfWhole(const From& from, const Start& start) const {
    if (from.among().has_value()) return start(From(Whole(*from.among())));
    return from.rank() == kAnyRank ? start(From(others_)) : start(From(Whole(from.rank())));
  }
  std::vector<int> Whole(std::span<const int> ranks) const;

  Fabric& whole_;
  const std::vector<int> ranks_;
  std::vector<int> others_;  // the same without this member's
  const Tag apart_;
  int rank_ = 0;
};

}  // namespace freshet::fabric
