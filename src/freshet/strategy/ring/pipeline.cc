#include "strategy/ring/pipeline.h"

#include <algorithm>
#include <utility>

#include "model/network/network.h"
#include "strategy/ring/laps.h"
#include "strategy/ring/pass.h"
#include "strategy/ring/plan.h"
#include "strategy/synchronous.h"

namespace freshet::strategy::ring {
namespace {

double WeightOf(const data::Batch& rows) {
  double weight = 0;
  for (std::size_t r = 0; r < rows.rows; ++r) weight += rows.weight(r);
  return weight;
}

class Pipeline final : public Synchronous {
 public:
  Pipeline(const StrategyOptions& options, const World& world, Plan plan, optimize::Gradient gradient)
      : Synchronous(options, world),
        fabric_(world.collectives.fabric()),
        graph_(*model::network::GraphOf(world.model)),
        plan_(std::move(plan)),
        head_loss_(graph_, plan_.facts, world.model.loss()),
        laps_(rank(), size(), plan_.answers),
        gradient_(std::move(gradient)) {
    workspace_.threads = options.threads;
  }

  bool interchangeable() const override { return true; }  // once all have all parts, nobody remembers anything else
  void SetShow(Show show) override { show_ = std::move(show); }

  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override {
    BeginStep();
    const base::Span span(world_.trace, "step", base::Trace::kTraining, {.step = world_.optimizer.step()});
    const std::uint64_t sent = fabric_.bytes_sent(), shared = fabric_.bytes_shared();
    TRY(At("step.begin"));
    const double loss = piece.rows == 0 ? 0 : TRY(Update(piece, mine, WeightOf(piece), scores));
    times_.bytes_sent += fabric_.bytes_sent() - sent;
    times_.bytes_shared += fabric_.bytes_shared() - shared;
    ++times_.steps;
    times_.rows += mine.rows;
    return std::optional<double>(loss);
  }

  // What each holds goes round the ring, until all have all.
  Result<void> Settle() override {
    if (!std::exchange(apart_, false)) return {};
    const auto begun = world_.clock.Now();
    const std::uint64_t sent = fabric_.bytes_sent(), shared = fabric_.bytes_shared();
    fabric::Transfers transfers(fabric_, world_.collectives.NextTag(), "bringing all parts of the model to all");
    const int next = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
    for (int round = 0; round + 1 < size(); ++round) {
      for (const std::span<float> values : HeldBy((rank() - round + size()) % size()))
        TRY(transfers.Send(next, fabric::AsBytes(values)));
      for (const std::span<float> values : HeldBy((before - round + size()) % size()))
        TRY(transfers.Wait(TRY(transfers.Receive(before, fabric::AsBytes(values)))));
    }
    TRY(transfers.WaitAll());
    times_.bytes_sent += fabric_.bytes_sent() - sent;
    times_.bytes_shared += fabric_.bytes_shared() - shared;
    Count(&StepTimes::exchange, "exchange", begun, world_.clock.Now(), {.note = "all parts of the model to all"});
    return {};
  }

 protected:
  Result<double> Update(const data::Batch& piece, const data::Batch& mine, double weight,
                        std::span<float> scores) override {
    apart_ = true;
    gradient_.Clear();
    const auto micros = std::min<std::size_t>(plan_.micros, piece.rows);
    if (std::exchange(scheduled_, micros) != micros)
      schedule_ = MakeSchedule(plan_.order, size(), plan_.stages_each, micros);
    tidings_ = {.stop = wishes().stop ? 1U : 0U, .save = wishes().save ? 1U : 0U};
    tidings_.scores.resize(piece.rows * head_loss_.scores());
    Traffic traffic(fabric_, world_.collectives.NextTag());
    const auto passed = PassThrough(piece, micros, weight, traffic);
    if (!passed.ok()) fabric_.Abort(passed.error());  // what is under way cannot end any more
    TRY(passed);
    times_.bytes_next += traffic.sent_on();
    times_.bytes_back += traffic.sent_back();
    const std::size_t first = fabric::ChunkBegin(piece.rows, rank(), size()) * head_loss_.scores();
    std::copy_n(tidings_.scores.data() + first, mine.rows * head_loss_.scores(), scores.data());
    return weight > 0 ? tidings_.loss * WeightOf(mine) / weight : 0.0;
  }

