#include "strategy/ready_desk.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/str.h"
#include "strategy/letterbox.h"

namespace freshet::strategy {
namespace {

constexpr double kPatience = 0.1;         // of what the others took, for the last
constexpr std::size_t kRoundsKept = 256;  // more than anybody is behind

}  // namespace

std::vector<std::byte> Go::Encode() const {
  std::vector<std::byte> bytes = {std::byte{stop}, std::byte{save}, std::byte{admit}};
  for (const std::uint8_t one : missing) bytes.push_back(std::byte{one});
  bytes.insert(bytes.end(), told.begin(), told.end());
  return bytes;
}

Result<Go> Go::Decode(std::span<const std::byte> bytes, int members) {
  const std::size_t head = 3 + static_cast<std::size_t>(members);
  if (bytes.size() < head)
    return Error{Code::kCorrupt, "what rank 0 decided is damaged; do all members run the same program?"};
  Go go{.stop = static_cast<std::uint8_t>(bytes[0]),
        .save = static_cast<std::uint8_t>(bytes[1]),
        .admit = static_cast<std::uint8_t>(bytes[2]),
        .missing = {},
        .told = {bytes.begin() + static_cast<std::ptrdiff_t>(head), bytes.end()}};
  for (const std::byte one : bytes.subspan(3, head - 3)) go.missing.push_back(static_cast<std::uint8_t>(one));
  return go;
}

ReadyDesk::ReadyDesk(fabric::Fabric& fabric, const Options& options)
    : fabric_(fabric), options_(options), clock_(fabric.clock()), changed_(clock_.NewCondition()) {}

void ReadyDesk::Open() {
  fabric_.Post([self = shared_from_this()] { self->Listen(); });
}

ReadyDesk::Round& ReadyDesk::At(std::uint64_t round) {
  CHECK(round >= first_);
  while (round >= first_ + rounds_.size()) {
    Round& next = rounds_.emplace_back();
    next.ready.resize(static_cast<std::size_t>(options_.members), false);
  }
  return rounds_[round - first_];
}

bool ReadyDesk::HasShare(std::uint64_t round, std::size_t rank) {
  return !options_.rests || round == first_ || At(round - 1).go.missing[rank] == 0;
}

bool ReadyDesk::AllReady(std::uint64_t round) {
  const Round& at = At(round);
  for (std::size_t rank = 0; rank < at.ready.size(); ++rank)
    if (!at.ready[rank] && HasShare(round, rank)) return false;
  return rounds_.size() <= kRoundsKept || at.count == options_.members;
}

// But for those who are not waited for; one at least has done its share, and could do that of another.
bool ReadyDesk::Enough(std::uint64_t round) {
  const Round& at = At(round);
  bool anybody = false;
  for (std::size_t rank = 0; rank < at.ready.size(); ++rank)
    anybody = anybody || (at.ready[rank] && HasShare(round, rank));
  return anybody && at.count + options_.backup >= options_.members && rounds_.size() <= kRoundsKept;
}

void ReadyDesk::Note(int rank, const Ready& ready) {
  Forget();
  if (ready.round < first_) return;
  Round& round = At(ready.round);
  const auto now = clock_.Now();
  if (round.count == 0) round.begun = now;
  // What somebody asks for who is late is for a round that is not decided yet.
  Go& asked = At(std::max(Undecided(), ready.round)).go;
  asked.stop |= ready.stop;
  asked.save |= ready.save;
  asked.admit |= ready.admit;
  if (round.decided) return;
  if (!round.ready[static_cast<std::size_t>(rank)]) ++round.count;
  round.ready[static_cast<std::size_t>(rank)] = true;
  // How long a round takes is known from when the one before it was decided.
  const base::Clock::Duration before = ready.round > first_ ? At(ready.round - 1).due : round.begun;
  if (Enough(ready.round) && round.due == base::Clock::Duration{})
    round.due = now + std::chrono::duration_cast<base::Clock::Duration>((now - std::min(before, now)) * kPatience);
  if (AllReady(ready.round)) Decide(round);
}

std::uint64_t ReadyDesk::Undecided() {
  std::uint64_t next = first_;
  while (At(next).decided) ++next;
  return next;
}

void ReadyDesk::Decide(Round& round) {
  round.decided = true;
  round.due = clock_.Now();
  for (const bool ready : round.ready) round.go.missing.push_back(ready ? 0 : 1);
  round.go.told = told_;
  round.bytes = round.go.Encode();
  for (int rank = 1; rank < options_.members; ++rank)
    if (const auto telling = fabric_.StartSend(rank, options_.go, round.bytes); telling.ok())
      round.telling.push_back(telling.value());
  changed_->NotifyAll();
}

// What everybody has been told of. Who has not is so far behind that nothing more is decided without it.
void ReadyDesk::Forget() {
  while (rounds_.size() > kRoundsKept && rounds_.front().decided) {
    std::vector<fabric::Transfer>& telling = rounds_.front().telling;
    if (!std::all_of(telling.begin(), telling.end(), [&](fabric::Transfer each) { return fabric_.Done(each); })) return;
    for (const fabric::Transfer each : telling) (void)fabric_.Wait(each);
    rounds_.pop_front();
    ++first_;
  }
}

std::optional<base::Clock::Duration> ReadyDesk::Due() {
  const std::uint64_t next = Undecided();
  Round& round = At(next);
  if (round.count > 0 && (AllReady(next) || (Enough(next) && clock_.Now() >= round.due))) {
    Decide(round);
    return std::nullopt;
  }
  return Enough(next) ? std::optional(round.due) : std::nullopt;
}

void ReadyDesk::Hear(int rank, const Ready& ready) {
  const base::Lock lock(mutex_);
  Note(rank, ready);
  changed_->NotifyAll();
}

std::optional<base::Clock::Duration> ReadyDesk::DecideWhatIsDue() {
  const base::Lock lock(mutex_);
  return Due();
}

void ReadyDesk::Fail(const Error& why) {
  const base::Lock lock(mutex_);
  failed_ = why;
  changed_->NotifyAll();
}

// To whoever is next, and not to each: one who is done may leave while others still need one another. Who is lost in a
// group that goes on would not be missed so, and is waited for beside.
void ReadyDesk::Listen() {
  const auto lost = fabric_.StartLoss(fabric::kAnyRank, fabric_.Lost().size());
  if (!lost.ok()) return Fail(lost.error());
  while (true) {
    const auto next = fabric_.StartBorrow(fabric::kAnyRank, options_.ready);
    if (!next.ok()) return Fail(next.error());
    const std::array transfers = {next.value(), lost.value()};
    for (std::optional<std::size_t> which; !which;) {
      base::Clock::Duration patience = std::chrono::hours(1);
      if (const auto due = DecideWhatIsDue())
        patience = std::max<base::Clock::Duration>(*due - clock_.Now(), std::chrono::microseconds(1));
      const auto done = fabric_.WaitAny(transfers, patience);
      if (done.ok())
        which = done.value();
      else if (done.error().code != Code::kTimeout)
        return Fail(done.error());
      if (which && *which > 0) return Fail(fabric_.Lost().back().why);
    }
    const auto arrived = fabric_.Wait(next.value());
    if (!arrived.ok()) return Fail(arrived.error());
    Ready ready;
    const auto [from, bytes, view] = arrived.value();
    if (bytes != sizeof ready || from >= options_.members)
      return Fail(
          {Code::kCorrupt, Str("rank ", from, " said ", bytes, " bytes to be ready; do all run the same program?")});
    std::memcpy(&ready, view.data(), sizeof ready);
    fabric_.Release(next.value());
    Hear(from, ready);
  }
}

bool ReadyDesk::Decided(std::uint64_t round) const {
  const base::Lock lock(mutex_);
  return round < first_ || (round < first_ + rounds_.size() && rounds_[round - first_].decided);
}

Result<Go> ReadyDesk::Await(const Ready& mine) {
  const base::Lock lock(mutex_);
  Note(0, mine);
  while (!At(mine.round).decided) {
    if (failed_) return *failed_;
    const auto due = Due();
    if (!At(mine.round).decided) changed_->WaitUntil(mutex_, due ? *due : base::Clock::Duration::max());
  }
  return At(mine.round).go;
}

std::uint64_t ReadyDesk::Announce(const std::function<std::vector<std::byte>(std::uint64_t round)>& what) {
  const base::Lock lock(mutex_);
  const std::uint64_t next = Undecided();
  told_ = what(next);
  return next;
}

ReadyRounds::ReadyRounds(fabric::Fabric& fabric, const ReadyDesk::Options& options, Tell tell)
    : fabric_(fabric), options_(options), tell_(std::move(tell)) {
  if (fabric.rank() != 0) return;
  desk_ = std::make_shared<ReadyDesk>(fabric, options);
  if (!tell_) desk_->Open();
}

// What it has not been told is of no interest any more.
ReadyRounds::~ReadyRounds() {
  if (going_) Letterbox::TakeBack(fabric_, {*going_});
}

Result<void> ReadyRounds::Begin() {
  ++round_;
  if (desk_ == nullptr) going_ = TRY(fabric_.StartBorrow(0, options_.go));
  return {};
}

bool ReadyRounds::Decided() const { return desk_ != nullptr ? desk_->Decided(round_) : fabric_.Done(*going_); }

Result<Go> ReadyRounds::Say(Ready ready) {
  ready.round = round_;
  if (desk_ != nullptr) return desk_->Await(ready);
  std::optional<fabric::Transfer> telling;
  if (tell_)
    TRY(tell_(ready));
  else
    telling = TRY(fabric_.StartSend(0, options_.ready, std::as_bytes(std::span(&ready, 1))));
  const auto arrived = fabric_.Wait(*going_);
  if (telling) TRY(fabric_.Wait(*telling));
  const fabric::Transfer going = *std::exchange(going_, std::nullopt);
  const fabric::Arrived came = TRY(arrived);
  auto go = Go::Decode(came.view, options_.members);
  fabric_.Release(going);
  return go;
}

}  // namespace freshet::strategy
