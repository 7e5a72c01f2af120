#include <algorithm>
#include <optional>
#include <thread>

#include "bench_parts.h"
#include "fabric/threads/threads_fabric.h"
#include "simulate/steps.h"
#include "simulate/subject.h"

namespace freshet::cli {

Result<double> MeasureStep(Door& door, const StepFlags& flags, fabric::Fabric& fabric) {
  const std::size_t colon = flags.model.find(':');
  const auto subject = TRY(simulate::Subject::Of(flags.model.substr(0, colon),
                                                 colon == std::string::npos ? "" : flags.model.substr(colon + 1)));
  simulate::StepsOptions options{.strategy = flags.together.strategy,
                                 .collectives = TRY(flags.together.Collectives()),
                                 .steps = flags.steps,
                                 .read = {}};
  options.strategy.batch = flags.batch;
  options.strategy.threads = std::max(1, Threads(flags.threads) / fabric.size());
  if (flags.batch < static_cast<std::uint64_t>(fabric.size()))
    return Error{Code::kInvalid,
                 Str("--batch ", flags.batch, " of ", fabric.size(), " workers: expected a row for each")};
  const std::size_t count = simulate::RowsOfStep(options.strategy);
  const simulate::DrawnRows rows(*subject.model, count, 1);
  std::vector<float> scores(count * subject.model->scores());
  optimize::HeapMemory memory;
  const auto made = TRY(simulate::MakeSteps(options, fabric, door.clock, *subject.model, memory, rows.batch(), scores));
  return made.seconds / flags.steps / static_cast<double>(simulate::UpdatesOfStep(options.strategy));
}

Result<double> MeasureStepOfThreads(Door& door, const StepFlags& flags, int workers) {
  fabric::ThreadsGroup group(workers, door.clock);
  std::vector<std::optional<Result<double>>> seconds(static_cast<std::size_t>(workers));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < workers; ++rank)
      threads.emplace_back(
          [&, rank] { seconds[static_cast<std::size_t>(rank)] = MeasureStep(door, flags, group.member(rank)); });
  }
  double most = 0;
  for (const auto& one : seconds) most = std::max(most, TRY(*one));
  return most;
}

}  // namespace freshet::cli
