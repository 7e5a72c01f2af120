#include "strategy/server/backup_server.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/option.h"

namespace freshet::strategy::server {

BackupServer::BackupServer(const StrategyOptions& options, const World& world, const Synchrony& synchrony,
                           Estate& estate)
    : Server(options, world, synchrony, estate),
      rounds_(world.collectives.fabric(),
              {.members = estate.workers,
               .backup = std::min(options.backup, estate.workers - 1),
               .go = world.collectives.NextTag(),
               .rests = true},
              [this](const Ready& ready) { return letters().Send(0, Writer(ReadyHead{.round = ready.round}).Take()); }),
      sharers_(static_cast<std::size_t>(estate.workers)) {
  std::iota(sharers_.begin(), sharers_.end(), 0);
}

std::optional<std::size_t> BackupServer::PlaceOf(int worker) const {
  const auto place = std::lower_bound(sharers_.begin(), sharers_.end(), worker);
  if (place == sharers_.end() || *place != worker) return std::nullopt;
  return static_cast<std::size_t>(place - sharers_.begin());
}

data::Batch BackupServer::ShareOf(std::size_t place, const data::Batch& piece) const {
  const auto shares = static_cast<int>(sharers_.size()), which = static_cast<int>(place);
  return piece.Slice(fabric::ChunkBegin(piece.rows, which, shares), fabric::ChunkBegin(piece.rows, which + 1, shares));
}

data::Batch BackupServer::Share(const data::Batch& piece) const {
  const auto place = PlaceOf(estate().number);
  return place ? ShareOf(*place, piece) : piece.Slice(0, 0);
}

PushHead BackupServer::Named(PushHead head, std::size_t place, std::size_t part, std::size_t parts) const {
  head.share = static_cast<std::uint16_t>(place);
  head.shares = static_cast<std::uint16_t>(sharers_.size());
  head.part = static_cast<std::uint16_t>(part);
  head.parts = static_cast<std::uint16_t>(parts);
  return head;
}

Result<double> BackupServer::Work(const data::Batch& piece, const data::Batch& mine, std::span<float> scores) {
  const int self = estate().number;
  Estate::Share& own = estate().shares[self];
  TRY(rounds_.Begin());
  const auto place = PlaceOf(self);
  Made made;
  if (place) {
    made = TRY(Compute(self, piece, mine, scores));
    // What is decided before it is ready is that others do its share; they may have, and what it has read may be newer.
    if (!rounds_.Decided() && newest() <= own.clock)
      TRY(Push(self, Named(Head(own.clock, made.weight), *place, 0, 1), made));
  } else {
    TRY(AwaitAnswers());  // which it had asked for before it was late
  }
  const auto begun = world_.clock.Now();
  TRY(letters().OnTheirWay());  // of those that were taken nothing is kept
  const Go go = TRY(rounds_.Say({}));
  times_.wait += base::Seconds(world_.clock.Now() - begun);
  if (go.told.size() == sizeof(Notice)) {
    Notice notice;
    std::memcpy(&notice, go.told.data(), sizeof notice);
    Learn({notice.number, notice.clock, static_cast<Order>(notice.what), notice.synchrony});
  }
  const auto missing = [&](int worker) { return go.missing[static_cast<std::size_t>(worker)] != 0; };
  if (place && !missing(self)) TRY(DoSharesOf(go, piece));
  sharers_.clear();
  for (int worker = 0; worker < estate().workers; ++worker)
    if (!missing(worker)) sharers_.push_back(worker);
  ++estate().pieces;
  own.clock = estate().clock();
  return made.loss;
}

// Those of who is missing. Everybody who is not has a part of each, though it may have no rows.
Result<void> BackupServer::DoSharesOf(const Go& go, const data::Batch& piece) {
  std::vector<std::size_t> late;
  std::size_t here = 0, part = 0;
  for (std::size_t place = 0; place < sharers_.size(); ++place) {
    if (sharers_[place] == estate().number) part = here;
    if (go.missing[static_cast<std::size_t>(sharers_[place])] != 0)
      late.push_back(place);
    else
      ++here;
  }
  const std::uint64_t clock = estate().clock();
  for (const std::size_t place : late) {
    const data::Batch share = ShareOf(place, piece);
    const auto parts = static_cast<int>(here), which = static_cast<int>(part);
    const data::Batch rows =
        share.Slice(fabric::ChunkBegin(share.rows, which, parts), fabric::ChunkBegin(share.rows, which + 1, parts));
    const auto made = TRY(ComputeForAnother(clock, Shown(rows)));
    if (!made) return {};  // the late have pushed it, and so they have to all shards
    TRY(PushForAnother(Named(Head(clock, made->weight), place, part, here), *made));
  }
  return {};
}

Result<bool> BackupServer::Serve(int from, std::span<const std::byte> bytes) {
  if (static_cast<Kind>(bytes[0]) != Kind::kReady) return Server::Serve(from, bytes);
  if (rounds_.desk() == nullptr || from >= estate().workers) return Reader::Damaged();
  rounds_.desk()->Hear(from, {.round = TRY(Reader(bytes).Take<ReadyHead>()).round});
  return true;
}

std::optional<base::Clock::Duration> BackupServer::Tick() {
  return rounds_.desk() == nullptr ? std::nullopt : rounds_.desk()->DecideWhatIsDue();
}

void BackupServer::Deaf(const Error& why) {
  if (rounds_.desk() != nullptr) rounds_.desk()->Fail(why);
}

// Nobody can be further than the round that is decided next before it knows of the order.
std::uint64_t BackupServer::meeting(const Due& order) {
  if (dry()) return clock();
  const auto where = [&](std::uint64_t round) { return clock() + (round - rounds_.round()); };
  return where(rounds_.desk()->Announce([&](std::uint64_t round) {
    const Notice notice{order.number, where(round), static_cast<std::uint64_t>(order.order), order.synchrony};
    std::vector<std::byte> bytes(sizeof notice);
    std::memcpy(bytes.data(), &notice, sizeof notice);
    return bytes;
  }));
}

Result<void> BackupServer::Check(const StrategyOptions& options) {
  if (options.whole) return {};
  return Error{Code::kInvalid, Str(Option("backup"), " does not go with ", Option("split"),
                                   " bytes or own: others must have the rows of who is slow")};
}

Result<void> BackupServer::CheckSynchrony(const StrategyOptions& options, const Synchrony& synchrony) {
  if (synchrony.bulk()) return {};
  return Error{
      Code::kInvalid,
      Str(Option("backup"), " ", options.backup, " does not go with ", Option("synchrony"), " ", synchrony.ToText(),
          ", where ", synchrony.bounded() ? "only who is far behind is waited for" : "nobody is waited for",
          "; use bsp, or leave it out")};
}

}  // namespace freshet::strategy::server
