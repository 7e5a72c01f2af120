#include "strategy/ready_desk.h"

#include <algorithm>
#include <cstring>

#include "base/str.h"

namespace freshet::strategy {
namespace {

constexpr double kPatience = 0.1;         // of what the others took, for the last
constexpr std::size_t kRoundsKept = 256;  // more than anybody is behind

}  // namespace

std::vector<std::byte> Go::Encode() const {
  std::vector<std::byte> bytes = {std::byte{stop}, std::byte{save}, std::byte{admit}};
  for (const std::uint8_t one : missing) bytes.push_back(std::byte{one});
  return bytes;
}

Result<Go> Go::Decode(std::span<const std::byte> bytes, int members) {
  if (bytes.size() != 3 + static_cast<std::size_t>(members))
    return Error{Code::kCorrupt, "what rank 0 decided is damaged; do all members run the same program?"};
  Go go{.stop = static_cast<std::uint8_t>(bytes[0]),
        .save = static_cast<std::uint8_t>(bytes[1]),
        .admit = static_cast<std::uint8_t>(bytes[2])};
  for (const std::byte one : bytes.subspan(3)) go.missing.push_back(static_cast<std::uint8_t>(one));
  return go;
}

ReadyDesk::ReadyDesk(fabric::Fabric& fabric, int backup, fabric::Tag ready, fabric::Tag go)
    : fabric_(fabric),
      backup_(backup),
      ready_tag_(ready),
      go_tag_(go),
      clock_(fabric.clock()),
      changed_(clock_.NewCondition()) {}

void ReadyDesk::Open() {
  fabric_.Post([self = shared_from_this()] { self->Listen(); });
}

ReadyDesk::Round& ReadyDesk::At(std::uint64_t round) {
  CHECK(round >= first_);
  while (round >= first_ + rounds_.size()) {
    Round& next = rounds_.emplace_back();
    next.ready.resize(static_cast<std::size_t>(fabric_.size()), false);
  }
  return rounds_[round - first_];
}

void ReadyDesk::Note(int rank, const Ready& ready) {
  Round& round = At(ready.round);
  const auto now = clock_.Now();
  if (round.count == 0) round.begun = now;
  // What somebody asks for who is late is for a round that is not decided yet.
  std::uint64_t next = ready.round;
  while (At(next).decided) ++next;
  Go& asked = At(next).go;
  asked.stop |= ready.stop;
  asked.save |= ready.save;
  asked.admit |= ready.admit;
  if (next != ready.round) return;
  if (!round.ready[static_cast<std::size_t>(rank)]) ++round.count;
  round.ready[static_cast<std::size_t>(rank)] = true;
  // How long a round takes is known from when the one before it was decided.
  const base::Clock::Duration before = ready.round > first_ ? At(ready.round - 1).due : round.begun;
  if (Enough(round) && round.due == base::Clock::Duration{})
    round.due = now + std::chrono::duration_cast<base::Clock::Duration>((now - std::min(before, now)) * kPatience);
  if (round.count == fabric_.size()) Decide(round);
}

void ReadyDesk::Decide(Round& round) {
  round.decided = true;
  round.due = clock_.Now();
  for (const bool ready : round.ready) round.go.missing.push_back(ready ? 0 : 1);
  round.told = round.go.Encode();
  for (int rank = 1; rank < fabric_.size(); ++rank)
    if (const auto telling = fabric_.StartSend(rank, go_tag_, round.told); telling.ok())
      round.telling.push_back(telling.value());
  // Everybody has been told of what is that long ago.
  while (rounds_.size() > kRoundsKept && rounds_.front().decided) {
    for (const fabric::Transfer telling : rounds_.front().telling) (void)fabric_.Wait(telling);
    rounds_.pop_front();
    ++first_;
  }
  changed_->NotifyAll();
}

std::optional<base::Clock::Duration> ReadyDesk::Due() const {
  for (const Round& round : rounds_)
    if (!round.decided) return Enough(round) ? std::optional(round.due) : std::nullopt;
  return std::nullopt;
}

void ReadyDesk::DecideWhatIsDue() {
  for (Round& round : rounds_)
    if (!round.decided) {
      if (Enough(round) && clock_.Now() >= round.due) Decide(round);
      return;
    }
}

void ReadyDesk::Listen() {
  const int members = fabric_.size();
  std::vector<Ready> heard(static_cast<std::size_t>(members) - 1);
  std::vector<fabric::Transfer> transfers;
  const auto listen = [&](std::size_t i) {
    return fabric_.StartReceive(static_cast<int>(i) + 1, ready_tag_, std::as_writable_bytes(std::span(&heard[i], 1)));
  };
  const auto fail = [&](const Error& why) {
    const base::Lock lock(mutex_);
    failed_ = why;
    changed_->NotifyAll();
  };
  for (std::size_t i = 0; i < heard.size(); ++i) {
    const auto transfer = listen(i);
    if (!transfer.ok()) return fail(transfer.error());
    transfers.push_back(transfer.value());
  }
  while (true) {
    base::Clock::Duration patience = std::chrono::hours(1);
    {
      const base::Lock lock(mutex_);
      DecideWhatIsDue();
      if (const auto due = Due())
        patience = std::max<base::Clock::Duration>(*due - clock_.Now(), std::chrono::microseconds(1));
    }
    const auto which = fabric_.WaitAny(transfers, patience);
    if (!which.ok() && which.error().code == Code::kTimeout) continue;
    if (!which.ok()) return fail(which.error());
    const std::size_t i = which.value();
    if (const auto arrived = fabric_.Wait(transfers[i]); !arrived.ok()) return fail(arrived.error());
    {
      const base::Lock lock(mutex_);
      Note(static_cast<int>(i) + 1, heard[i]);
      changed_->NotifyAll();
    }
    const auto next = listen(i);
    if (!next.ok()) return fail(next.error());
    transfers[i] = next.value();
  }
}

bool ReadyDesk::Decided(std::uint64_t round) const {
  const base::Lock lock(mutex_);
  return round < first_ + rounds_.size() && rounds_[round - first_].decided;
}

Go ReadyDesk::Take(const Ready& mine) {
  const base::Lock lock(mutex_);
  CHECK(At(mine.round).decided);
  Note(0, mine);
  return At(mine.round).go;
}

Result<Go> ReadyDesk::Await(const Ready& mine) {
  const base::Lock lock(mutex_);
  Note(0, mine);
  while (!At(mine.round).decided) {
    if (failed_) return *failed_;
    DecideWhatIsDue();
    if (At(mine.round).decided) break;
    const auto due = Due();
    changed_->WaitUntil(mutex_, due ? *due : base::Clock::Duration::max());
  }
  return At(mine.round).go;
}

}  // namespace freshet::strategy
