#include "strategy/ring/columns.h"

#include <utility>

#include "base/check.h"
#include "strategy/sum_in_order.h"

namespace freshet::strategy::ring {

Result<StrategyPtr> Columns::Make(const StrategyOptions& options, const World& world) {
  CHECK(world.model.partials() != nullptr);
  const fabric::Fabric& fabric = world.collectives.fabric();
  OwnPart own = TRY(OwnPart::Make(world.learner(), fabric.rank(), fabric.size()));
  return StrategyPtr(new Columns(options, world, std::move(own)));
}

Columns::Columns(const StrategyOptions& options, const World& world, OwnPart own)
    : options_(options),
      world_(world),
      model_(*world.model.partials()),
      own_(std::move(own)),
      laps_(world.collectives) {
  workspace_.threads = options.threads;
}

data::Batch Columns::Share(const data::Batch& piece) const {
  return piece.Slice(fabric::ChunkBegin(piece.rows, rank(), size()),
                     fabric::ChunkBegin(piece.rows, rank() + 1, size()));
}

void Columns::SetProgress(double progress) {
  world_.optimizer.SetProgress(progress);
  own_.optimizer().SetProgress(progress);
}

Result<std::optional<double>> Columns::Step(const data::Batch& piece, const data::Batch& mine,
                                            std::span<float> scores) {
  const fabric::Fabric& fabric = world_.collectives.fabric();
  const std::uint64_t sent = fabric.bytes_sent(), shared = fabric.bytes_shared();
  const base::Span span(world_.trace, "step", base::Trace::kTraining, {.step = world_.optimizer.step()});
  TRY(At("step.begin"));
  const auto begun = world_.clock.Now();
  TRY(own_.Take());
  optimize::Parameters& parameters = own_.parameters();
  const data::Batch rows = own_.Of(show_ ? show_(piece) : piece);
  if (world_.model.observes(parameters, own_.optimizer()) == model::Model::Observes::kSizes)
    world_.model.Observe(parameters, rows, own_.optimizer());
  const auto ready = world_.clock.Now();
  agreed_ = TRY(Meet(rows));
  const auto met = world_.clock.Now();
  times_.bytes_sent += fabric.bytes_sent() - sent;
  times_.bytes_shared += fabric.bytes_shared() - shared;
  times_.bytes_dense = times_.bytes_sent + times_.bytes_shared;
  times_.bytes_next += laps_.numbers_sent() * sizeof(float);
  TRY(At("step.agreed"));
  TRY(At("step.exchanged"));
  if (agreed_.stop) return std::optional<double>();

  const std::size_t first = score_from_.value_or(fabric::ChunkBegin(rows.rows, rank(), size()));
  const double loss = model_.Close(parameters, rows, workspace_, partials_, first, first + mine.rows, scores);
  own_.gradient().Clear();
  model_.AddGradient(parameters, rows, workspace_, partials_, own_.gradient());
  TRY(At("step.computed"));
  const auto computed = world_.clock.Now();
  double weight = 0;
  for (std::size_t r = 0; r < rows.rows; ++r) weight += rows.weight(r);
  world_.model.Apply(parameters, own_.gradient(), weight, own_.optimizer(), workspace_);
  world_.optimizer.SetStep(own_.optimizer().step());
  newer_ = true;
  const auto applied = world_.clock.Now();
  times_.compute += base::Seconds(computed - begun - laps_.waited() - laps_.exchanged());
  times_.apply += base::Seconds(applied - computed);
  AddSpan("exchange", ready, met);  // and what is computed on the way
  AddSpan("compute", met, computed);
  AddSpan("apply", computed, applied);
  ++times_.steps;
  times_.rows += mine.rows;
  return std::optional<double>(loss);
}

Result<PartialLaps::Wishes> Columns::Meet(const data::Batch& rows) {
  partials_.resize(rows.rows * model_.width());
  const auto merge = [&](std::size_t first, std::size_t last, std::span<float> partials, bool begins) {
    if (begins) model_.Begin(partials);
    model_.Merge(own_.parameters(), rows.Slice(first, last), workspace_, partials);
  };
  const PartialLaps::Step step{world_.optimizer.step(), rows.rows, model_.width(), asked_};
  const auto agreed = TRY(laps_.Meet(step, merge, partials_));
  times_.wait += base::Seconds(laps_.waited());
  times_.exchange += base::Seconds(laps_.exchanged());
  return agreed;
}

void Columns::AddSpan(const char* name, base::Clock::Duration begin, base::Clock::Duration end) {
  if (world_.trace == nullptr) return;
  world_.trace->Add(name, base::Trace::kTraining, begin, end, {.step = world_.optimizer.step()});
}

Result<void> Columns::Settle() {
  if (!std::exchange(newer_, false)) return {};
  TRY(own_.Take());  // features that were met and not learned from
  for (std::size_t b = 0; b < world_.parameters.blocks(); ++b)
    for (const bool state : {false, true})
      for (std::uint64_t piece = 0; piece < own_.Pieces(b, state); ++piece) {
        TRY(own_.Put(b, state, piece, rank(), own_.Values(b, state, piece)));
        if (own_.AllHave(b)) continue;
        TRY(laps_.Tell(own_.Values(b, state, piece), [&](int member, std::span<const float> given) {
          return own_.Put(b, state, piece, member, given);
        }));
      }
  own_.Forget();
  return {};
}

Result<void> Columns::Put(std::string_view part) {
  newer_ = false;
  own_.Forget();
  return OwnPart::Decode(world_.learner(), part);
}

Result<std::vector<double>> Columns::Sum(const std::vector<double>& mine) {
  return SumInOrder(world_.collectives, mine);
}

Result<StrategyPtr> MakeColumns(const StrategyOptions& options, const Strategy::World& world) {
  return Columns::Make(options, world);
}

}  // namespace freshet::strategy::ring
