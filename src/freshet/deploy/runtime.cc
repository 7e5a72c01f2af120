#include "deploy/runtime.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace freshet::deploy {

Result<WorkReport> LocalRuntime::Run(const model::Model& model, State& state, const History& history,
                                     const Work& work) {
  constexpr std::size_t kBlock = 1024;  // rows in memory at a time
  WorkReport report;
  std::vector<std::uint64_t> order(work.numbers.begin(), work.numbers.end());
  rows_.width = model.config().dense ? model.config().features : 0;
  for (int pass = 0; pass < work.passes; ++pass) {
    if (pass > 0) {
      base::Random random(work.seed, static_cast<std::uint64_t>(pass));
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    }
    double loss = 0, rows = 0;
    for (std::size_t begin = 0; begin < order.size(); begin += kBlock) {
      if (work.stop != nullptr && work.stop->load(std::memory_order_relaxed))
        return Error{Code::kStopped, "the iteration was given up"};
      rows_.ClearRows();
      TRY(history.Read(std::span(order).subspan(begin, std::min(kBlock, order.size() - begin)), rows_));
      loss += TRY(work.fresh ? state.Learn(model, rows_, scores_) : state.Repeat(model, rows_, work.scale, scores_));
      rows += static_cast<double>(rows_.size());
      report.rows += rows_.size();
    }
    if (!std::isfinite(loss)) return Error{Code::kDiverged, "the loss of an iteration is no longer finite"};
    report.loss = rows > 0 ? loss / rows : 0;
  }
  return report;
}

}  // namespace freshet::deploy
