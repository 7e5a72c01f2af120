// Parameter averaging: workers learn alone from their rows, and every so many updates all take the mean of their
// parameters. With one update in between and plain SGD that is all-reduce; with more, less is sent. A warm start makes
// the first updates by all-reduce, so that averaging begins in one valley.

#include "base/option.h"
#include "strategy/averager.h"
#include "strategy/local.h"
#include "strategy/synchronous.h"

namespace freshet::strategy {
namespace {

class Average final : public Synchronous {
 public:
  Average(const StrategyOptions& options, const World& world, Local local, SynchronousPtr warm)
      : Synchronous(options, world),
        local_(std::move(local)),
        averager_(world, options.block_momentum, options.average_state),
        warm_(std::move(warm)) {
    if (LooksTogether(options, world)) WillObserve();
  }
  // What is learned by looking alone is the same for all: every worker looks at all rows it is handed. So is what has
  // no labels to learn from: everybody must begin with the same clusters.
  static bool LooksTogether(const StrategyOptions& options, const World& world) {
    const auto workers = static_cast<std::uint64_t>(world.collectives.fabric().size());
    return !world.model.Supervised() || (options.whole && options.batch > workers);
  }

  Result<void> Settle() override {
    if (!apart_) return {};
    apart_ = false;
    const auto begun = world_.clock.Now();
    TRY(averager_.Run());
    const std::uint64_t bytes = averager_.floats() * sizeof(float);
    CountExchange(begun, world_.clock.Now(), HowSent(world_, bytes));
    const auto workers = static_cast<std::uint64_t>(size());
    times_.bytes_dense += 2 * (workers - 1) * bytes / workers;
    return {};
  }
  Result<void> BookExchange() override {
    if (warm_ != nullptr) TRY(BookExchangeOf(*warm_));
    return Synchronous::BookExchange();
  }
  void Save(std::vector<data::Tensor>& tensors) const override { averager_.Save(tensors); }
  Result<void> Load(const data::TensorFile& file) override { return averager_.Load(file); }

 protected:
  std::size_t updates() const override { return options_.every; }

  Result<double> Update(const data::Batch& piece, const data::Batch& mine, double, std::span<float> scores) override {
    if (warm_ != nullptr && world_.optimizer.step() < options_.warm_start) return InParts(*warm_, piece, mine, scores);
    if (!begun_) averager_.Begin();
    begun_ = true;
    if (LooksTogether(options_, world_)) TRY(Observe(piece));
    const auto begun = world_.clock.Now();
    const std::optional<double> loss = TRY(local_.Run(mine, scores));
    Count(&StepTimes::compute, "compute", begun, world_.clock.Now());
    Computed(loss.value_or(0));
    apart_ = true;
    TRY(At("step.computed"));
    TRY(Settle());
    TRY(At("step.exchanged"));
    return loss.value_or(0);  // nobody stops it half way
  }

 private:
  Local local_;
  Averager averager_;
  SynchronousPtr warm_;
  bool begun_ = false, apart_ = false;
};

}  // namespace

Result<SynchronousPtr> MakeAverage(const StrategyOptions& options, const Strategy::World& world) {
  if (options.codec != "none")
    return Error{Code::kInvalid, Str(Option("codec"), " ", options.codec, " is for gradients; ", Option("strategy"),
                                     " average sends parameters")};
  const auto workers = static_cast<std::size_t>(world.collectives.fabric().size());
  const std::size_t batch = std::max<std::size_t>(options.batch / workers, 1);
  const bool looks = !options.whole && !Average::LooksTogether(options, world);
  Learner unseen = world.learner();
  unseen.trace = nullptr;  // what it does between two averages is one span
  Local local(unseen, {.batch = batch, .observes = looks, .threads = options.threads},
              TRY(world.model.NewGradient(world.memory)));
  SynchronousPtr warm;
  if (options.warm_start > 0) warm = TRY(MakeAllReduce(options, world));
  return SynchronousPtr(std::make_unique<Average>(options, world, std::move(local), std::move(warm)));
}

}  // namespace freshet::strategy
