#pragma once

#include <cstdint>
#include <vector>

#include "fabric/fabric.h"
#include "strategy/ring/layer_balance.h"
#include "strategy/ring/own_part.h"

namespace freshet::strategy::ring {

// Moves columns between a member of a ring and its neighbours, between two steps, by what they have measured: with what the
// optimizer remembers. Whoever is clearly busier hands over as many as make the larger of both times smallest: of features
// those ranges that met the most entries, of others its first or last. Neighbours hear each other's times with the partials
// of a step; nobody goes by more.
//
// Threads: one. Failure: as the fabric's; kCorrupt when a neighbour gives what it cannot have.
class ColumnMoves {
 public:
  ColumnMoves(int rank, int size) : rank_(rank), rounds_(rank, size) {}

  // Around each step; `rows` have this member's columns, as OwnPart gives them.
  void BeginStep();
  void Worked(base::Clock::Duration took, const data::Batch& rows);
  // To be told with the step: seconds of a step in which this member works; 0 as long as that is not known.
  double busy() const { return rounds_.ends() ? busy_ : 0; }

  bool due() const { return rounds_.ends(); }  // the same for all members
  int partner() const { return rounds_.partner(); }
  // After a step with which it is due, of one that has a partner: hands columns to it or takes some, of which `own` then has
  // the newest. Times as both were told them. Gives the bytes that this member sent.
  Result<std::uint64_t> Meet(fabric::Fabric& fabric, fabric::Tag tag, double mine, double theirs, OwnPart& own);

 private:
  using Columns = Spread::Columns;
  Columns Choose(Spread& spread, double mine, double theirs) const;
  Columns ChooseFeatures(Spread& spread, double mine, double theirs) const;
  Result<std::uint64_t> Give(fabric::Fabric& fabric, fabric::Tag tag, const Columns& columns, OwnPart& own) const;
  Result<void> TakeSome(fabric::Fabric& fabric, fabric::Tag tag, OwnPart& own) const;

  const int rank_;
  BalanceRounds rounds_;
  double seconds_ = 0;     // of this round
  std::size_t steps_ = 0;  // that it was measured in
  double busy_ = 0;
  std::vector<std::uint64_t> met_;  // entries, by ranges of features as they lie here
};

}  // namespace freshet::strategy::ring
