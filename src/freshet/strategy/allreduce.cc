#include "strategy/allreduce.h"

#include <utility>

namespace freshet::strategy {

AllReduce::AllReduce(const StrategyOptions& options, const World& world, optimize::Gradient gradient,
                     std::vector<GradientSum> sums)
    : Synchronous(options, world), gradient_(std::move(gradient)), sums_(std::move(sums)) {
  WillObserve();
  workspace_.threads = options.threads;
  // Batch norm sums with every gradient.
  meets_ = options.batch_norm == "together" && size() > 1 && world.model.traits().sums_over_workers;
  if (!meets_) return;
  workspace_.sum = [this](std::span<float> values) {
    const auto begun = world_.clock.Now();
    if (met_.ok()) met_ = world_.collectives.AllReduce(values);
    waited_ += world_.clock.Now() - begun;  // of a few numbers: that is waiting for those who are not as far
  };
}

bool AllReduce::ChangesEarly() const {
  return world_.model.observes(world_.parameters, world_.optimizer) != model::Model::Observes::kNothing;
}

void AllReduce::Save(std::vector<data::Tensor>& tensors) const {
  for (const GradientSum& sum : sums_) sum.Save(tensors);
}
Result<void> AllReduce::Load(const data::TensorFile& file) {
  for (GradientSum& sum : sums_) TRY(sum.Load(file));
  return {};
}
void AllReduce::SaveShared(std::vector<data::Tensor>& tensors) const {
  for (const GradientSum& sum : sums_) sum.Save(tensors, GradientSum::Whose::kShared);
}
Result<void> AllReduce::LoadShared(const data::TensorFile& file) {
  for (GradientSum& sum : sums_) TRY(sum.Load(file, GradientSum::Whose::kShared));
  return {};
}
Result<void> AllReduce::Merge(const data::TensorFile& file) {
  for (GradientSum& sum : sums_) TRY(sum.Merge(file));
  return {};
}

bool AllReduce::BeginPart(const data::Batch&, std::size_t, std::size_t) { return true; }

Result<double> AllReduce::Update(const data::Batch& piece, const data::Batch& mine, double weight,
                                 std::span<float> scores) {
  const model::Model& model = world_.model;
  TRY(Observe(piece));
  const auto begun = world_.clock.Now();
  gradient_.Clear();
  workspace_.step = world_.optimizer.step();
  met_ = {};
  waited_ = exchanged_ = {};
  for (GradientSum& sum : sums_) sum.Begin(gradient_, workspace_.step);
  double loss = 0;
  const std::size_t parts = meets_ ? options_.accumulate : std::min<std::size_t>(options_.accumulate, mine.rows);
  const auto finished = [&](std::size_t block) {
    for (GradientSum& sum : sums_) sum.Finished(gradient_, block);
  };
  for (std::size_t part = 0; part < parts; ++part) {
    const bool last_part = part + 1 == parts;
    if (!BeginPart(piece, part, parts)) {
      // Those who compute tell of blocks from the last to the first: sums begin in the same order everywhere.
      for (std::size_t block = gradient_.blocks.size(); last_part && block-- > 0;) finished(block);
      continue;
    }
    const std::size_t first = mine.rows * part / parts, last = mine.rows * (part + 1) / parts;
    TRY(model.Reserve(last - first, workspace_));
    if (last_part) workspace_.finished = finished;
    loss += model.LossAndGradient(world_.parameters, mine.Slice(first, last), workspace_, gradient_,
                                  scores.subspan(first * model.scores(), (last - first) * model.scores()));
    workspace_.finished = nullptr;
  }
  const auto computed = world_.clock.Now();
  TRY(met_);
  TRY(At("step.computed"));
  for (GradientSum& sum : sums_) TRY(sum.Finish(gradient_, world_.parameters));
  TRY(MakeRoom());
  TRY(At("step.exchanged"));
  const auto exchanged = world_.clock.Now();
  model.Apply(world_.parameters, gradient_, weight, world_.optimizer, workspace_);
  Count(&StepTimes::compute, "compute", begun, computed);
  times_.compute -= base::Seconds(waited_ + exchanged_);
  times_.wait += base::Seconds(waited_);
  times_.exchange += base::Seconds(exchanged_);
  CountExchange(computed, exchanged);
  Count(&StepTimes::apply, "apply", exchanged, world_.clock.Now());
  times_.bytes_dense = 0;
  for (const GradientSum& sum : sums_) times_.bytes_dense += sum.bytes_dense();
  return loss;
}

// Others may have met features that this worker has not: gives them their place.
Result<void> AllReduce::MakeRoom() {
  std::vector<std::uint64_t> rows(gradient_.blocks.size(), 0);
  bool missing = false;
  for (std::size_t b = 0; b < rows.size(); ++b) {
    for (const std::uint32_t row : gradient_.blocks[b].touched()) rows[b] = std::max<std::uint64_t>(rows[b], row + 1);
    missing = missing || rows[b] > world_.parameters.rows(b);
  }
  if (!missing) return {};
  TRY(world_.model.MakeRoom(world_.parameters, rows));
  return world_.optimizer.Follow(world_.parameters);
}

Result<SynchronousPtr> MakeAllReduce(const StrategyOptions& options, const Strategy::World& world) {
  if (options.backup > 0) return MakeBackup(options, world);
  if (options.exact) return MakeExact(options, world);
  std::vector<GradientSum> sums;
  sums.push_back(TRY(GradientSum::Make(options, world.collectives, world.model, world.trace)));
  optimize::Gradient gradient = TRY(world.model.NewGradient(world.memory));
  sums[0].Begin(gradient, world.optimizer.step());  // what it remembers has the shape of that
  return SynchronousPtr(std::make_unique<AllReduce>(options, world, std::move(gradient), std::move(sums)));
}

}  // namespace freshet::strategy
