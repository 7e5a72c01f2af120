#include "strategy/ring/kept_steps.h"

#include <utility>

namespace freshet::strategy::ring {

void KeptSteps::Add(std::uint64_t number, const data::Batch& piece, double progress, std::size_t first,
                    std::size_t mine) {
  Step& step = steps_.emplace_back();
  if (!spare_.empty()) {
    step.rows = std::move(spare_.back());
    spare_.pop_back();
  }
  step.rows.width = piece.sparse() ? 0 : piece.width;
  step.rows.ClearRows();
  for (std::size_t r = 0; r < piece.rows; ++r) step.rows.AppendRow(piece, r);
  step.number = number;
  step.progress = progress;
  step.first = first;
  step.mine = mine;
}

void KeptSteps::DropLast() {
  spare_.push_back(std::move(steps_.back().rows));
  steps_.pop_back();
}

void KeptSteps::DropUpTo(std::uint64_t number) {
  while (!steps_.empty() && steps_.front().number <= number) {
    spare_.push_back(std::move(steps_.front().rows));
    steps_.pop_front();
  }
}

std::size_t KeptSteps::BytesAfter(std::uint64_t number) const {
  std::size_t bytes = 0;
  for (const Step& step : steps_) {
    if (step.number <= number) continue;
    const data::Batch rows = step.rows.batch();
    bytes += rows.entries() * (rows.sparse() ? 2 : 1) * sizeof(float) + rows.rows * 2 * sizeof(std::uint64_t);
  }
  return bytes;
}

}  // namespace freshet::strategy::ring
