#include "strategy/own_pace.h"

#include <cstring>
#include <utility>

#include "strategy/sum_in_order.h"

namespace freshet::strategy {
namespace {

// What letters begin with. To the first: somebody wants to stop, or has no more rows. From it: what is ordered.
constexpr std::byte kWantsStop{1}, kDry{2}, kOrder{3};

}  // namespace

OwnPace::OwnPace(const StrategyOptions& options, const World& world, std::size_t letters_at_once)
    : options_(options),
      world_(world),
      letters_(std::make_shared<Letterbox>(
          world.collectives.fabric(), world.collectives.NextTag(),
          [this](int from, std::span<const std::byte> bytes) { return Serve(from, bytes); }, letters_at_once)) {}

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
  times.bytes_sent = world_.collectives.fabric().bytes_sent();
  times.bytes_shared = world_.collectives.fabric().bytes_shared();
  return times;
}

void OwnPace::Ask(bool stop, bool save) {
  wants_stop_ = wants_stop_ || stop;
  wants_save_ = save && rank() == 0;
}

Result<std::optional<double>> OwnPace::Step(const data::Batch& piece, const data::Batch& mine,
                                            std::span<float> scores) {
  const base::Span span(world_.trace, "step", base::Trace::kTraining, {.step = world_.optimizer.step()});
  save_agreed_ = false;
  TRY(Open());
  const double loss = TRY(Work(piece, mine, scores));
  TRY(ReadLetters());
  TRY(Follow());
  if (mine.rows > 0) ++times_.steps;
  times_.rows += mine.rows;
  return std::optional<double>(loss);
}

Result<bool> OwnPace::StepDry() {
  if (size() == 1) {
    EpochEnded();
    return true;
  }
  save_agreed_ = false;
  TRY(Open());
  if (!std::exchange(said_dry_, true)) {
    TRY(Rest());
    TRY(rank() == 0 ? Hear(0, kDry) : Say(kDry));
  }
  const auto begun = world_.clock.Now();
  TRY(ReadLetters());
  for (TRY(Follow()); !stop_agreed_ && !save_agreed_ && !epoch_ended_; TRY(Follow())) TRY(AwaitLetter());
  times_.wait += base::Seconds(world_.clock.Now() - begun);
  if (!epoch_ended_) return false;
  said_dry_ = epoch_ended_ = false;
  EpochEnded();
  return true;
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
}

Result<void> OwnPace::Say(std::byte what) { return letters_->Send(0, {what}); }

// At the first.
Result<void> OwnPace::Hear(int from, std::byte what) {
  if (rank() != 0) return Error{Code::kCorrupt, Str("rank ", from, " asks for what only rank 0 orders")};
  if (what == kWantsStop) wants_stop_ = true;
  if (what == kDry) ++dry_;
  return {};
}

Result<void> OwnPace::Give(Order order) {
  const Due due{last_order_.number + 1, meeting(), order};
  std::vector<std::byte> bytes = {kOrder};
  bytes.resize(1 + sizeof due);
  std::memcpy(bytes.data() + 1, &due, sizeof due);
  for (int to = 1; to < size(); ++to) TRY(letters_->Send(to, bytes));
  Learn(due);
  return {};
}

Result<void> OwnPace::Follow() {
  if (rank() != 0) {
    if (wants_stop_ && !std::exchange(said_stop_, true)) TRY(Say(kWantsStop));
  } else if (!ordered_stop_ && orders_.empty()) {  // one at a time, so that nobody learns of the next one first
    if (wants_stop_) {
      ordered_stop_ = true;
      TRY(Give(Order::kStop));
    } else if (wants_save_) {
      TRY(Give(Order::kSave));
    } else if (dry_ == size()) {
      dry_ = 0;
      TRY(Give(Order::kEndEpoch));
    }
  }
  if (orders_.empty() || (orders_.front().clock > clock() && !said_dry_)) return {};
  const Order order = orders_.front().order;
  orders_.pop_front();
  stop_agreed_ = order == Order::kStop;
  save_agreed_ = order == Order::kSave;
  epoch_ended_ = order == Order::kEndEpoch;
  TRY(Rest());
  return stop_agreed_ ? Leave() : Result<void>();
}

}  // namespace freshet::strategy
