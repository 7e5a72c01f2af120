#include "fabric/collectives/transfers.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace freshet::fabric {
namespace {

std::vector<int> AllRanks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

Transfers::Transfers(Fabric& fabric, Tag tag, std::string_view doing)
    : Transfers(fabric, tag, doing, AllRanks(fabric.size())) {}

Transfers::Transfers(Fabric& fabric, Tag tag, std::string_view doing, std::vector<int> ranks)
    : fabric_(fabric), tag_(tag), doing_(doing), ranks_(std::move(ranks)) {
  const auto mine = std::find(ranks_.begin(), ranks_.end(), fabric.rank());
  CHECK(mine != ranks_.end());
  me_ = static_cast<int>(mine - ranks_.begin());
}

Transfers::~Transfers() {
  if (failure_.has_value()) fabric_.Abort(*failure_);
  // First what we hold of others: they may wait for it before they let go of ours.
  for (Item& item : items_) {
    if (!item.lent.has_value()) continue;
    const bool holds = !item.transfer.has_value() || fabric_.Wait(*std::exchange(item.transfer, std::nullopt)).ok();
    if (holds) fabric_.Release(*item.lent);
  }
  for (const Item& item : items_) {
    if (item.transfer.has_value()) (void)fabric_.Wait(*item.transfer);
  }
}

Result<Transfers::Handle> Transfers::Send(int to, std::span<const std::byte> bytes, Tag part) {
  if (bytes.empty()) return Handle{};
  return SendAny(to, bytes, part);
}

Result<Transfers::Handle> Transfers::SendAny(int to, std::span<const std::byte> bytes, Tag part) {
  return Keep(fabric_.StartSend(rank_of(to), tag_ + part, bytes), SIZE_MAX, false);
}

Result<Transfers::Handle> Transfers::Receive(int from, std::span<std::byte> into, Tag part) {
  if (into.empty()) return Handle{};
  return Keep(fabric_.StartReceive(rank_of(from), tag_ + part, into), into.size(), false);
}

Result<Transfers::Handle> Transfers::ReceiveAdd(int from, std::span<float> into, Tag part) {
  if (into.empty()) return Handle{};
  return Keep(fabric_.StartReceiveAdd(rank_of(from), tag_ + part, into), into.size_bytes(), false);
}

Result<Transfers::Handle> Transfers::Borrow(int from, Tag part) {
  return Keep(fabric_.StartBorrow(rank_of(from), tag_ + part), SIZE_MAX, true);
}

Result<Arrived> Transfers::Wait(Handle handle) {
  if (handle.index == SIZE_MAX || !items_[handle.index].transfer.has_value()) return Arrived{};
  Item& item = items_[handle.index];
  Result<Arrived> arrived = fabric_.Wait(*std::exchange(item.transfer, std::nullopt));
  if (!arrived.ok()) {
    item.lent.reset();
    return Fail(std::move(arrived).error());
  }
  if (item.bytes != SIZE_MAX) TRY(Expect(arrived.value(), item.bytes));
  return arrived;
}

Result<void> Transfers::Expect(const Arrived& arrived, std::size_t bytes) {
  if (arrived.bytes == bytes) return {};
  return Fail(
      {Code::kInvalid, Str("rank ", arrived.from, " gave ", arrived.bytes, " bytes to rank ", fabric_.rank(),
                           ", which expected ", bytes, ": all members call the same operation with the same length")});
}

Result<void> Transfers::WaitAll() {
  for (; done_ < items_.size(); ++done_) TRY(Wait({done_}));
  return {};
}

void Transfers::Release(Handle borrowed) {
  fabric_.Release(*items_[borrowed.index].lent);
  items_[borrowed.index].lent.reset();
}

Result<Transfers::Handle> Transfers::Keep(Result<Transfer> transfer, std::size_t bytes, bool borrowed) {
  if (!transfer.ok()) return Fail(std::move(transfer).error());
  Item item{.transfer = transfer.value(), .lent = {}, .bytes = bytes};
  if (borrowed) item.lent = transfer.value();
  items_.push_back(item);
  return Handle{items_.size() - 1};
}

Error Transfers::Fail(Error error) {
  error = std::move(error).While(doing_);
  if (!failure_.has_value()) failure_ = error;
  return error;
}

}  // namespace freshet::fabric
