#include "strategy/scheduled/scheduled_factors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "model/factorization.h"
#include "strategy/scheduled/letter.h"

namespace freshet::strategy::scheduled {
namespace {

using model::Factorization;

// In front of the rows that a member updated: their numbers and their values follow.
struct LetterHead {
  std::uint64_t turn = 0;
  std::uint32_t stop = 0, rows = 0;
};

}  // namespace

ScheduledFactors::ScheduledFactors(const Options& options, const World& world, base::Executor& executor,
                                   OwnRatings ratings, optimize::Parameters& parameters)
    : Descending(world),
      options_(options),
      executor_(executor),
      ratings_(std::move(ratings)),
      parameters_(parameters),
      factors_(parameters.width(Factorization::kUserFactors)),
      error_changes_(ratings_.kept(), 0) {
  for (const Side side : {kUsers, kItems}) {
    std::vector<std::vector<std::uint32_t>> shares(kShares);
    std::uint64_t rated = 0;
    for (std::uint32_t row = 0; row < ratings_.rows(side); ++row) {
      scales_[side].push_back(1 / std::sqrt(std::max(ratings_.count(side, row), 1u)));
      if (ratings_.count(side, row) == 0) continue;
      ++rated;
      if (ratings_.Mine(side, row)) shares[ratings_.ShareOf(side, row)].push_back(row);
    }
    for (std::uint64_t s = 0; s < kShares; ++s)
      shares_[side].emplace_back(std::move(shares[s]), options.order, options.seed + base::Hash64(s + side * kShares));
    changes_[side].assign(ratings_.rows(side), std::numeric_limits<double>::infinity());
    turn_rows_[side] = options.rows > 0 ? options.rows : std::max(kShares, (rated + kTurnsOfSide - 1) / kTurnsOfSide);
    coordinates_ += rated * width();
  }
  const double mean = *parameters_.Row(Factorization::kGlobal, 0);
  for (std::uint32_t user = 0; user < ratings_.rows(kUsers); ++user)
    ratings_.Visit(kUsers, user, [&](std::size_t at, std::uint32_t item) {
      double score = mean + static_cast<double>(*Bias(kUsers, user)) + static_cast<double>(*Bias(kItems, item));
      const float* const p = Factors(kUsers, user);
      const float* const q = Factors(kItems, item);
      for (std::size_t f = 0; f < factors_; ++f) score += static_cast<double>(p[f]) * static_cast<double>(q[f]);
      ratings_.error(at) -= score;
    });
  if (options.trained) LookAtAll();
}

float* ScheduledFactors::Bias(Side side, std::uint32_t row) const {
  return parameters_.Row(side == kUsers ? Factorization::kUserBias : Factorization::kItemBias, row);
}

float* ScheduledFactors::Factors(Side side, std::uint32_t row) const {
  return parameters_.Row(side == kUsers ? Factorization::kUserFactors : Factorization::kItemFactors, row);
}

// How much own rows would change the errors of their ratings if it were their turn.
void ScheduledFactors::LookAtAll() {
  for (const Side side : {kUsers, kItems}) {
    std::vector<std::uint32_t> rows;
    for (const RowShare& share : shares_[side]) rows.insert(rows.end(), share.rows().begin(), share.rows().end());
    ShareOut(rows.size(), [&](std::size_t i, Desk& desk) {
      std::vector<float> values(width());
      Update(side, rows[i], desk, values);
      double sum = 0;
      std::size_t j = 0;
      ratings_.Visit(side, rows[i], [&](std::size_t at, std::uint32_t) {
        const double change = desk.errors[j++] - ratings_.error(at);
        sum += change * change;
      });
      changes_[side][rows[i]] = sum * scales_[side][rows[i]];
    });
  }
}

void ScheduledFactors::ShareOut(std::size_t count, const std::function<void(std::size_t i, Desk& desk)>& work) const {
  const std::size_t tasks = std::min(count, static_cast<std::size_t>(executor_.width()) * 8);
  executor_.Run(static_cast<int>(tasks), [&](int task) {
    const auto t = static_cast<std::size_t>(task);
    Desk desk;
    for (std::size_t i = count * t / tasks; i < count * (t + 1) / tasks; ++i) work(i, desk);
  });
}

Result<bool> ScheduledFactors::MakeRound(bool stop) {
  const Side side = turns_ % 2 == 0 ? kUsers : kItems;
  const std::vector<std::uint32_t> rows = Choose(side);
  std::vector<float> values(rows.size() * width());
  ShareOut(rows.size(), [&](std::size_t i, Desk& desk) {
    Update(side, rows[i], desk, std::span(values).subspan(i * width(), width()));
  });
  if (TRY(Tell(side, stop, rows, values))) return false;
  Apply(side);
  ++turns_;
  rounds_ += width();
  updates_ += told_.size() * width();
  return true;
}

// Places go to shares in turn.
std::vector<std::uint32_t> ScheduledFactors::Choose(Side side) {
  const std::uint64_t first = slots_[side], last = first + turn_rows_[side];
  slots_[side] = last;
  std::vector<std::uint32_t> rows;
  for (std::uint64_t s = FirstShare(rank()); s < FirstShare(rank() + 1); ++s) {
    const std::uint64_t places = (last + kShares - 1 - s) / kShares - (first + kShares - 1 - s) / kShares;
    const std::vector<std::uint32_t> next = shares_[side][s].Next(places, changes_[side]);
    rows.insert(rows.end(), next.begin(), next.end());
  }
  return rows;
}

// What a row meets, by coordinate: of some ratings at a time, so that what is written lies together.
void ScheduledFactors::LayOut(Side side, std::uint32_t row, Desk& desk) const {
  constexpr std::size_t kAtOnce = 16;
  const std::size_t n = ratings_.count(side, row);
  desk.errors.clear();
  desk.other_factors.clear();
  ratings_.Visit(side, row, [&](std::size_t at, std::uint32_t other) {
    desk.errors.push_back(ratings_.error(at));
    desk.other_factors.push_back(Factors(Other(side), other));
  });
  CHECK(desk.errors.size() == n);
  desk.others.resize(n * width());
  std::fill_n(desk.others.begin(), n, 1.0f);
  for (std::size_t begin = 0; begin < n; begin += kAtOnce) {
    const std::size_t end = std::min(begin + kAtOnce, n);
    for (std::size_t f = 0; f < factors_; ++f)
      for (std::size_t j = begin; j < end; ++j) desk.others[(f + 1) * n + j] = desk.other_factors[j][f];
  }
}

// The new values of a row, one coordinate after another; the errors of its ratings by then are on the desk.
void ScheduledFactors::Update(Side side, std::uint32_t row, Desk& desk, std::span<float> values) const {
  values[0] = *Bias(side, row);
  std::copy_n(Factors(side, row), factors_, values.begin() + 1);
  LayOut(side, row, desk);
  const std::size_t n = desk.errors.size();
  const double held = options_.l2 * static_cast<double>(n);
  double* const errors = desk.errors.data();
  for (std::size_t c = 0; c < width(); ++c) {
    const float* const others = desk.others.data() + c * n;
    double slope = 0, square = 0;
#pragma omp simd reduction(+ : slope, square)
    for (std::size_t i = 0; i < n; ++i) {
      const auto other = static_cast<double>(others[i]);
      slope += errors[i] * other;
      square += other * other;
    }
    const double before = values[c], curvature = square + held;
    if (!(curvature > 0)) continue;
    values[c] = static_cast<float>(before + (slope - held * before) / curvature);
    const double change = static_cast<double>(values[c]) - before;
    if (change == 0) continue;
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) errors[i] -= change * static_cast<double>(others[i]);
  }
}

