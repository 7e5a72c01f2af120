#include "train/lbfgs_trainer.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/option.h"
#include "data/cache.h"
#include "data/drive.h"
#include "data/standardise.h"
#include "model/slices.h"
#include "optimize/lbfgs.h"

namespace freshet::train {
namespace {

void Scatter(std::span<const float> flat, optimize::Parameters& parameters) {
  for (std::size_t b = 0; b < parameters.blocks(); ++b) {
    const auto values = parameters.Values(b);
    std::copy_n(flat.begin(), values.size(), values.begin());
    flat = flat.subspan(values.size());
  }
}

std::vector<float> Gather(const optimize::Parameters& parameters) {
  std::vector<float> flat;
  for (std::size_t b = 0; b < parameters.blocks(); ++b)
    flat.insert(flat.end(), parameters.Values(b).begin(), parameters.Values(b).end());
  return flat;
}

}  // namespace

Result<Report> TrainByLbfgs(const base::Env& env, const TrainOptions& options, const model::Model& model,
                            optimize::Parameters& parameters, data::Description& description, data::RowSource& source,
                            double l2) {
  if (options.hold_out.any() || options.batch > 1 || !options.checkpoint_path.empty())
    return Error{Code::kInvalid, Str(Option("optimizer"), " lbfgs goes with neither ", Option("holdout"), ", ",
                                     Option("batch"), " nor ", Option("checkpoint"))};
  const auto started = env.clock.Now();
  const std::string path = options.cache_path.empty()
                               ? Str(options.scratch_directory, "/freshet.", getpid(), ".lbfgs.rows")
                               : options.cache_path;
  const auto go_on = [&]() -> Result<void> {
    if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed))
      return Error{Code::kStopped, "stopped"};
    return {};
  };
  auto writer = TRY(data::CacheWriter::Create(env.files, path));
  TRY(data::DriveInOrder(env.executor, source, [&](data::Rows& rows) -> Result<void> {
    TRY(go_on());
    TRY(writer->Append(rows));
    if (description.standardise) data::Standardise(description.moments, rows);
    return model.Prepare(parameters, rows.batch());
  }));
  TRY(writer->Close(description));
  auto cache = TRY(data::CacheReader::Open(env.files, path));
  if (options.cache_path.empty()) TRY(env.files.Remove(path));  // stays open, and goes with us

  Report report;
  report.progressive = SumsFor(model, description);
  // The objective is of labels as they are learned, so that neither its slopes nor what l2 means depend on their units.
  const double unit = description.target.deviation() * description.target.deviation();
  model::Workspace workspace;
  std::vector<float> scores;
  optimize::HeapMemory memory;
  optimize::Gradient gradient = TRY(model.NewGradient(memory));
  int iteration = 0;
  double value = 0;  // of the objective, when the last iteration ended
  auto told = started;
  const auto show = [&] {
    told = env.clock.Now();
    if (!options.progress) return;
    Progress progress;
    progress.epoch = std::min(iteration, options.epochs - 1);
    progress.epochs = options.epochs;
    progress.rows = report.rows;
    progress.mean_loss = value;
    progress.weight = iteration;
    progress.total_loss = value * progress.weight;
    progress.fraction = static_cast<double>(iteration) / options.epochs;
    progress.seconds = base::Seconds(told - started);
    options.progress(progress);
  };
  const auto objective = [&](std::span<const float> at, std::span<float> out) -> Result<double> {
    Scatter(at, parameters);
    TRY(cache->Seek({}));
    Evaluation sums = SumsFor(model, description);
    const base::Span span(options.trace, "compute", base::Trace::kTraining);
    gradient.Clear();
    TRY(data::DriveInOrder(env.executor, *cache, [&](data::Rows& rows) -> Result<void> {
      data::Standardise(description, rows);
      data::ScaleLabels(description, rows);
      const data::Batch batch = rows.batch();
      for (std::size_t begin = 0, end = 0; begin < batch.rows; begin = end) {
        TRY(go_on());
        end = model::SliceEnd(model, batch, begin, 1);
        const data::Batch slice = batch.Slice(begin, end);
        scores.resize(slice.rows * model.scores());
        sums.Add(slice, scores, model.LossAndGradient(parameters, slice, workspace, gradient, scores));
      }
      if (base::Seconds(env.clock.Now() - told) >= 0.5) show();  // a pass over all rows may take long
      return {};
    }));
    if (sums.weight() == 0) return Error{Code::kBadInput, "no rows to learn from"};
    report.last_epoch = sums;
    report.rows += sums.rows();
    std::fill(out.begin(), out.end(), 0.0f);
    std::size_t offset = 0;
    const auto scale = static_cast<float>(1 / sums.weight());
    for (std::size_t b = 0; b < parameters.blocks(); ++b) {
      const auto& block = gradient.blocks[b];
      if (!block.empty())
        for (std::size_t i = 0; i < block.memory().size(); ++i) out[offset + i] = block.memory()[i] * scale;
      for (std::size_t i = 0; i < block.touched().size(); ++i) {
        const auto values = block.Values(i);
        float* const to = out.data() + offset + block.touched()[i] * block.width();
        for (std::size_t k = 0; k < values.size(); ++k) to[k] = values[k] * scale;
      }
      offset += parameters.Values(b).size();
    }
    double penalty = 0;
    for (std::size_t j = 0; j < at.size() && l2 > 0; ++j) {
      out[j] += static_cast<float>(l2) * at[j];
      penalty += 0.5 * l2 * at[j] * at[j];
    }
    const double here = sums.loss() / unit + penalty;
    if (!std::isfinite(here))
      return Error{Code::kDiverged, "the loss is not finite; check the data for huge values, or standardise it"};
    return here;
  };

  optimize::Lbfgs lbfgs(Gather(parameters), {}, objective);
  while (iteration < options.epochs) {
    std::optional<base::Span> span(std::in_place, options.trace, "step", base::Trace::kTraining,
                                   base::Trace::Details{.step = static_cast<std::uint64_t>(iteration)});
    const bool more = TRY(lbfgs.Step());
    span.reset();
    value = lbfgs.value() * unit;
    if (iteration == 0) report.progressive = report.last_epoch;
    report.epochs = ++iteration;
    show();
    if (!more) break;
  }
  Scatter(lbfgs.point(), parameters);
  report.seconds = base::Seconds(env.clock.Now() - started);
  return report;
}

}  // namespace freshet::train
