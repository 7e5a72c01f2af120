#include "strategy/modules/modules.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/option.h"
#include "model/network/network.h"
#include "strategy/modules/order.h"
#include "strategy/modules/pass.h"
#include "strategy/ring/own_layers.h"
#include "strategy/ring/plan.h"
#include "strategy/synchronous.h"

namespace freshet::strategy {
namespace {

using model::network::Graph;
using modules::Assembly;

Result<void> Check(const StrategyOptions& options, const Graph* graph) {
  const auto refuse = [](std::string_view option, std::string_view why) {
    return Error{Code::kInvalid, Str(Option("strategy"), " modules does not go with ", Option(option), why)};
  };
  if (graph == nullptr)
    return Error{Code::kInvalid,
                 Str(Option("strategy"), " modules is for networks whose text says who holds which layers")};
  if (!options.whole) return refuse("split", " bytes or own: a row passes all members, who must all have it; use rows");
  if (options.codec != "none") return refuse("codec", Str(" ", options.codec, ": no gradients of parameters travel"));
  if (options.factors) return refuse("layer-factors", ": no gradients of parameters travel; leave it out");
  if (options.undo) return refuse("elastic", ": each member alone has a part of the model; leave it out");
  if (options.balance) return refuse("balance", ": the text says who holds which layers; use ring");
  if (options.stages != 0) return refuse("stages", ": the text says who holds which layers; use ring");
  if (options.accumulate > 1)
    return refuse("accumulate", Str(" ", options.accumulate, ": updates are computed in micro-batches; use ",
                                    Option("micro"), " ", options.accumulate));
  if (options.micro > options.batch)
    return Error{Code::kInvalid, Str(Option("micro"), " ", options.micro, " micro-batches of ", Option("batch"), " ",
                                     options.batch, ": some would have no row; give at most as many as rows")};
  return {};
}

class Modules final : public Synchronous {
 public:
  // What a member needs to begin.
  struct Parts {
    std::vector<model::network::Facts> facts;
    Assembly assembly;
    ring::Order order = ring::Order::kOneByOne;
    std::size_t micros = 1;  // of a whole update
    std::vector<ring::Stage> stages;
    ring::OwnLayers own;
  };

  Modules(const StrategyOptions& options, const World& world, Parts parts)
      : Synchronous(options, world),
        graph_(*model::network::GraphOf(world.model)),
        parts_(std::move(parts)),
        head_loss_(graph_, parts_.facts, world.model.loss()) {
    workspace_.threads = options.threads;
    for (const modules::Module& module : parts_.assembly.modules)
      if (module.layers.holds(graph_.heads[0].layer)) answers_ = module.member;
  }

  bool interchangeable() const override { return true; }  // once all have all parts, nobody remembers anything else
  void SetShow(Show show) override { show_ = std::move(show); }
  void SetProgress(double progress) override {
    Synchronous::SetProgress(progress);
    parts_.own.optimizer().SetProgress(progress);
  }

  Result<void> Settle() override {
    if (!parts_.own.newer()) return {};
    const fabric::Fabric& fabric = world_.collectives.fabric();
    const auto begun = world_.clock.Now();
    const std::uint64_t sent = fabric.bytes_sent(), shared = fabric.bytes_shared();
    TRY(parts_.own.Give(world_.collectives));
    times_.bytes_sent += fabric.bytes_sent() - sent;
    times_.bytes_shared += fabric.bytes_shared() - shared;
    Count(&StepTimes::exchange, "exchange", begun, world_.clock.Now(), {.note = "all parts of the model to all"});
    return {};
  }

 protected:
  Result<double> Update(const data::Batch& piece, const data::Batch& mine, double weight,
                        std::span<float> scores) override {
    ring::OwnLayers& own = parts_.own;
    own.Take();
    own.gradient().Clear();
    const std::size_t micros = std::min(parts_.micros, piece.rows), width = head_loss_.scores();
    if (std::exchange(scheduled_, micros) != micros)
      schedule_ = TRY(modules::MakeOrder(parts_.assembly, parts_.order, micros));
    scores_.resize(piece.rows * width);
    double loss = TRY(PassThrough(piece, micros));
    TRY(TellAnswer(loss));
    TRY(At("step.exchanged"));
    const auto computed = world_.clock.Now();
    world_.model.Apply(own.parameters(), own.gradient(), weight, own.optimizer(), workspace_);
    own.Changed();
    Count(&StepTimes::apply, "apply", computed, world_.clock.Now());
    const std::size_t first = fabric::ChunkBegin(piece.rows, rank(), size()) * width;
    std::copy_n(scores_.data() + first, mine.rows * width, scores.data());
    double of_mine = 0;
    for (std::size_t r = 0; r < mine.rows; ++r) of_mine += mine.weight(r);
    return weight > 0 ? loss * of_mine / weight : 0.0;
  }

