#include "deploy/scheduler.h"

#include <algorithm>
#include <cmath>

namespace freshet::deploy {
namespace {

using Duration = base::Clock::Duration;

constexpr Duration kLeastGap = std::chrono::milliseconds(1), kMostGap = std::chrono::minutes(1);

// Optional numbers, saved as two: is there one, and which.
void Put(std::vector<double>& state, const std::optional<double>& number) {
  state.insert(state.end(), {number ? 1.0 : 0.0, number.value_or(0)});
}
std::optional<double> Get(std::span<const double> pair) { return pair[0] == 1 ? std::optional(pair[1]) : std::nullopt; }

bool IsCount(double number) { return number >= 0 && number < 0x1p63 && number == std::floor(number); }

}  // namespace

std::string_view Text(Reason reason) {
  switch (reason) {
    case Reason::kNone:
      return "no reason";
    case Reason::kBufferFull:
      return "the buffer is full";
    case Reason::kPeriod:
      return "the period is over";
    case Reason::kIdle:
      return "predictions leave room";
    case Reason::kDrift:
      return "the data has drifted";
    case Reason::kDataset:
      return "a data set has joined";
    case Reason::kAsked:
      return "somebody asked for it";
  }
  CHECK(false);
}

Result<void> SchedulerOptions::Validate() const {
  std::vector<std::string> wrong;
  if (period < Duration::zero()) wrong.push_back(Str("period ", base::Seconds(period), " s: expected 0 or more"));
  if (!(p99_target_seconds > 0)) wrong.push_back(Str("p99 target ", p99_target_seconds, " s: expected a time above 0"));
  if (!(stagnation >= 0 && stagnation < 1)) wrong.push_back(Str("stagnation ", stagnation, ": expected 0 to 1"));
  if (patience < 1) wrong.push_back(Str("patience ", patience, ": expected 1 iteration or more"));
  if (!wrong.empty()) return Error{Code::kInvalid, Join(wrong, "; ")};
  return {};
}

Scheduler::Scheduler(const SchedulerOptions& options) : options_(options) { CHECK(options.Validate().ok()); }

Reason Scheduler::Decide(const Situation& situation) {
  last_ = situation;
  drift_ |= situation.drift;
  if (!began_) began_ = ended_ = situation.now;
  NoteData(situation);
  if (running_) return Reason::kNone;
  if (adapt_) AdaptGap(situation);
  adapt_ = false;
  return reason_ = Choose(situation);
}

void Scheduler::NoteData(const Situation& situation) {
  if (situation.learned != learned_ || situation.history != history_) {
    learned_ = situation.learned;
    history_ = situation.history;
    useless_ = 0;
    pass_rows_ = pass_loss_ = 0;
    best_loss_ = best_error_ = std::nullopt;
  }
  if (Improves(situation.error, best_error_)) useless_ = 0;
}

Reason Scheduler::Choose(const Situation& situation) const {
  if (situation.buffered == 0 && situation.history == 0) return Reason::kNone;
  if (asked_) return Reason::kAsked;
  if (drift_) return Reason::kDrift;
  if (situation.unvisited > 0) return Reason::kDataset;
  if (options_.max_buffer_size > 0 && situation.buffered >= options_.max_buffer_size) return Reason::kBufferFull;
  if (converged()) return Reason::kNone;
  if (options_.period > Duration::zero() && situation.now - *began_ >= options_.period) return Reason::kPeriod;
  // While nobody asks for predictions there is nobody to leave room for.
  const bool alone = !(situation.predictions_per_second > 0);
  if (options_.when_idle && (alone || situation.now - ended_ >= gap_)) return Reason::kIdle;
  return Reason::kNone;
}

void Scheduler::AdaptGap(const Situation& situation) {
  const double target = options_.p99_target_seconds;
  const bool predicting = situation.predictions_per_second > 0;
  if (predicting && situation.p99_seconds > target) {
    gap_ = std::min(std::max({2 * gap_, took_, kLeastGap}), kMostGap);
  } else if (!predicting || situation.p99_seconds < target / 2) {
    gap_ = gap_ / 2 < kLeastGap ? Duration::zero() : gap_ / 2;
  }
}

bool Scheduler::Improves(double value, std::optional<double>& best) const {
  if (!std::isfinite(value)) return false;
  if (best && !(value < *best - options_.stagnation * std::abs(*best))) return false;
  best = value;
  return true;
}

void Scheduler::OnStart(Duration now) {
  CHECK(!running_);
  running_ = true;
  asked_ = drift_ = false;
  began_ = now;
}

void Scheduler::OnFinish(Duration now, double training_loss, std::uint64_t rows) {
  CHECK(running_);
  running_ = false;
  adapt_ = true;
  reason_ = Reason::kNone;
  ended_ = now;
  took_ = now - *began_;
  double loss = training_loss;
  if (std::isfinite(training_loss) && rows > 0) {
    pass_rows_ += static_cast<double>(rows);
    pass_loss_ += training_loss * static_cast<double>(rows);
    if (pass_rows_ < static_cast<double>(last_.drawable)) return;
    loss = pass_loss_ / pass_rows_;
    pass_rows_ = pass_loss_ = 0;
  }
  if (rows > 0 && Improves(loss, best_loss_))
    useless_ = 0;
  else
    useless_ = std::min(useless_ + 1, options_.patience);
}

std::string Scheduler::StateText() const {
  if (running_) return Str("training: ", Text(reason_));
  if (last_.buffered == 0 && last_.history == 0) return "waiting for the first data";
  if (reason_ != Reason::kNone) return Str("about to train: ", Text(reason_));
  if (converged()) return Str("waiting for data: ", options_.patience, " passes brought no improvement");
  if (options_.when_idle && gap_ > Duration::zero() && last_.predictions_per_second > 0)
    return Str("waiting ", Fixed(base::Seconds(gap_), 3), " s after each iteration to leave room for predictions (p99 ",
               Fixed(last_.p99_seconds * 1000, 1), " ms, wanted below ", Fixed(options_.p99_target_seconds * 1000, 1),
               " ms)");
  if (options_.max_buffer_size > 0)
    return Str("waiting for data: ", last_.buffered, " of ", options_.max_buffer_size, " rows are in the buffer");
  if (options_.period > Duration::zero()) return "waiting for the period to end";
  return "waiting to be asked";
}

std::vector<double> Scheduler::Save() const {
  std::vector<double> state = {static_cast<double>(learned_), static_cast<double>(history_),
                               static_cast<double>(useless_), static_cast<double>(gap_.count())};
  Put(state, best_loss_);
  Put(state, best_error_);
  state.insert(state.end(), {pass_rows_, pass_loss_});
  return state;
}

bool Scheduler::Load(std::span<const double> state) {
  const bool passes = state.size() == 10;  // those of old do not have them
  if ((state.size() != 8 && !passes) ||
      !std::all_of(state.begin(), state.end(), [](double x) { return std::isfinite(x); }))
    return false;
  if (!std::all_of(state.begin(), state.begin() + 4, IsCount)) return false;
  learned_ = static_cast<std::uint64_t>(state[0]);
  history_ = static_cast<std::uint64_t>(state[1]);
  useless_ = static_cast<int>(std::min<double>(state[2], options_.patience));
  gap_ = std::min(Duration(static_cast<std::int64_t>(state[3])), kMostGap);
  best_loss_ = Get(state.subspan(4, 2));
  best_error_ = Get(state.subspan(6, 2));
  pass_rows_ = passes ? std::max(state[8], 0.0) : 0;
  pass_loss_ = passes ? state[9] : 0;
  return true;
}

}  // namespace freshet::deploy
