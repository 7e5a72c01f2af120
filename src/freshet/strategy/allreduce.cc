// All-reduce: every update is made from the sum of all workers' gradients, so that all keep the same parameters and N
// workers of batch b are one worker of batch N · b.

#include <utility>

#include "strategy/gradient_sum.h"
#include "strategy/synchronous.h"

namespace freshet::strategy {
namespace {

class AllReduce final : public Synchronous {
 public:
  AllReduce(const StrategyOptions& options, const World& world, optimize::Gradient gradient, GradientSum sum)
      : Synchronous(options, world), gradient_(std::move(gradient)), sum_(std::move(sum)) {
    WillObserve();
    workspace_.threads = options.threads;
    sums_ = options.batch_norm == "together" && size() > 1 && world.model.traits().sums_over_workers;
    if (!sums_) return;
    // A model cannot fail; what goes wrong here is told when it is done.
    workspace_.sum = [this](std::span<float> values) {
      const auto begun = world_.clock.Now();
      if (summed_.ok()) summed_ = world_.collectives.AllReduce(values);
      summing_ += world_.clock.Now() - begun;
    };
  }

  bool ChangesEarly() const override {
    return world_.model.observes(world_.parameters, world_.optimizer) != model::Model::Observes::kNothing;
  }
  bool interchangeable() const override { return options_.codec == "none" && options_.whole; }
  bool mergeable() const override { return options_.whole; }
  void Save(std::vector<data::Tensor>& tensors) const override { sum_.Save(tensors); }
  Result<void> Load(const data::TensorFile& file) override { return sum_.Load(file); }
  void SaveShared(std::vector<data::Tensor>& tensors) const override {
    sum_.Save(tensors, GradientSum::Whose::kShared);
  }
  Result<void> LoadShared(const data::TensorFile& file) override {
    return sum_.Load(file, GradientSum::Whose::kShared);
  }
  Result<void> Merge(const data::TensorFile& file) override { return sum_.Merge(file); }

 protected:
  Result<double> Update(const data::Batch& piece, const data::Batch& mine, double weight,
                        std::span<float> scores) override {
    const model::Model& model = world_.model;
    TRY(Observe(piece));
    const auto begun = world_.clock.Now();
    gradient_.Clear();
    workspace_.step = world_.optimizer.step();
    summed_ = {};
    sum_.Begin(gradient_, workspace_.step);
    double loss = 0;
    // Where all sum while they compute, all do so in as many parts, though some have no rows.
    const std::size_t parts = sums_ ? options_.accumulate : std::min<std::size_t>(options_.accumulate, mine.rows);
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t first = mine.rows * part / parts, last = mine.rows * (part + 1) / parts;
      TRY(model.Reserve(last - first, workspace_));
      if (part + 1 == parts) workspace_.finished = [&](std::size_t block) { sum_.Finished(gradient_, block); };
      loss += model.LossAndGradient(world_.parameters, mine.Slice(first, last), workspace_, gradient_,
                                    scores.subspan(first * model.scores(), (last - first) * model.scores()));
      workspace_.finished = nullptr;
    }
    const auto computed = world_.clock.Now();
    TRY(summed_);
    TRY(At("step.computed"));
    TRY(sum_.Finish(gradient_, world_.parameters));
    TRY(MakeRoom());
    TRY(At("step.exchanged"));
    const auto exchanged = world_.clock.Now();
    model.Apply(world_.parameters, gradient_, weight, world_.optimizer, workspace_);
    Count(&StepTimes::compute, "compute", begun, computed);
    // Sums of a few numbers: what they take is waiting for those who are not as far.
    const double summing = base::Seconds(std::exchange(summing_, {}));
    times_.compute -= summing;
    times_.wait += summing;
    CountExchange(computed, exchanged);
    Count(&StepTimes::apply, "apply", exchanged, world_.clock.Now());
    times_.bytes_dense = sum_.bytes_dense();
    return loss;
  }

 private:
  // Others may have met features that this worker has not: gives them their place.
  Result<void> MakeRoom() {
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

  optimize::Gradient gradient_;
  GradientSum sum_;
  model::Workspace workspace_;
  bool sums_ = false;      // batch norm, with every gradient
  Result<void> summed_{};  // the first that failed in this update
  base::Clock::Duration summing_{};
};

}  // namespace

Result<SynchronousPtr> MakeAllReduce(const StrategyOptions& options, const Strategy::World& world) {
  if (options.backup > 0) return MakeBackup(options, world);
  if (options.exact) return MakeExact(options, world);
  GradientSum sum = TRY(GradientSum::Make(options, world.collectives, world.model, world.trace));
  optimize::Gradient gradient = TRY(world.model.NewGradient(world.memory));
  sum.Begin(gradient, world.optimizer.step());
  return SynchronousPtr(std::make_unique<AllReduce>(options, world, std::move(gradient), std::move(sum)));
}

}  // namespace freshet::strategy
