#pragma once

#include <span>
#include <vector>

#include "data/batch.h"
#include "model/loss.h"
#include "model/network/graph.h"

namespace freshet::model::network {

// The loss at a network's heads, given what they made of rows: who runs the whole network asks for every head, a stage
// of it for those that are among its layers.
//
// Borrows graph and loss, which outlive it. Threads: any, at once.
class HeadLoss {
 public:
  HeadLoss(const Graph& graph, const std::vector<Facts>& facts, const Loss& loss);

  std::size_t scores() const { return scores_; }  // of a row, or of one step of a sequence
  std::size_t steps() const { return steps_; }    // of a row, each with its scores; 1 where there are no sequences

  // The summed, weighted loss of the rows by `made`, all scores of a head for each of them. Writes the derivatives,
  // times the head's weight, to `deltas`. `input` is the rows as the network reads them; targets other than the label
  // ask for it.
  double Of(std::size_t head, const data::Batch& batch, const float* input, std::span<const float> made,
            std::span<float> deltas) const;
  // The scores of the rows of which the answer is `made`: of a sequence, those of its last step.
  void CopyScores(std::span<const float> made, std::span<float> scores) const;
  // Of one row whose target is the row itself: the mean over its numbers. Derivatives are multiplied by `factor`.
  double OfItself(const float* made, const float* row, float factor, std::span<float> deltas) const;

 private:
  const Graph& graph_;
  const Loss& loss_;
  const std::size_t width_;  // of a row
  std::size_t steps_ = 1, scores_ = 1;
};

// Rows as a network reads them, `width` numbers each: those of the batch, or sparse ones made dense in `memory`.
const float* DenseRows(const data::Batch& batch, std::size_t width, std::vector<float>& memory);

}  // namespace freshet::model::network
