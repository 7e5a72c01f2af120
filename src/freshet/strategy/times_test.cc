// Where the time of a step went, as the step table tells it.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/simulated_clock.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy {
namespace {

// Another model, with something done before each of its gradients.
class Watched final : public model::Model {
 public:
  using Before = std::function<void(const data::Batch& batch)>;
  Watched(const Model& inside, Before before)
      : Model(inside.config(), inside.loss()), inside_(inside), before_(std::move(before)) {}

  model::Traits traits() const override { return inside_.traits(); }
  std::vector<optimize::Block> Blocks() const override { return inside_.Blocks(); }
  Result<void> Prepare(optimize::Parameters& parameters, const data::Batch& batch) const override {
    return inside_.Prepare(parameters, batch);
  }
  void Predict(const optimize::Parameters& parameters, const data::Batch& batch, model::Workspace& workspace,
               std::span<float> out) const override {
    inside_.Predict(parameters, batch, workspace, out);
  }
  double LossAndGradient(const optimize::Parameters& parameters, const data::Batch& batch, model::Workspace& workspace,
                         optimize::Gradient& gradient, std::span<float> out) const override {
    before_(batch);
    return inside_.LossAndGradient(parameters, batch, workspace, gradient, out);
  }
  double Update(optimize::Parameters& parameters, const data::Batch& batch, optimize::Optimizer& optimizer,
                model::Workspace& workspace, std::span<float> out,
                optimize::Optimizer::Sharing sharing) const override {
    return inside_.Update(parameters, batch, optimizer, workspace, out, sharing);
  }
  void Touch(const optimize::Parameters& parameters, const data::Batch& batch,
             optimize::RowSets& touched) const override {
    inside_.Touch(parameters, batch, touched);
  }
  void Observe(optimize::Parameters& parameters, const data::Batch& batch,
               optimize::Optimizer& optimizer) const override {
    inside_.Observe(parameters, batch, optimizer);
  }
  Observes observes(const optimize::Parameters& parameters, const optimize::Optimizer& optimizer) const override {
    return inside_.observes(parameters, optimizer);
  }
  void Apply(optimize::Parameters& parameters, optimize::Gradient& gradient, double weight,
             optimize::Optimizer& optimizer, model::Workspace& workspace) const override {
    inside_.Apply(parameters, gradient, weight, optimizer, workspace);
  }
  Result<optimize::Gradient> NewGradient(optimize::Memory& memory) const override {
    return inside_.NewGradient(memory);
  }
  bool GivesFactors(std::size_t block) const override { return inside_.GivesFactors(block); }
  bool Supervised() const override { return inside_.Supervised(); }

 private:
  const Model& inside_;
  const Before before_;
};

// Rank 0 computes for ten seconds, by a clock that all share, once the other has begun its exchange.
TEST(StepTimes, WaitingForAStragglerIsNoExchange) {
  constexpr std::size_t kSteps = 5;
  constexpr double kSlow = 10;
  for (const std::string& kind : Strategy::Kinds()) {
    SCOPED_TRACE(kind);
    const Task task = MakeTask("table", 400, 1);
    base::ManualClock clock;
    std::atomic<std::uint64_t> computing{0};  // by rank 1: gradients begun
    std::atomic<std::uint64_t> before{0};     // what it had sent then
    std::atomic<const fabric::Fabric*> other{nullptr};
    std::vector<StepTimes> times(2);
    fabric::RunMembers(2, [&](fabric::Fabric& fabric) {
      const bool slow = fabric.rank() == 0;
      if (!slow) other = &fabric;
      Learner learner(task);
      std::uint64_t gradients = 0;
      const Watched watched(*learner.model, [&](const data::Batch&) {
        ++gradients;
        if (!slow) {
          before = fabric.bytes_sent();
          computing = gradients;
          return;
        }
        const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while ((computing < gradients || other.load()->bytes_sent() == before) &&
               std::chrono::steady_clock::now() < patience)
          std::this_thread::yield();
        clock.Advance(std::chrono::seconds(10));
      });
      fabric::Collectives::Options how;
      how.algorithm = fabric::Algorithm::kCentral;  // the other sends first
      fabric::Collectives collectives(fabric, how);
      StrategyOptions options;
      options.kind = kind;
      options.every = 1;
      const auto strategy = Strategy::Make(options, {collectives, watched, *learner.parameters, *learner.optimizer,
                                                     learner.memory, clock})
                                .value();
      std::vector<float> scores(options.batch);
      for (std::size_t step = 0; step < kSteps; ++step) {
        const data::Batch piece = task.rows.batch().Slice(0, strategy->piece());
        const data::Batch mine = strategy->Share(piece);
        ASSERT_TRUE(strategy->Step(piece, mine, std::span(scores).first(mine.rows)).ok());
      }
      ASSERT_TRUE(strategy->EndEpoch().ok());
      times[static_cast<std::size_t>(fabric.rank())] = strategy->times();
    });
    EXPECT_DOUBLE_EQ(times[0].compute, kSteps * kSlow);
    EXPECT_DOUBLE_EQ(times[0].wait + times[0].exchange, 0);
    EXPECT_DOUBLE_EQ(times[1].wait, kSteps * kSlow);
    EXPECT_DOUBLE_EQ(times[1].compute + times[1].exchange, 0);
  }
}

}  // namespace
}  // namespace freshet::strategy