// All members' rows; whether anybody wished to stop.
Result<bool> ScheduledFactors::Tell(Side side, bool stop, std::span<const std::uint32_t> rows,
                                    std::span<const float> values) {
  if (size() == 1) {
    told_.assign(rows.begin(), rows.end());
    told_values_.assign(values.begin(), values.end());
    return stop;
  }
  std::vector<std::byte> letter;
  const LetterHead head{turns_, stop, static_cast<std::uint32_t>(rows.size())};
  Append(letter, std::span(&head, 1));
  Append(letter, rows);
  Append(letter, values);
  const auto letters = TRY(Gather(letter));
  told_.clear();
  told_values_.clear();
  for (int from = 0; from < size(); ++from)
    TRY(Take(side, from, letters[static_cast<std::size_t>(from)], stop).While(Str("reading the rows of rank ", from)));
  return stop;
}

Result<void> ScheduledFactors::Take(Side side, int from, std::span<const std::byte> letter, bool& stop) {
  const Error damaged{Code::kCorrupt, Str("what came in turn ", turns_, " is damaged, or of another version")};
  LetterHead head;
  if (!TakeOff(letter, std::span(&head, 1)) || head.turn != turns_) return damaged;
  if (letter.size() != head.rows * (sizeof(std::uint32_t) + width() * sizeof(float))) return damaged;
  stop = stop || head.stop != 0;
  const std::size_t before = told_.size();
  told_.resize(before + head.rows);
  told_values_.resize(told_.size() * width());
  const auto rows = std::span(told_).subspan(before);
  TakeOff(letter, rows);
  TakeOff(letter, std::span(told_values_).subspan(before * width()));
  const bool theirs = std::all_of(rows.begin(), rows.end(), [&](std::uint32_t row) {
    return row < ratings_.rows(side) && FirstShare(from) <= ratings_.ShareOf(side, row) &&
           ratings_.ShareOf(side, row) < FirstShare(from + 1);
  });
  return theirs ? Result<void>() : damaged;
}

