#include "strategy/ring/part_copies.h"

#include <algorithm>
#include <utility>

namespace freshet::strategy::ring {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;  // what a step sends comes in between

std::vector<std::uint64_t> PointsOf(const std::map<std::uint64_t, PartCopies::Bytes>& parts) {
  std::vector<std::uint64_t> points;
  for (const auto& [made, part] : parts) points.push_back(made);
  return points;
}

PartCopies::Bytes Find(const std::map<std::uint64_t, PartCopies::Bytes>& parts, std::uint64_t made) {
  const auto found = parts.find(made);
  return found == parts.end() ? nullptr : found->second;
}

}  // namespace

Result<void> PartCopies::Exchange(fabric::Collectives& collectives, std::uint64_t made, std::string mine) {
  const Bytes part = std::make_shared<const std::string>(std::move(mine));
  own_[made] = part;
  fabric::Fabric& fabric = collectives.fabric();
  if (fabric.size() == 1) return {};
  // Behind those of the point before.
  TRY(collectives.Wait(collectives.Start([](fabric::Tag) { return Result<void>(); })));
  {
    const base::Lock lock(shelf_->mutex);
    if (shelf_->failed) return *shelf_->failed;
  }
  fabric.Post([&fabric, tag = collectives.NextTag(), made, part, shelf = shelf_] {
    const auto carried = Carry(fabric, tag, made, *part, *shelf);
    if (carried.ok()) return;
    const base::Lock lock(shelf->mutex);
    shelf->failed = carried.error();
  });
  return {};
}

// A piece that is not full is the last.
Result<void> PartCopies::Carry(fabric::Fabric& fabric, fabric::Tag tag, std::uint64_t made, const std::string& mine,
                               Shelf& shelf) {
  const int rank = fabric.rank(), size = fabric.size();
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  std::string theirs;
  bool sends = true, hears = true;
  for (std::size_t at = 0; sends || hears; at += kPieceBytes) {
    std::optional<fabric::Transfer> sending, coming;
    Result<void> done;
    if (sends) {
      const std::size_t count = std::min(kPieceBytes, mine.size() - at);
      const auto started = fabric.StartSend(next, tag, std::as_bytes(std::span(mine.data() + at, count)));
      if (started.ok()) sending = started.value();
      if (!started.ok()) done = started.error();
      sends = count == kPieceBytes;
    }
    if (hears && done.ok()) {
      const auto started = fabric.StartBorrow(before, tag);
      if (started.ok()) coming = started.value();
      if (!started.ok()) done = started.error();
    }
    if (coming) {
      const auto arrived = fabric.Wait(*coming);
      if (arrived.ok()) {
        const auto view = arrived.value().view;
        theirs.append(reinterpret_cast<const char*>(view.data()), view.size());
        hears = view.size() == kPieceBytes;
        fabric.Release(*coming);
      } else {
        done = arrived.error();
      }
    }
    if (sending) {
      const auto sent = fabric.Wait(*sending);  // of `mine`, which must stay until then
      if (!sent.ok()) done = sent.error();
    }
    TRY(done);
  }
  const base::Lock lock(shelf.mutex);
  shelf.copies[made] = std::make_shared<const std::string>(std::move(theirs));
  shelf.sent += mine.size();
  return {};
}

std::vector<std::uint64_t> PartCopies::own() const { return PointsOf(own_); }

std::vector<std::uint64_t> PartCopies::before() const {
  const base::Lock lock(shelf_->mutex);
  return PointsOf(shelf_->copies);
}

PartCopies::Bytes PartCopies::Own(std::uint64_t made) const { return Find(own_, made); }

PartCopies::Bytes PartCopies::Before(std::uint64_t made) const {
  const base::Lock lock(shelf_->mutex);
  return Find(shelf_->copies, made);
}

void PartCopies::DropBefore(std::uint64_t made) {
  own_.erase(own_.begin(), own_.lower_bound(made));
  const base::Lock lock(shelf_->mutex);
  shelf_->copies.erase(shelf_->copies.begin(), shelf_->copies.lower_bound(made));
}

void PartCopies::Forget() {
  sent_before_ = bytes_sent();
  own_.clear();
  shelf_ = std::make_shared<Shelf>();
}

std::uint64_t PartCopies::bytes_sent() const {
  const base::Lock lock(shelf_->mutex);
  return sent_before_ + shelf_->sent;
}

}  // namespace freshet::strategy::ring
