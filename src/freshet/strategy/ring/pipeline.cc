#include "strategy/ring/pipeline.h"

#include <algorithm>
#include <utility>

#include "model/network/network.h"
#include "strategy/make_codec.h"
#include "strategy/ring/laps.h"
#include "strategy/ring/layer_moves.h"
#include "strategy/ring/no_flush.h"
#include "strategy/ring/own_layers.h"
#include "strategy/ring/parted.h"
#include "strategy/ring/pass.h"
#include "strategy/ring/plan.h"
#include "strategy/synchronous.h"

namespace freshet::strategy::ring {
namespace {

constexpr std::string_view kHeld = "ring.layers";  // saved: first and last of each stage

double WeightOf(const data::Batch& rows) {
  double weight = 0;
  for (std::size_t r = 0; r < rows.rows; ++r) weight += rows.weight(r);
  return weight;
}

class Pipeline final : public Synchronous, public Parted {
 public:
  Pipeline(const StrategyOptions& options, const World& world, Plan plan, OwnLayers own, Packing packing)
      : Synchronous(options, world),
        fabric_(world.collectives.fabric()),
        graph_(*model::network::GraphOf(world.model)),
        plan_(std::move(plan)),
        head_loss_(graph_, plan_.facts, world.model.loss()),
        laps_(rank(), size()),
        own_(std::move(own)),
        packing_(std::move(packing)),
        moves_(rank(), size(), world.clock) {
    workspace_.threads = options.threads;
    KeepForSaving();
    if (plan_.order != Order::kStash) return;
    no_flush_.emplace(NoFlush::World{fabric_, plan_.stages, own_, head_loss_, packing_, world.clock, plan_.micro_rows,
                                     [this](const char* what, const Action& action, base::Clock::Duration begin) {
                                       Told(what, action, begin);
                                     }},
                      [this](double weight, double progress) -> Result<void> {
                        own_.optimizer().SetProgress(progress);
                        ApplyGradient(weight);
                        own_.gradient().Clear();
                        return At("step.computed");
                      });
  }

  bool interchangeable() const override { return true; }  // once all have all parts, nobody remembers anything else
  void SetShow(Show show) override { show_ = std::move(show); }
  void SetProgress(double progress) override {
    Synchronous::SetProgress(progress);
    own_.optimizer().SetProgress(progress);
    progress_ = progress;
  }

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

  // Where updates follow one another without a flush only the member that has the answer knows scores in time.
  data::Batch Share(const data::Batch& piece) const override {
    if (!no_flush_) return Synchronous::Share(piece);
    return HoldsHead(0) ? piece : piece.Slice(0, 0);
  }

  Result<void> Settle() override {
    if (no_flush_) TRY(no_flush_->Drain());
    if (!own_.newer()) return {};
    const auto begun = world_.clock.Now();
    const std::uint64_t sent = fabric_.bytes_sent(), shared = fabric_.bytes_shared();
    TRY(own_.Give(world_.collectives));
    times_.bytes_sent += fabric_.bytes_sent() - sent;
    times_.bytes_shared += fabric_.bytes_shared() - shared;
    Count(&StepTimes::exchange, "exchange", begun, world_.clock.Now(), {.note = "all parts of the model to all"});
    return {};
  }

  std::string Part() override { return own_.Encode(); }
  Result<void> Put(std::string_view part) override {
    TRY(own_.Decode(part));
    own_.Forget();
    return {};
  }
  void ScoreFrom(std::optional<std::size_t> row) override { score_from_ = row; }
  void AskAdmission(bool admit) override { Synchronous::AskAdmission(admit); }

  // Which layers it holds, so that who goes on computes in the same order.
  void Save(std::vector<data::Tensor>& tensors) const override {
    tensors.push_back({std::string(kHeld),
                       data::DType::kU32,
                       {saved_.size() / 2, 2},
                       std::as_bytes(std::span<const std::uint32_t>(saved_))});
  }
  Result<void> Load(const data::TensorFile& file) override {
    if (file.Find(kHeld) == nullptr) return {};  // of an earlier version, which always held those of the estimate
    const auto layers = TRY(file.Values<std::uint32_t>(kHeld));
    std::vector<LayerRange> held;
    for (std::size_t i = 0; i + 1 < layers.size(); i += 2) {
      held.push_back({static_cast<int>(layers[i]), static_cast<int>(layers[i + 1])});
      if (layers[i] >= layers[i + 1] || layers[i + 1] > graph_.layers.size()) held.clear();
    }
    if (layers.size() != 2 * plan_.held.size() || held.size() != plan_.held.size())
      return Error{Code::kCorrupt, Str("what a checkpoint says of the layers that rank ", rank(), " holds is damaged")};
    plan_.held = std::move(held);
    TRY(own_.Hold(plan_.held));
    own_.Forget();
    return GoOn();
  }

