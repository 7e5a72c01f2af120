#include "strategy/strategy.h"

#include <algorithm>
#include <cstring>

namespace freshet::strategy {
namespace {

// The registry: one line for each way of meeting, which has one file of its own.
struct Entry {
  std::string_view name;
  Result<StrategyPtr> (*make)(const StrategyOptions& options, const Strategy::World& world);
};
constexpr Entry kRegistry[] = {{"allreduce", MakeAllReduce}, {"average", MakeAverage}, {"groups", MakeGroups}};

}  // namespace

std::vector<std::string> Strategy::Kinds() {
  std::vector<std::string> names;
  for (const Entry& entry : kRegistry) names.emplace_back(entry.name);
  return names;
}

Result<StrategyPtr> Strategy::Make(const StrategyOptions& options, const World& world) {
  const auto workers = static_cast<std::uint64_t>(world.collectives.fabric().size());
  if (options.batch < workers)
    return Error{Code::kInvalid, Str("--batch ", options.batch, " has no row for some of ", workers,
                                     " workers; give at least ", workers)};
  if (options.every == 0 || options.accumulate == 0 || options.group < 1 || options.power_rank < 1)
    return Error{Code::kInvalid, "--every, --accumulate, --group and --power-rank must be at least 1"};
  for (const Entry& entry : kRegistry)
    if (entry.name == options.kind) return entry.make(options, world);
  return Error{Code::kInvalid, Str("strategy ", Quoted(options.kind), ": expected one of ", Join(Kinds(), ", "))};
}

std::size_t Strategy::piece() const {
  const auto workers = static_cast<std::size_t>(size());
  const std::size_t rows = options_.batch * updates();
  return options_.whole ? rows : std::max<std::size_t>(rows / workers, 1);
}

data::Batch Strategy::Share(const data::Batch& piece) const {
  if (!options_.whole) return piece;
  return piece.Slice(fabric::ChunkBegin(piece.rows, rank(), size()),
                     fabric::ChunkBegin(piece.rows, rank() + 1, size()));
}

// What everybody must know before an update: the weight of all rows, what is asked, and one progress for all, since
// rates depend on it.
Result<double> Strategy::Agree(const data::Batch& mine) {
  float shared[] = {0, static_cast<float>(mine.rows), asked_stop_ ? 1.0f : 0.0f, asked_save_ ? 1.0f : 0.0f,
                    static_cast<float>(progress_)};
  for (std::size_t r = 0; r < mine.rows; ++r) shared[0] += mine.weight(r);
  const auto begun = world_.clock.Now();
  TRY(world_.collectives.AllReduce(shared));
  Count(&StepTimes::wait, "wait", begun, world_.clock.Now());
  everyone_dry_ = shared[1] == 0;
  stop_agreed_ = shared[2] > 0;
  save_agreed_ = shared[3] > 0;
  world_.optimizer.SetProgress(options_.whole ? progress_ : shared[4] / static_cast<float>(size()));
  return shared[0];
}

Result<std::vector<double>> Strategy::Sum(const std::vector<double>& mine) {
  const auto all = TRY(world_.collectives.Gather(std::as_bytes(std::span<const double>(mine))));
  std::vector<double> sum(mine.size(), 0), part(mine.size());
  for (const auto& bytes : all) {
    CHECK(bytes.size() == part.size() * sizeof(double));
    std::memcpy(part.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  return sum;
}

std::string Strategy::algorithms() const {
  const fabric::Collectives& all = world_.collectives;
  return all.options().algorithm == fabric::Algorithm::kAuto ? all.table().ToText() : "";
}

void Strategy::Count(double StepTimes::*part, const char* name, base::Clock::Duration begin, base::Clock::Duration end,
                     base::Trace::Details details) {
  times_.*part += base::Seconds(end - begin);
  if (world_.trace == nullptr) return;
  details.step = step_;
  world_.trace->Add(name, base::Trace::kTraining, begin, end, std::move(details));
}

Result<double> Strategy::InParts(Strategy& inner, const data::Batch& whole, const data::Batch& mine,
                                 std::span<float> scores) {
  const StepTimes before = inner.times();
  const std::size_t width = world_.model.scores(), most = updates();
  // A short piece, at the end of an epoch, makes fewer updates, not smaller ones.
  const std::size_t parts = std::max<std::size_t>((whole.rows * most + piece() - 1) / piece(), 1);
  double loss = 0;
  // Workers with rows of their own may have shorter pieces than others, and take part in all of their updates.
  for (std::size_t part = 0; part < (options_.whole ? parts : most); ++part) {
    const auto cut = [&](std::size_t rows, std::size_t at) { return rows * std::min(at, parts) / parts; };
    const std::size_t first = cut(mine.rows, part), last = cut(mine.rows, part + 1);
    loss += TRY(inner.Step(whole.Slice(cut(whole.rows, part), cut(whole.rows, part + 1)), mine.Slice(first, last),
                           scores.subspan(first * width, (last - first) * width)));
  }
  const StepTimes& after = inner.times();
  for (double StepTimes::*part : {&StepTimes::compute, &StepTimes::wait, &StepTimes::exchange, &StepTimes::apply})
    times_.*part += after.*part - before.*part;
  times_.bytes_dense += after.bytes_dense - before.bytes_dense;
  return loss;
}

Result<double> Strategy::Step(const data::Batch& piece, const data::Batch& mine, std::span<float> scores) {
  step_ = world_.optimizer.step();
  const base::Span span(world_.trace, "step", base::Trace::kTraining, {.step = step_});
  const double weight = TRY(Agree(mine));
  if (everyone_dry_ || stop_agreed_) return 0.0;
  const fabric::Fabric& fabric = world_.collectives.fabric();
  const std::uint64_t sent = fabric.bytes_sent(), shared = fabric.bytes_shared();
  const double loss = TRY(Update(piece, mine, weight, scores));
  times_.bytes_sent += fabric.bytes_sent() - sent;
  times_.bytes_shared += fabric.bytes_shared() - shared;
  ++times_.steps;
  times_.rows += mine.rows;
  return loss;
}

Result<bool> Strategy::StepDry() {
  const data::Batch nothing;
  TRY(Step(nothing, nothing, {}));
  return everyone_dry_;
}

Result<void> Strategy::EndEpoch() {
  if (!options_.whole)
    while (!TRY(StepDry())) continue;
  return Settle();
}

}  // namespace freshet::strategy
