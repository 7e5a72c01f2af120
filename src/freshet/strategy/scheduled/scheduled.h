#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/loss.h"
#include "strategy/scheduled/dependencies.h"
#include "strategy/scheduled/descending.h"
#include "strategy/scheduled/own_columns.h"
#include "strategy/scheduled/share.h"

namespace freshet::strategy::scheduled {

// One member of a descent by coordinates: the weights of a linear model, some in a round, are each set to where the
// objective is least along it,
//   mean of the weighted losses + l1 · Σ |w| + l2/2 · Σ w²   (the bias, the last coordinate, is not held back).
//
// Of its shares of the coordinates a member has the columns, of all rows, and is their scheduler. Shares have their turn one after another, each to propose the coordinate that should be next. All
// are told what is proposed, with its column, and find out alike which of these may go together (Dependencies); what may
// not waits for a later round, where it comes before others. Who has a coordinate computes its change, and tells that;
// all apply all changes to the scores of the rows, which everybody has.
//
// Whatever the number of members, the same proposals are made and the same sums added up in the same order: the weights are
// the same, bit for bit.
//
// Ownership, threads, blocking and failure: as Descending's.
class Scheduled final : public Descending {
 public:
  struct Options {
    Share::Order order = Share::Order::kRecent;
    std::uint64_t coordinates = 16;  // of a round
    double rho = 0.3;
    double l1 = 0, l2 = 0;
    std::uint64_t seed = 1;
  };
  // All rows, with labels; `weights` of all coordinates, the bias last. Squared or logistic loss.
  Scheduled(const Options& options, const World& world, const model::Loss& loss, const data::Batch& rows,
            std::vector<float> weights);

  std::span<const float> weights() const { return weights_; }
  std::span<const float> scores() const { return scores_; }  // of all rows, by these weights
  double Loss() const;                                       // summed and weighted
  // Coordinates are those that any row has, and the bias.
  Result<double> Objective() override;

 private:
  struct Proposal {
    std::uint64_t slot = 0;  // counted over all rounds: whose turn it was
    Share::Entry entry = {};
    double square = 0;   // of its column, weighted
    std::size_t at = 0;  // of its column, among those that came
    Column column = {};
    bool mine = false;
  };
  Result<bool> MakeRound(bool stop) override;
  std::uint64_t ShareOf(std::uint32_t coordinate) const;
  void Propose();
  // All members' proposals, and whether anybody wished to stop.
  Result<bool> TellProposals(bool stop);
  Result<void> Take(std::span<const std::byte> letter, bool& stop);
  void PutOffDependents();
  float Changed(const Proposal& proposal) const;  // the weight it should have
  Result<std::vector<float>> TellWeights(const std::vector<float>& mine);
  void Apply(const std::vector<float>& weights);
  void EvaluateRow(std::uint32_t row);

  const Options options_;
  const model::Loss& loss_;
  const data::Batch rows_;
  const double curvature_;           // at most, of the loss of a row
  std::vector<double> row_weights_;  // of the mean
  std::vector<float> weights_;
  std::vector<double> exact_scores_;  // so that changes may be added up for long
  std::vector<float> scores_, deltas_;
  OwnColumns columns_;
  std::vector<double> squares_;  // of own columns, weighted
  std::vector<Share> shares_;    // of all members; others' are empty
  Dependencies dependencies_;
  std::uint64_t slot_ = 0;

  std::vector<Proposal> proposals_;  // of this round
  std::vector<std::uint32_t> came_rows_;
  std::vector<float> came_values_;
  std::vector<std::uint32_t> touched_;     // rows of this round
  std::vector<std::uint64_t> touched_in_;  // by row: the last round
};

}  // namespace freshet::strategy::scheduled
