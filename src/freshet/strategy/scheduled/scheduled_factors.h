#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/executor.h"
#include "optimize/parameters.h"
#include "strategy/scheduled/descending.h"
#include "strategy/scheduled/own_ratings.h"
#include "strategy/scheduled/row_share.h"

namespace freshet::strategy::scheduled {

// One member of a descent along the biases and factors of a factorization: each is set to where the objective is least
// along it,
//   mean over the ratings of (error²/2 + l2/2 · (squares of the biases and factors of its user and of its item)),
// so that l2 holds a row back as often as it is rated, as it does in SGD. The mean of the ratings stays what it is.
//
// A turn is of some users, or of some items, by turns, all of which are independent of each other as long as the other
// side stays where it is: a user and an item are never in the same turn. It has a round for the bias and for each factor,
// so that two factors of a row are not updated in the same round. Who has a row has all ratings of it, updates it, is its
// scheduler (RowShare), and tells all what it is when the turn has ended; all correct the errors of the ratings they have.
//
// Next are the rows whose errors have changed most since their last turn: in the sum of squares, over the root of the number
// of its ratings. The sum itself is about what a turn may gain, the mean what it may gain for its computing; either alone
// is worse at what the other counts. What the row changed itself counts as kOwnChange of that: others of its coordinates
// were updated before, and not much is left to gain by that.
//
// Whatever the number of members and of threads, the parameters are the same, bit for bit.
//
// Ownership, blocking and failure: as Descending's. Threads: one, and the executor's.
class ScheduledFactors final : public Descending {
 public:
  static constexpr double kOwnChange = 0.1;
  static constexpr std::uint64_t kTurnsOfSide = 8;
  struct Options {
    Share::Order order = Share::Order::kRecent;
    std::uint64_t rows = 0;  // of a turn; 0: so many that kTurnsOfSide turns are of all rows of a side
    double l2 = 0;
    std::uint64_t seed = 1;
    bool trained = false;  // the parameters: then rows are looked at first, to see which would change much
  };
  // Ratings that were arranged, with the shares of this member; parameters of a model::Factorization, everybody's the same,
  // its mean known.
  ScheduledFactors(const Options& options, const World& world, base::Executor& executor, OwnRatings ratings,
                   optimize::Parameters& parameters);

  Result<double> Objective() override;  // coordinates are those of rows that have ratings
  struct Sums {
    double squares = 0;  // of errors
    double held = 0;     // of biases and factors, as often as they are rated
  };
  Result<Sums> Sum();  // by all together
  std::uint64_t ratings() const { return ratings_.size(); }
  std::uint64_t nonzero() const;  // of the coordinates

 private:
  // What a row's turn needs beside it.
  struct Desk {
    std::vector<double> errors;               // of its ratings
    std::vector<const float*> other_factors;  // of each rating
    std::vector<float> others;                // by coordinate, what that is multiplied by in each rating
  };
  Result<bool> MakeRound(bool stop) override;
  std::vector<std::uint32_t> Choose(Side side);
  void LayOut(Side side, std::uint32_t row, Desk& desk) const;
  void Update(Side side, std::uint32_t row, Desk& desk, std::span<float> values) const;
  void LookAtAll();
  Result<bool> Tell(Side side, bool stop, std::span<const std::uint32_t> rows, std::span<const float> values);
  Result<void> Take(Side side, int from, std::span<const std::byte> letter, bool& stop);
  void Apply(Side side);
  void ApplyTo(Side side, std::uint32_t row, std::span<const float> values);
  // Calls work(i, desk) for 0 … count - 1, on all threads.
  void ShareOut(std::size_t count, const std::function<void(std::size_t i, Desk& desk)>& work) const;

  std::size_t width() const { return factors_ + 1; }  // the bias first
  float* Bias(Side side, std::uint32_t row) const;
  float* Factors(Side side, std::uint32_t row) const;

  const Options options_;
  base::Executor& executor_;
  OwnRatings ratings_;
  optimize::Parameters& parameters_;
  const std::size_t factors_;
  std::array<std::vector<RowShare>, 2> shares_;  // of all members; others' are empty
  std::array<std::vector<double>, 2> scales_;    // by row: 1 over the root of the number of its ratings
  std::array<std::vector<double>, 2> changes_;   // by row, since its last turn, scaled; of own rows it is right
  std::array<std::uint64_t, 2> turn_rows_ = {};  // of a turn
  std::array<std::uint64_t, 2> slots_ = {};      // places of rows so far, which go to shares in turn
  std::uint64_t turns_ = 0;

  std::vector<std::uint32_t> told_;  // rows of this turn, of all members
  std::vector<float> told_values_;
  std::vector<float> error_changes_;  // of the ratings here, in this turn
};

}  // namespace freshet::strategy::scheduled
