#include "fabric/mpi/engine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "fabric/mpi/call.h"

namespace freshet::fabric::mpi {
namespace {

constexpr int kLettersEach = 64;  // in one turn
constexpr base::Clock::Duration kLastWords = std::chrono::milliseconds(100);

int RankIn(MPI_Comm communicator) {
  int rank = 0;
  CHECK(MPI_Comm_rank(communicator, &rank) == MPI_SUCCESS);
  return rank;
}

int LargestTag(MPI_Comm communicator) {
  int* value = nullptr;
  int found = 0;
  const bool known = MPI_Comm_get_attr(communicator, MPI_TAG_UB, &value, &found) == MPI_SUCCESS && found != 0;
  return known ? *value : 32'767;  // the least there is
}

}  // namespace

Engine::Engine(MPI_Comm communicator, const MpiOptions& options, std::vector<std::string> hosts,
               const base::Clock& clock)
    : Protocol({.rank = RankIn(communicator),
                .hosts = std::move(hosts),
                .eager_bytes = kEagerBytes,
                .max_message_bytes = options.max_message_bytes,
                .heartbeat = options.heartbeat,
                .heartbeat_misses = options.heartbeat_misses,
                .on_loss = options.on_loss},
               clock),
      communicator_(communicator),
      clock_(clock),
      tags_(LargestTag(communicator)),
      mail_(communicator, options.generation),
      shut_(static_cast<std::size_t>(size())),
      sums_left_(static_cast<std::size_t>(size())) {
  if (const Result<void> opened = mail_.Open(); !opened.ok()) Report(rank(), opened.error());
}

Engine::~Engine() = default;

// What went wrong inside a call that cannot say so; the next turn does. One's own rank: nobody knows whose fault it is.
void Engine::Report(int rank, const Error& error) {
  if (!trouble_.has_value()) trouble_ = Trouble{rank, error.text};
}

bool Engine::Turn() {
  if (muted_) return false;
  const std::size_t before = ends();
  const bool letters = TurnMail(), pieces = TurnBulk(), sums = TurnSum();
  TurnGoodbyes();
  if (const auto trouble = std::exchange(trouble_, std::nullopt)) {
    if (trouble->rank != rank()) {
      Lose(trouble->rank, trouble->text);
    } else {
      Abort(trouble->text);
      Mute();
    }
  }
  return letters || pieces || sums || ends() != before;
}

bool Engine::Alone() const {
  bool alone = true;
  for (int other = 0; other < size(); ++other) alone = alone && (!Open(other) || left(other));
  return alone || muted_;
}

bool Engine::TurnMail() {
  if (const Result<void> turned = mail_.Turn(); !turned.ok()) Report(rank(), turned.error());
  for (int i = 0; i < kLettersEach; ++i) {
    const auto letter = mail_.Receive();
    if (!letter.ok()) Report(rank(), letter.error());
    if (!letter.ok() || !letter.value().has_value()) return i > 0;
    OnLetter(*letter.value());
    if (muted_) return true;
  }
  return true;
}

void Engine::OnLetter(const Mail::Letter& letter) {
  if (!letter.good) return Lose(letter.from, "it sent what is no note of this version");
  Heard(letter.from);
  if (letter.note.type == NoteType::kGoodbye) return goodbyes_.push_back({letter.from, letter.note});
  if (const Result<void> taken = OnNote(letter.from, letter.note, letter.payload); !taken.ok())
    Lose(letter.from, taken.error().text);
}

// A goodbye may overtake the last pieces of a long message, or the news that they have arrived. It counts when there is
// no more of that; should none come, its sender's silence counts.
void Engine::TurnGoodbyes() {
  for (std::size_t i = 0; i < goodbyes_.size() && !muted_;) {
    const auto [from, note] = goodbyes_[i];
    const auto with = [from = from](const auto& bulk) { return bulk->operation().peer == from; };
    if (std::any_of(bulks_.begin(), bulks_.end(), with)) {
      ++i;
      continue;
    }
    goodbyes_.erase(goodbyes_.begin() + static_cast<std::ptrdiff_t>(i));
    sums_left_[static_cast<std::size_t>(from)] = note.argument;
    (void)OnNote(from, note, {});  // which a goodbye cannot fail
    CheckSum();
  }
}

bool Engine::TurnBulk() {
  bool any = false;
  for (std::size_t i = 0; i < bulks_.size() && !muted_;) {
    Bulk& bulk = *bulks_[i];
    const Result<bool> moved = bulk.Turn();
    if (!moved.ok()) {
      Report(bulk.operation().peer, moved.error());
      return true;
    }
    if (moved.value()) Heard(bulk.operation().peer);
    any = any || moved.value();
    if (!bulk.done()) {
      ++i;
      continue;
    }
    Moved(bulk.operation());
    bulks_[i] = std::move(bulks_.back());
    bulks_.pop_back();
  }
  return any;
}

void Engine::Send(int to, const Note& note, std::span<const std::byte> payload, Operation* operation) {
  if (!muted_) {
    if (const Result<void> sent = mail_.Send(to, note, payload); !sent.ok()) Report(to, sent.error());
  }
  if (operation != nullptr) Moved(*operation);
}

int Engine::TagOf(std::uint64_t receive_id) const {
  return 1 + static_cast<int>(receive_id % static_cast<std::uint64_t>(tags_));
}

void Engine::SendBulk(Operation& send) {
  bytes_sent_ += send.bytes;
  bulks_.push_back(std::make_unique<Bulk>(communicator_, TagOf(send.peer_id), send, stage_));
  if (const Result<bool> begun = bulks_.back()->Turn(); !begun.ok()) Report(send.peer, begun.error());
}

void Engine::ExpectBulk(Operation& receive) {
  bulks_.push_back(std::make_unique<Bulk>(communicator_, TagOf(receive.id), receive, stage_));
  if (const Result<bool> begun = bulks_.back()->Turn(); !begun.ok()) Report(receive.peer, begun.error());
}

bool Engine::Forget(const Operation& operation) {
  const auto found =
      std::find_if(bulks_.begin(), bulks_.end(), [&](const auto& bulk) { return &bulk->operation() == &operation; });
  if (found == bulks_.end()) return true;
  if (muted_ || !(*found)->Withdraw()) half_way_ = true;
  bulks_.erase(found);
  return false;
}

void Engine::OnLost(int rank) {
  const bool joined = left(rank) && sums_left_[static_cast<std::size_t>(rank)] >= sums_;
  if (half_way_) return Abort(Str("MPI holds on to a message of ", Name(rank), " that was half way when it was lost"));
  if (sum_.has_value() && !joined) Abort(Str("a sum of MPI's own cannot end without ", Name(rank)));
}

// The last words go out now, while all memory is still there; then nothing more.
void Engine::OnStop() {
  if (muted_ || (!half_way_ && !sum_.has_value())) return;
  const base::Clock::Duration end = clock_.Now() + kLastWords;
  while (!mail_.Empty() && clock_.Now() < end && mail_.Turn().ok()) continue;
  Mute();
}

void Engine::Mute() {
  muted_ = true;
  mail_.Abandon();
}

Result<void> Engine::StartSum(std::span<float> values) {
  if (failure().has_value()) return *failure();
  if (!losses().empty()) return losses().front().why;
  CHECK(!sum_.has_value());  // members join sums in the same order, so each has one at a time
  sum_ = Sum{.bytes = values.size_bytes()};
  ++sums_;
  CheckSum();
  if (failure().has_value()) return *failure();
  bytes_sent_ += values.size_bytes();
  const int code = MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                                  communicator_, &sum_->request);
  if (const Result<void> started = Called(code, "MPI_Iallreduce"); !started.ok()) Abort(started.error().text);
  if (failure().has_value()) return *failure();
  return {};
}

bool Engine::TurnSum() {
  if (!sum_.has_value() || muted_) return false;
  const Result<bool> ended = Ended(sum_->request);
  if (!ended.ok()) Report(rank(), ended.error());
  if (!ended.ok() || !ended.value()) return false;
  sum_.reset();
  return true;
}

// Who left before it joined this sum will never join it.
void Engine::CheckSum() {
  if (!sum_.has_value()) return;
  for (int other = 0; other < size(); ++other)
    if (left(other) && sums_left_[static_cast<std::size_t>(other)] < sums_) return Fail(other, LeftText(other));
}

Error Engine::GiveUpSum(base::Clock::Duration waited) {
  const std::string what =
      Str("not all members came to an all-reduce of ", HumanBytes(static_cast<double>(sum_->bytes)), " within ",
          Fixed(base::Seconds(waited), 1), " s of rank ", rank());
  Abort(what);
  return {Code::kTimeout, what};
}

}  // namespace freshet::fabric::mpi