 private:
  Result<void> PassThrough(const data::Batch& piece, std::size_t micros, double weight, Traffic& traffic) {
    Pass pass(
        schedule_, rank(), plan_.stages, {world_.parameters, gradient_, head_loss_, tidings_}, RowsOf(piece, micros),
        traffic, world_.clock,
        [this](const char* what, const Action& action, base::Clock::Duration begin) { Told(what, action, begin); });
    TRY(pass.Begin());
    const std::vector<Action>& actions = schedule_.actions[static_cast<std::size_t>(rank())];
    std::size_t forward = actions.size() / 2;
    for (const Action& action : actions) {
      TRY(pass.Do(action));
      if (!action.backward && --forward == 0) TRY(Waiting([&] { return laps_.Up(traffic, tidings_); }));
    }
    TRY(At("step.computed"));
    TRY(Waiting([&] { return laps_.Down(traffic, tidings_); }));
    Agreed({.stop = tidings_.stop != 0, .save = tidings_.save != 0});
    TRY(At("step.agreed"));
    const auto computed = world_.clock.Now();
    world_.model.Apply(world_.parameters, gradient_, weight, world_.optimizer, workspace_);
    const auto applied = world_.clock.Now();
    Count(&StepTimes::apply, "apply", computed, applied);
    TRY(traffic.WaitAll());
    Count(&StepTimes::wait, "wait", applied, world_.clock.Now());
    return At("step.exchanged");
  }

  // The rows as the network reads them, where a stage or a head here does.
  Pass::Rows RowsOf(const data::Batch& piece, std::size_t micros) {
    Pass::Rows rows{piece,
                    nullptr,
                    static_cast<std::size_t>(plan_.facts[0].elements()),
                    micros,
                    world_.model.config().seed,
                    world_.optimizer.step()};
    const bool wanted =
        (plan_.judges && graph_.target != model::network::Target::kLabel) ||
        std::any_of(plan_.stages.begin(), plan_.stages.end(), [](const Stage& stage) { return stage.reads_rows(); });
    if (wanted) rows.input = model::network::DenseRows(show_ ? show_(piece) : piece, rows.width, dense_);
    return rows;
  }

  // Parameters of the stages that a member holds, and what the optimizer remembers of them.
  std::vector<std::span<float>> HeldBy(int member) {
    std::vector<std::span<float>> held;
    for (std::size_t b = 0; b < plan_.holders.size(); ++b) {
      if (plan_.holders[b] != member) continue;
      held.push_back(world_.parameters.Values(b));
      if (world_.optimizer.slots() > 0) held.push_back(world_.optimizer.state().Values(b));
    }
    return held;
  }

  template <class Work>
  Result<void> Waiting(const Work& work) {
    const auto begun = world_.clock.Now();
    TRY(work());
    Count(&StepTimes::wait, "wait", begun, world_.clock.Now());
    return {};
  }

  void Told(const char* what, const Action& action, base::Clock::Duration begin) {
    base::Trace::Details details;
    if (world_.trace != nullptr) details.note = Str("micro-batch ", action.micro, " of stage ", action.stage);
    Count(*what == 'w' ? &StepTimes::wait : &StepTimes::compute, what, begin, world_.clock.Now(), std::move(details));
  }

  fabric::Fabric& fabric_;
  const model::network::Graph& graph_;
  Plan plan_;
  const model::network::HeadLoss head_loss_;
  Laps laps_;
  optimize::Gradient gradient_;  // of the blocks of its own stages
  model::Workspace workspace_;
  Show show_;
  std::vector<float> dense_;
  Schedule schedule_;
  std::size_t scheduled_ = 0;  // micro-batches that it is of
  Tidings tidings_;            // of the step
  bool apart_ = false;
};

}  // namespace

Result<StrategyPtr> MakePipeline(const StrategyOptions& options, const Strategy::World& world) {
  Plan plan = TRY(MakePlan(options, world));
  optimize::Gradient gradient = TRY(world.model.NewGradient(world.memory, plan.portion));
  return StrategyPtr(std::make_unique<Pipeline>(options, world, std::move(plan), std::move(gradient)));
}

}  // namespace freshet::strategy::ring