// The errors of different rows of a side are different ones; how much they changed is added up in the order of rows.
void ScheduledFactors::Apply(Side side) {
  ShareOut(told_.size(), [&](std::size_t i, Desk&) {
    ApplyTo(side, told_[i], std::span(told_values_).subspan(i * width(), width()));
  });
  for (const std::uint32_t row : told_) {
    double own = 0;
    ratings_.Visit(side, row, [&](std::size_t at, std::uint32_t other) {
      const double change = error_changes_[at];
      own += change * change;
      changes_[Other(side)][other] += change * change * scales_[Other(side)][other];
    });
    changes_[side][row] = kOwnChange * own * scales_[side][row];
  }
}

// The one place where errors are changed: wherever a rating is, it has the same bits.
void ScheduledFactors::ApplyTo(Side side, std::uint32_t row, std::span<const float> values) {
  std::vector<double> steps(width());
  float* const factors = Factors(side, row);
  for (std::size_t c = 0; c < width(); ++c) {
    float& value = c == 0 ? *Bias(side, row) : factors[c - 1];
    steps[c] = static_cast<double>(values[c]) - static_cast<double>(value);
    value = values[c];
  }
  const double* const of_factors = steps.data() + 1;
  ratings_.Visit(side, row, [&](std::size_t at, std::uint32_t other) {
    const float* const others = Factors(Other(side), other);
    double change = 0;
#pragma omp simd reduction(+ : change)
    for (std::size_t f = 0; f < factors_; ++f) change += of_factors[f] * static_cast<double>(others[f]);
    change += steps[0];
    ratings_.error(at) -= change;
    error_changes_[at] = static_cast<float>(change);
  });
}

Result<ScheduledFactors::Sums> ScheduledFactors::Sum() {
  std::vector<Sums> mine;
  for (std::uint64_t s = FirstShare(rank()); s < FirstShare(rank() + 1); ++s) {
    double squares = 0, held = 0;
    for (const Side side : {kUsers, kItems})
      for (const std::uint32_t row : shares_[side][s].rows()) {
        if (side == kUsers)
          ratings_.Visit(side, row,
                         [&](std::size_t at, std::uint32_t) { squares += ratings_.error(at) * ratings_.error(at); });
        double length = static_cast<double>(*Bias(side, row)) * static_cast<double>(*Bias(side, row));
        const float* const factors = Factors(side, row);
        for (std::size_t f = 0; f < factors_; ++f)
          length += static_cast<double>(factors[f]) * static_cast<double>(factors[f]);
        held += length * ratings_.count(side, row);
      }
    mine.push_back({squares, held});
  }
  std::vector<std::vector<std::byte>> letters;
  if (size() > 1)
    letters = TRY(Gather(std::as_bytes(std::span(mine))));
  else
    Append(letters.emplace_back(), std::span<const Sums>(mine));
  Sums sums;
  for (std::size_t from = 0; from < letters.size(); ++from) {
    std::span<const std::byte> letter = letters[from];
    for (Sums one; TakeOff(letter, std::span(&one, 1)); sums.held += one.held) sums.squares += one.squares;
  }
  return sums;
}

Result<double> ScheduledFactors::Objective() {
  const Sums sums = TRY(Sum());
  return (0.5 * sums.squares + 0.5 * options_.l2 * sums.held) / static_cast<double>(ratings_.size());
}

std::uint64_t ScheduledFactors::nonzero() const {
  std::uint64_t count = 0;
  for (const Side side : {kUsers, kItems})
    for (std::uint32_t row = 0; row < ratings_.rows(side); ++row) {
      if (ratings_.count(side, row) == 0) continue;
      count += *Bias(side, row) != 0 ? 1 : 0;
      const float* const factors = Factors(side, row);
      count += static_cast<std::uint64_t>(
          std::count_if(factors, factors + factors_, [](float value) { return value != 0; }));
    }
  return count;
}

}  // namespace freshet::strategy::scheduled