 protected:
  Result<double> Update(const data::Batch& piece, const data::Batch& mine, double weight,
                        std::span<float> scores) override {
    own_.Take();
    const auto micros = std::min<std::size_t>(plan_.micros, piece.rows);
    if (no_flush_) return UpdateWithoutFlush(piece, mine, micros, weight, scores);
    own_.gradient().Clear();
    if (std::exchange(scheduled_, micros) != micros)
      schedule_ = MakeSchedule(plan_.order, size(), plan_.stages_each, micros);
    if (options_.balance) moves_.BeginStep(plan_, plan_.stages);
    tidings_ = {.stop = wishes().stop ? 1U : 0U,
                .save = wishes().save ? 1U : 0U,
                .admit = wishes().admit ? 1U : 0U,
                .answered = HoldsHead(0)};
    tidings_.scores.resize(piece.rows * head_loss_.scores());
    Traffic traffic(fabric_, world_.collectives.NextTag(), packing_);
    const auto passed = PassThrough(piece, micros, weight, traffic);
    if (!passed.ok()) fabric_.Abort(passed.error());  // what is under way cannot end any more
    TRY(passed);
    times_.bytes_next += traffic.sent_on();
    times_.bytes_back += traffic.sent_back();
    const std::size_t first = score_from_.value_or(fabric::ChunkBegin(piece.rows, rank(), size()));
    std::copy_n(tidings_.scores.data() + first * head_loss_.scores(), mine.rows * head_loss_.scores(), scores.data());
    if (options_.balance && moves_.due()) TRY(Balance());
    return weight > 0 ? tidings_.loss * WeightOf(mine) / weight : 0.0;
  }

 private:
  Result<void> PassThrough(const data::Batch& piece, std::size_t micros, double weight, Traffic& traffic) {
    Pass pass(
        schedule_, rank(), plan_.stages, {own_.parameters(), own_.gradient(), head_loss_, tidings_},
        RowsOf(piece, micros), traffic, world_.clock,
        [this](const char* what, const Action& action, base::Clock::Duration begin) { Told(what, action, begin); });
    TRY(pass.Begin());
    const std::vector<Action>& actions = schedule_.actions[static_cast<std::size_t>(rank())];
    std::size_t forward = actions.size() / 2;
    for (const Action& action : actions) {
      TRY(pass.Do(action));
      if (!action.backward && --forward == 0) TRY(Waiting([&] { return laps_.Up(traffic, tidings_, moves_.busy()); }));
    }
    TRY(At("step.computed"));
    TRY(Waiting([&] { return laps_.Down(traffic, tidings_, moves_.busy()); }));
    Agreed({.stop = tidings_.stop != 0, .save = tidings_.save != 0, .admit = tidings_.admit != 0});
    TRY(At("step.agreed"));
    ApplyGradient(weight);
    TRY(Waiting([&] { return traffic.WaitAll(); }));
    return At("step.exchanged");
  }

  void ApplyGradient(double weight) {
    const auto computed = world_.clock.Now();
    world_.model.Apply(own_.parameters(), own_.gradient(), weight, own_.optimizer(), workspace_);
    own_.Changed();
    const auto applied = world_.clock.Now();
    Count(&StepTimes::apply, "apply", computed, applied);
    moves_.Applied(applied - computed);
  }

