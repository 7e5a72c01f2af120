#include "strategy/undo.h"

#include <algorithm>

namespace freshet::strategy {

void Undo::Begin() {
  step_ = learner_.optimizer.step();
  rows_.clear();
  values_.clear();
}

void Undo::KeepRowsOf(const data::Batch& batch) {
  touched_.resize(learner_.parameters.blocks());
  for (optimize::RowSet& rows : touched_) rows.Clear();
  learner_.model.Touch(learner_.parameters, batch, touched_);
  for (std::size_t b = 0; b < touched_.size(); ++b)
    for (const std::uint32_t row : touched_[b].rows()) Keep(b, row);
}

void Undo::KeepAll() {
  for (std::size_t b = 0; b < learner_.parameters.blocks(); ++b)
    for (std::uint64_t row = 0; row < learner_.parameters.rows(b); ++row) Keep(b, row);
}

void Undo::Keep(std::size_t block, std::uint64_t row) {
  rows_.push_back({block, row});
  const float* const values = learner_.parameters.Row(block, row);
  values_.insert(values_.end(), values, values + learner_.parameters.stride(block));
  if (!learner_.parameters.plain(block)) return;
  const optimize::Parameters& state = learner_.optimizer.state();
  const float* const remembered = state.Row(block, row);
  values_.insert(values_.end(), remembered, remembered + state.width(block));
}

// Rows that came into being since are rows of zeros again.
void Undo::Restore() {
  const float* from = values_.data();
  const auto take = [&](float* to, std::uint64_t count) {
    std::copy_n(from, count, to);
    from += count;
  };
  for (const Kept& kept : rows_) {
    take(learner_.parameters.Row(kept.block, kept.row), learner_.parameters.stride(kept.block));
    optimize::Parameters& state = learner_.optimizer.state();
    if (learner_.parameters.plain(kept.block)) take(state.Row(kept.block, kept.row), state.width(kept.block));
  }
  learner_.optimizer.SetStep(step_);
}

}  // namespace freshet::strategy
