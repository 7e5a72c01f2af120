#pragma once

#include <vector>

#include "base/clock.h"
#include "strategy/ring/laps.h"
#include "strategy/ring/layer_balance.h"
#include "strategy/ring/own_layers.h"
#include "strategy/ring/plan.h"

namespace freshet::strategy::ring {

// Moves layers between a member of a ring and its neighbours, between two steps, by what they have measured: with what the
// optimizer remembers. Whoever is clearly busier hands over as many of its first or last layers as make the larger of both
// times smallest. Neighbours know each other's times from the tidings of a step (Laps); nobody knows more.
//
// Threads: one. Failure: as the fabric's; kCorrupt when a neighbour gives what it cannot have.
class LayerMoves {
 public:
  LayerMoves(int rank, int size, const base::Clock& clock)
      : rank_(rank), size_(size), clock_(clock), rounds_(rank, size) {}

  // Around the work of each step.
  void BeginStep(const Plan& plan, std::vector<Stage>& stages);
  void Computed(base::Clock::Duration took);
  void Applied(base::Clock::Duration took);
  // Seconds of a step in which this member works, to be told with it; 0 as long as that is not known.
  double busy() const { return rounds_.ends() ? busy_ : 0; }

  bool due() const { return rounds_.ends(); }  // the same for all members
  // After a step with which it is due: hands layers to a neighbour, or takes some. Then `plan` says so (its stages are
  // still to be made), and what is held of them is in `own`. Gives the bytes that this member sent.
  Result<std::uint64_t> Meet(fabric::Fabric& fabric, fabric::Tag tag, const Laps& laps, Plan& plan, OwnLayers& own);

 private:
  // An edge of the pipeline, between stages edge - 1 and edge, at a place of the network; 0: none moves.
  struct Edge {
    std::uint32_t number = 0, place = 0;
  };
  Edge Choose(const Plan& plan, int to, double theirs) const;
  Result<void> Check(const Plan& plan, int from, const Edge& edge) const;
  std::size_t OwnStage(const Edge& edge, int partner) const;
  LayerRange Moved(const Plan& plan, int partner, std::size_t stage, const Edge& edge) const;
  void MeasureLayers(const Plan& plan);

  const int rank_, size_;
  const base::Clock& clock_;
  BalanceRounds rounds_;
  double compute_ = 0, apply_ = 0;  // seconds of this round
  std::size_t steps_ = 0;           // that it was measured in
  double busy_ = 0;
  std::vector<double> of_layer_;  // seconds of a step
};

}  // namespace freshet::strategy::ring
