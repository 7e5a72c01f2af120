#include "strategy/own_pace.h"

#include <cstring>
#include <utility>

#include "strategy/sum_in_order.h"

namespace freshet::strategy {
namespace {

// What letters begin with. To the first: somebody wants to stop, to meet, to let others in or to go on in another
// synchrony, or has no more rows, or says where it is. From it: what is ordered, and the question where one is.
constexpr std::byte kWantsStop{1}, kDry{2}, kOrder{3}, kWantsMeeting{4}, kWantsAdmission{5}, kWhere{6}, kHere{7},
    kWantsChange{8};

}  // namespace

OwnPace::OwnPace(const StrategyOptions& options, const World& world, std::size_t letters_at_once)
    : options_(options),
      world_(world),
      letters_(std::make_shared<Letterbox>(
          world.collectives.fabric(), world.collectives.NextTag(),
          [this](int from, std::span<const std::byte> bytes) { return Serve(from, bytes); }, letters_at_once,
          Letterbox::Beside{[this] { return Tick(); }, [this](const Error& why) { Deaf(why); }})),
      sent_before_(world.collectives.fabric().bytes_sent()),
      shared_before_(world.collectives.fabric().bytes_shared()) {}

Result<void> OwnPace::Open() {
  if (size() > 1 && letters_->open()) return {};
  TRY(Begin());
  if (size() > 1) letters_->Open();
  return {};
}

data::Batch OwnPace::Share(const data::Batch& piece) const {
  if (!options_.whole) return piece;
  return piece.Slice(fabric::ChunkBegin(piece.rows, rank(), size()),
                     fabric::ChunkBegin(piece.rows, rank() + 1, size()));
}

Result<std::vector<double>> OwnPace::Sum(const std::vector<double>& mine) {
  return SumInOrder(world_.collectives, mine);
}

StepTimes OwnPace::times() const {
  StepTimes times = times_;
  times.bytes_sent = world_.collectives.fabric().bytes_sent() - sent_before_;
  times.bytes_shared = world_.collectives.fabric().bytes_shared() - shared_before_;
  return times;
}

void OwnPace::Ask(bool stop, bool save) {
  wants_stop_ = wants_stop_ || stop;
  wants_save_ = save && rank() == 0;
}

Result<std::optional<double>> OwnPace::Step(const data::Batch& piece, const data::Batch& mine,
                                            std::span<float> scores) {
  const base::Span span(world_.trace, "step", base::Trace::kTraining, {.step = world_.optimizer.step()});
  agreed_.reset();
  TRY(Open());
  const double loss = TRY(Work(piece, mine, scores));
  TRY(ReadLetters());
  TRY(Follow());
  if (mine.rows > 0) ++times_.steps;
  times_.rows += mine.rows;
  return std::optional<double>(loss);
}

Result<void> OwnPace::Attend() {
  agreed_.reset();
  TRY(Open());
  TRY(ReadLetters());
  return Follow();
}

Result<bool> OwnPace::StepDry() {
  if (size() == 1) {
    EpochEnded();
    return true;
  }
  agreed_.reset();
  TRY(Open());
  dry_ = true;
  TRY(Rest());
  if (!std::exchange(said_dry_, true)) TRY(rank() == 0 ? Hear(0, kDry) : Say(kDry));
  const auto begun = world_.clock.Now();
  TRY(ReadLetters());
  for (TRY(Follow()); !agreed_; TRY(Follow())) TRY(AwaitLetter());
  times_.wait += base::Seconds(world_.clock.Now() - begun);
  if (agreed_ != Order::kEndEpoch) return false;
  agreed_.reset();
  dry_ = said_dry_ = false;
  EpochEnded();
  return true;
}

void OwnPace::Resume(const Stand& own, const Due& last) {
  followed_ = own.followed;
  dry_ = own.dry;
  last_order_ = last;
  if (size() > 1 && last.number > followed_.number) orders_.push_back(last);
}

Result<void> OwnPace::ReadLetters() {
  if (size() == 1) return {};
  while (const auto letter = TRY(letters_->TryTake())) TRY(Read(*letter));
  return {};
}

Result<void> OwnPace::AwaitLetter() { return Read(TRY(letters_->Take())); }

Result<void> OwnPace::Read(const Letterbox::Letter& letter) {
  const std::byte what = letter.bytes.at(0);
  if (what >= kFirstOwn) return OnLetter(letter.from, letter.bytes);
  if (what == kHere) return HearWhere(letter);
  if (what == kWantsChange) return HearWish(letter);
  if (what == kWhere) where_asked_ = true;
  if (what == kWhere) return {};
  if (what != kOrder) return Hear(letter.from, what);
  Due due;
  if (letter.bytes.size() != 1 + sizeof due)
    return Error{Code::kCorrupt, "an order of rank 0 is damaged; do all members run the same program?"};
  std::memcpy(&due, letter.bytes.data() + 1, sizeof due);
  Learn(due);
  return {};
}

void OwnPace::Learn(const Due& due) {
  if (due.number <= last_order_.number) return;
  last_order_ = due;
  orders_.push_back(due);
  where_asked_ = false;
}

Result<void> OwnPace::Say(int to, std::byte what, const void* more, std::size_t bytes) {
  std::vector<std::byte> letter(1 + bytes, what);
  if (bytes > 0) std::memcpy(letter.data() + 1, more, bytes);
  return letters_->Send(to, std::move(letter));
}

// At the first.
Result<void> OwnPace::Hear(int from, std::byte what) {
  if (rank() != 0) return Error{Code::kCorrupt, Str("rank ", from, " asks for what only rank 0 orders")};
  if (what == kWantsStop) wants_stop_ = true;
  if (what == kDry) ++dry_ones_;
  if (what == kWantsMeeting && !wanted_) wanted_ = Order::kMeet;
  if (what == kWantsAdmission) wanted_ = Order::kAdmit;
  return {};
}

Result<void> OwnPace::HearWhere(const Letterbox::Letter& letter) {
  std::uint64_t where = 0;
  if (letter.bytes.size() != 1 + sizeof where)
    return Error{Code::kCorrupt, Str("where rank ", letter.from, " is, as it says, is damaged")};
  std::memcpy(&where, letter.bytes.data() + 1, sizeof where);
  furthest_ = std::max(furthest_, where);
  ++told_where_;
  return {};
}

Result<void> OwnPace::HearWish(const Letterbox::Letter& letter) {
  server::Synchrony wish;
  if (rank() != 0 || letter.bytes.size() != 1 + sizeof wish)
    return Error{Code::kCorrupt, Str("in which synchrony rank ", letter.from, " wants to go on is damaged")};
  std::memcpy(&wish, letter.bytes.data() + 1, sizeof wish);
  wanted_change_ = wish;
  return {};
}

Result<std::uint64_t> OwnPace::WhereToMeet(const Due& order) {
  if (!gathers()) return meeting(order);
  furthest_ = furthest();
  told_where_ = 0;
  for (int to = 1; to < size(); ++to) TRY(Say(to, kWhere, nullptr, 0));
  while (told_where_ + 1 < size()) TRY(AwaitLetter());
  return furthest_;
}

Result<void> OwnPace::Give(Order order, const server::Synchrony& synchrony) {
  Due due{last_order_.number + 1, 0, order, synchrony};
  due.clock = TRY(WhereToMeet(due));
  for (int to = 1; to < size(); ++to) TRY(Say(to, kOrder, &due, sizeof due));
  Learn(due);
  return {};
}

Result<void> OwnPace::Follow() {
  if (rank() != 0) {
    if (wants_stop_ && !std::exchange(said_stop_, true)) TRY(Say(kWantsStop));
    if (wanted_ && std::exchange(said_wanted_, wanted_) != wanted_)
      TRY(Say(wanted_ == Order::kAdmit ? kWantsAdmission : kWantsMeeting));
    if (wanted_change_ && std::exchange(said_change_, wanted_change_) != wanted_change_)
      TRY(Say(0, kWantsChange, &*wanted_change_, sizeof *wanted_change_));
    if (where_asked_) {
      const std::uint64_t where = furthest();
      TRY(Say(0, kHere, &where, sizeof where));
      while (where_asked_) TRY(AwaitLetter());
    }
  } else if (!ordered_stop_ && orders_.empty()) {  // one at a time, so that nobody learns of the next one first
    if (wants_stop_) {
      ordered_stop_ = true;
      TRY(Give(Order::kStop));
    } else if (wanted_) {
      TRY(Give(*std::exchange(wanted_, std::nullopt)));
    } else if (wanted_change_) {
      TRY(Give(Order::kChange, *std::exchange(wanted_change_, std::nullopt)));
    } else if (wants_save_) {  // after those, since it may be time for it with every step
      TRY(Give(Order::kSave));
    } else if (dry_ones_ == size()) {
      dry_ones_ = 0;
      TRY(Give(Order::kEndEpoch));
    }
  }
  if (orders_.empty() || (orders_.front().clock > clock() && !dry_)) return {};
  followed_ = orders_.front();
  orders_.pop_front();
  agreed_ = followed_.order;
  if (agreed_ == Order::kMeet || agreed_ == Order::kAdmit) wanted_ = said_wanted_ = std::nullopt;
  if (agreed_ == Order::kChange) wanted_change_ = said_change_ = std::nullopt;
  TRY(Rest());
  return stop_agreed() ? Leave() : Result<void>();
}

}  // namespace freshet::strategy