  Result<double> UpdateWithoutFlush(const data::Batch& piece, const data::Batch& mine, std::size_t micros,
                                    double weight, std::span<float> scores) {
    const Pass::Rows rows = RowsOf(piece, micros);
    tidings_ = {};
    tidings_.scores.resize(piece.rows * head_loss_.scores());
    const auto made = no_flush_->Step(
        {piece, rows.input, rows.width, micros, rows.seed, weight, progress_, wishes().stop, wishes().save},
        world_.collectives.NextTag(), tidings_);
    if (!made.ok()) fabric_.Abort(made.error());
    TRY(made);
    Wishes agreed;
    for (const NoFlush::Done& done : no_flush_->TakeDone()) {
      agreed.stop = agreed.stop || done.stop;
      agreed.save = agreed.save || done.save;
      times_.bytes_next += done.bytes_next;
      times_.bytes_back += done.bytes_back;
      ++times_.stale[done.stale];
    }
    Agreed(agreed);
    TRY(At("step.agreed"));
    if (agreed.stop) TRY(no_flush_->Drain());  // others may not ask for more
    std::copy_n(tidings_.scores.data(), mine.rows * head_loss_.scores(), scores.data());
    return mine.rows == 0 ? 0.0 : tidings_.loss;
  }

  // The rows as the network reads them, where a stage or a head here does.
  Pass::Rows RowsOf(const data::Batch& piece, std::size_t micros) {
    Pass::Rows rows{piece,
                    nullptr,
                    static_cast<std::size_t>(plan_.facts[0].elements()),
                    micros,
                    world_.model.config().seed,
                    world_.optimizer.step()};
    bool wanted =
        std::any_of(plan_.stages.begin(), plan_.stages.end(), [](const Stage& stage) { return stage.reads_rows(); });
    for (std::size_t head = 0; head < graph_.heads.size(); ++head)
      wanted = wanted || (graph_.target != model::network::Target::kLabel && HoldsHead(head));
    if (wanted) rows.input = model::network::DenseRows(show_ ? show_(piece) : piece, rows.width, dense_);
    return rows;
  }

  bool HoldsHead(std::size_t head) const {
    return std::any_of(plan_.held.begin(), plan_.held.end(),
                       [&](const LayerRange& layers) { return layers.holds(graph_.heads[head].layer); });
  }

  // Goes on with the layers that are held now.
  Result<void> GoOn() {
    TRY(MakeStages(options_, world_, plan_));
    own_.optimizer().SetProgress(progress_);
    KeepForSaving();
    return {};
  }

  void KeepForSaving() {
    saved_.clear();
    for (const LayerRange& layers : plan_.held)
      saved_.insert(saved_.end(), {static_cast<std::uint32_t>(layers.first), static_cast<std::uint32_t>(layers.last)});
  }

  Result<void> Balance() {
    const auto begun = world_.clock.Now();
    const std::uint64_t moved = TRY(moves_.Meet(fabric_, world_.collectives.NextTag(), laps_, plan_, own_));
    times_.bytes_moved += moved;
    TRY(GoOn());
    Count(&StepTimes::exchange, "balance", begun, world_.clock.Now());
    return {};
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
    const auto end = world_.clock.Now();
    const bool waited = *what == 'w';
    if (!waited) moves_.Computed(end - begin);
    Count(waited ? &StepTimes::wait : &StepTimes::compute, what, begin, end, std::move(details));
  }

  fabric::Fabric& fabric_;
  const model::network::Graph& graph_;
  Plan plan_;
  const model::network::HeadLoss head_loss_;
  Laps laps_;
  OwnLayers own_;
  Packing packing_;
  LayerMoves moves_;
  std::vector<std::uint32_t> saved_;
  model::Workspace workspace_;
  Show show_;
  std::vector<float> dense_;
  Schedule schedule_;
  std::size_t scheduled_ = 0;  // micro-batches that it is of
  Tidings tidings_;            // of the step
  std::optional<std::size_t> score_from_;
  double progress_ = 0;
  std::optional<NoFlush> no_flush_;  // of --pipeline stash
};

}  // namespace

Result<StrategyPtr> MakePipeline(const StrategyOptions& options, const Strategy::World& world) {
  Plan plan = TRY(MakePlan(options, world));
  OwnLayers own = TRY(OwnLayers::Make(world.learner(), plan.facts, plan.held));
  Packing packing(options.codec == "none" ? nullptr : TRY(MakeCodec(options)));
  return StrategyPtr(std::make_unique<Pipeline>(options, world, std::move(plan), std::move(own), std::move(packing)));
}

}  // namespace freshet::strategy::ring