 private:
  // The loss at the network's answer, where that is here.
  Result<double> PassThrough(const data::Batch& piece, std::size_t micros) {
    fabric::Fabric& fabric = world_.collectives.fabric();
    ring::OwnLayers& own = parts_.own;
    fabric::Transfers transfers(fabric, world_.collectives.NextTag(), "passing tensors between modules");
    modules::Pass pass(
        {parts_.assembly, schedule_, rank(), parts_.stages, own.parameters(), own.gradient(), head_loss_, world_.clock},
        RowsOf(piece, micros), transfers,
        [this](const char* what, const ring::Action& action, base::Clock::Duration begin) {
          Told(what, action, begin);
        });
    double loss = 0;
    const auto work = [&]() -> Result<void> {
      TRY(pass.Run(loss, scores_));
      TRY(At("step.computed"));
      const auto begun = world_.clock.Now();
      TRY(transfers.WaitAll());
      Count(&StepTimes::wait, "wait", begun, world_.clock.Now());
      return {};
    };
    const auto done = work();
    if (!done.ok()) fabric.Abort(done.error());  // what is under way cannot end any more
    TRY(done);
    times_.bytes_next += pass.sent_on();
    times_.bytes_back += pass.sent_back();
    return loss;
  }

  // Loss and scores, from the member that has them to all.
  Result<void> TellAnswer(double& loss) {
    const auto begun = world_.clock.Now();
    std::vector<std::byte> told(sizeof loss + scores_.size() * sizeof(float));
    std::memcpy(told.data(), &loss, sizeof loss);
    if (!scores_.empty()) std::memcpy(told.data() + sizeof loss, scores_.data(), scores_.size() * sizeof(float));
    TRY(world_.collectives.Broadcast(told, answers_));
    std::memcpy(&loss, told.data(), sizeof loss);
    if (!scores_.empty()) std::memcpy(scores_.data(), told.data() + sizeof loss, scores_.size() * sizeof(float));
    Count(&StepTimes::wait, "wait", begun, world_.clock.Now());
    return {};
  }

  // The rows as the network reads them, where a module or a head here does.
  modules::Pass::Rows RowsOf(const data::Batch& piece, std::size_t micros) {
    modules::Pass::Rows rows{piece,
                             nullptr,
                             static_cast<std::size_t>(parts_.facts[0].elements()),
                             micros,
                             world_.model.config().seed,
                             world_.optimizer.step()};
    bool wanted = std::any_of(parts_.stages.begin(), parts_.stages.end(),
                              [](const ring::Stage& stage) { return stage.reads_rows(); });
    for (const model::network::Head& head : graph_.heads)
      for (const ring::Stage& stage : parts_.stages)
        wanted = wanted || (graph_.target != model::network::Target::kLabel && stage.layers().holds(head.layer));
    if (wanted) rows.input = model::network::DenseRows(show_ ? show_(piece) : piece, rows.width, dense_);
    return rows;
  }

  void Told(const char* what, const ring::Action& action, base::Clock::Duration begin) {
    base::Trace::Details details;
    if (world_.trace != nullptr) details.note = Str("micro-batch ", action.micro, " of module ", action.stage);
    Count(*what == 'w' ? &StepTimes::wait : &StepTimes::compute, what, begin, world_.clock.Now(), std::move(details));
  }

  const Graph& graph_;
  Parts parts_;
  const model::network::HeadLoss head_loss_;
  int answers_ = 0;  // who has the network's answer
  model::Workspace workspace_;
  Show show_;
  std::vector<float> dense_, scores_;
  ring::Schedule schedule_;
  std::size_t scheduled_ = 0;  // micro-batches that it is of
};

}  // namespace

Result<StrategyPtr> MakeModules(const StrategyOptions& options, const Strategy::World& world) {
  const Graph* const graph = model::network::GraphOf(world.model);
  TRY(Check(options, graph));
  const int members = world.collectives.fabric().size(), rank = world.collectives.fabric().rank();
  auto facts = TRY(model::network::Infer(*graph));
  const auto rows = static_cast<std::size_t>(options.batch);
  const auto order = TRY(ring::OrderOf(options.pipeline));
  const auto micros =
      static_cast<std::size_t>(options.micro > 0 ? options.micro : ring::UsualMicros(options.batch, members));
  Assembly assembly = TRY(modules::Assemble(*graph, facts, rows, micros));
  if (static_cast<int>(assembly.places.size()) != members)
    return Error{Code::kInvalid,
                 Str("the network's layers lie in ", assembly.places.size(), " places (", Join(assembly.places, ", "),
                     "), and there are ", members, " workers; use as many workers as places")};
  TRY(modules::MakeOrder(assembly, order, 1));  // that there is one
  std::vector<ring::Stage> stages;
  for (const modules::Module& module : assembly.modules) {
    if (module.member != rank) continue;
    ring::StageCut cut{.first = module.layers.first,
                       .last = module.layers.last,
                       .cost = module.cost,
                       .enters = assembly.Tensors(module.enters)};
    stages.push_back(TRY(ring::Stage::Make(*graph,
                                           {std::move(cut), assembly.Tensors(module.leaves), options.threads,
                                            &model::network::BackendOf(world.model), options.recompute},
                                           (rows + micros - 1) / micros)));
  }
  auto own = TRY(ring::OwnLayers::Make(world.learner(), facts, assembly.HeldBy(rank)));
  return StrategyPtr(std::make_unique<Modules>(
      options, world,
      Modules::Parts{std::move(facts), std::move(assembly), order, micros, std::move(stages), std::move(own)}));
}

}  // namespace freshet::strategy
