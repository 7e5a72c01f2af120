#include "strategy/ring/columns.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "strategy/sum_in_order.h"

namespace freshet::strategy::ring {
namespace {

constexpr std::string_view kHeld = "ring.columns";

}  // namespace

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
      laps_(world.collectives),
      handed_(world.collectives, world.model) {
  workspace_.threads = options.threads;
  if (!options.balance) return;
  moves_.emplace(rank(), size());
  KeepForSaving();
}

std::size_t Columns::piece() const {
  return options_.whole ? options_.batch : std::max<std::size_t>(options_.batch / static_cast<std::size_t>(size()), 1);
}

data::Batch Columns::Share(const data::Batch& piece) const {
  if (!options_.whole) return piece;
  return piece.Slice(fabric::ChunkBegin(piece.rows, rank(), size()),
                     fabric::ChunkBegin(piece.rows, rank() + 1, size()));
}

void Columns::SetProgress(double progress) {
  progress_ = progress;
  world_.optimizer.SetProgress(progress);
  own_.optimizer().SetProgress(progress);
}

Result<Columns::Rows> Columns::TakeOwn(const data::Batch& piece, std::size_t mine) {
  TRY(own_.Take());
  const data::Batch rows = own_.Of(show_ ? show_(piece) : piece);
  const std::size_t first = score_from_.value_or(fabric::ChunkBegin(rows.rows, rank(), size()));
  return Rows{rows, first, first + mine};
}

Result<Columns::Rows> Columns::Hand(const data::Batch& mine) {
  const auto begun = world_.clock.Now();
  const HandedRows::Met met = TRY(handed_.Meet({world_.optimizer.step(), progress_, asked_}, mine));
  AddSpan("hand", begun, world_.clock.Now());
  times_.wait += base::Seconds(handed_.waited());
  times_.exchange += base::Seconds(handed_.exchanged());
  agreed_ = met.agreed;
  dry_ = met.rows.rows == 0;
  world_.optimizer.SetProgress(met.progress);
  own_.optimizer().SetProgress(met.progress);
  TRY(MakeRoom(met.features));
  TRY(own_.Take());
  return Rows{own_.OfHanded(met.rows), met.first, met.first + mine.rows};
}

// Others may have met features that this member has not: gives them their place.
Result<void> Columns::MakeRoom(std::uint64_t features) {
  std::vector<std::uint64_t> rows(world_.parameters.blocks(), 0);
  for (std::size_t b = 0; b < rows.size(); ++b)
    if (model_.cut(b) == model::Partials::Cut::kFeatures) rows[b] = features;
  TRY(world_.model.MakeRoom(world_.parameters, rows));
  return world_.optimizer.Follow(world_.parameters);
}

Result<std::optional<double>> Columns::Step(const data::Batch& piece, const data::Batch& mine,
                                            std::span<float> scores) {
  const fabric::Fabric& fabric = world_.collectives.fabric();
  const std::uint64_t sent = fabric.bytes_sent(), shared = fabric.bytes_shared();
  const base::Span span(world_.trace, "step", base::Trace::kTraining, {.step = world_.optimizer.step()});
  TRY(At("step.begin"));
  if (moves_) moves_->BeginStep();
  const auto begun = world_.clock.Now();
  const auto given = options_.whole ? TakeOwn(piece, mine.rows) : Hand(mine);
  TRY(given);
  const auto& [rows, first, last] = given.value();
  if (!options_.whole && (agreed_.stop || dry_)) {
    TRY(At("step.agreed"));
    return agreed_.stop ? std::optional<double>() : 0.0;
  }
  optimize::Parameters& parameters = own_.parameters();
  if (world_.model.observes(parameters, own_.optimizer()) == model::Model::Observes::kSizes)
    world_.model.Observe(parameters, rows, own_.optimizer());
  const auto ready = world_.clock.Now();
  const PartialLaps::Wishes met = TRY(Meet(rows));
  if (options_.whole) agreed_ = met;
  const auto exchanged = world_.clock.Now();
  times_.bytes_sent += fabric.bytes_sent() - sent;
  times_.bytes_shared += fabric.bytes_shared() - shared;
  times_.bytes_dense = times_.bytes_sent + times_.bytes_shared;
  times_.bytes_next += laps_.numbers_sent() * sizeof(float);
  times_.bytes_handed += handed_.bytes_sent();
  TRY(At("step.agreed"));
  TRY(At("step.exchanged"));
  if (agreed_.stop) return std::optional<double>();

  const double loss = model_.Close(parameters, rows, workspace_, partials_, first, last, scores);
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
  times_.compute +=
      base::Seconds(computed - begun - laps_.waited() - laps_.exchanged() - handed_.waited() - handed_.exchanged());
  times_.apply += base::Seconds(applied - computed);
  AddSpan("exchange", ready, exchanged);  // and what is computed on the way
  AddSpan("compute", exchanged, computed);
  AddSpan("apply", computed, applied);
  ++times_.steps;
  times_.rows += mine.rows;
  if (moves_) moves_->Worked(applied - begun - laps_.waited() - laps_.exchanged(), rows);
  if (moves_ && moves_->due()) TRY(Balance());
  return std::optional<double>(loss);
}

Result<void> Columns::Balance() {
  fabric::Fabric& fabric = world_.collectives.fabric();
  const fabric::Tag tag = world_.collectives.NextTag();
  if (moves_->partner() == 0) return {};
  const auto begun = world_.clock.Now();
  const double mine = laps_.busy(rank()), theirs = laps_.busy(rank() + moves_->partner());
  times_.bytes_moved += TRY(moves_->Meet(fabric, tag, mine, theirs, own_));
  own_.optimizer().SetProgress(progress_);
  const auto ended = world_.clock.Now();
  times_.exchange += base::Seconds(ended - begun);
  AddSpan("balance", begun, ended);
  return {};
}

Result<PartialLaps::Wishes> Columns::Meet(const data::Batch& rows) {
  partials_.resize(rows.rows * model_.width());
  const auto merge = [&](std::size_t first, std::size_t last, std::span<float> partials, bool begins) {
    if (begins) model_.Begin(partials);
    model_.Merge(own_.parameters(), rows.Slice(first, last), workspace_, partials);
  };
  const PartialLaps::Wishes wishes = options_.whole ? asked_ : PartialLaps::Wishes();  // else agreed on before
  const PartialLaps::Step step{world_.optimizer.step(), rows.rows, model_.width(), wishes, moves_ ? moves_->busy() : 0};
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
  if (!options_.whole) TRY(AgreeOnFeatures());
  if (moves_) TRY(TellColumns());
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

// Each has met its own, further than the rows that all have learned from.
Result<void> Columns::AgreeOnFeatures() {
  std::uint64_t features = 0;
  for (std::size_t b = 0; b < world_.parameters.blocks(); ++b)
    if (model_.cut(b) == model::Partials::Cut::kFeatures) features = world_.parameters.rows(b);
  auto mine = std::bit_cast<std::array<float, 2>>(features);
  TRY(laps_.Tell(mine, [&](int member, std::span<const float> given) -> Result<void> {
    if (given.size() != mine.size())
      return Error{Code::kCorrupt, Str("how many features rank ", member, " has met came damaged")};
    features = std::max(features, std::bit_cast<std::uint64_t>(std::array{given[0], given[1]}));
    return {};
  }));
  return MakeRoom(features);
}

Result<void> Columns::TellColumns() {
  std::vector<Spread::Columns> held(static_cast<std::size_t>(size()));
  Spread::Columns& mine = held[static_cast<std::size_t>(rank())];
  mine = own_.spread().HeldBy(rank());
  std::vector<float> told(mine.size());
  if (!mine.empty()) std::memcpy(told.data(), mine.data(), mine.size() * sizeof mine[0]);
  TRY(laps_.Tell(told, [&](int member, std::span<const float> given) -> Result<void> {
    Spread::Columns& theirs = held[static_cast<std::size_t>(member)];
    theirs.resize(given.size());
    if (!given.empty()) std::memcpy(theirs.data(), given.data(), given.size_bytes());
    return {};
  }));
  if (!own_.spread().Hold(held))
    return Error{Code::kCorrupt, Str("members of a ring say that they hold the same columns, of which rank ", rank(),
                                     " has others; do all run the same program?")};
  KeepForSaving();
  return {};
}

void Columns::KeepForSaving() {
  saved_.clear();
  for (int member = 0; member < size(); ++member) {
    const Spread::Columns held = own_.spread().HeldBy(member);
    saved_.push_back(static_cast<std::uint32_t>(held.size()));
    saved_.insert(saved_.end(), held.begin(), held.end());
  }
}

void Columns::Save(std::vector<data::Tensor>& tensors) const {
  if (!moves_) return;
  tensors.push_back(
      {std::string(kHeld), data::DType::kU32, {saved_.size()}, std::as_bytes(std::span<const std::uint32_t>(saved_))});
}

Result<void> Columns::Load(const data::TensorFile& file) {
  if (!moves_ || file.Find(kHeld) == nullptr) return {};
  const auto words = TRY(file.Values<std::uint32_t>(kHeld));
  std::vector<Spread::Columns> held;
  for (std::size_t at = 0; at < words.size() && words[at] < words.size() - at; at += 1 + words[at])
    held.emplace_back(words.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                      words.begin() + static_cast<std::ptrdiff_t>(at) + 1 + words[at]);
  if (!own_.spread().Hold(held))
    return Error{Code::kCorrupt, Str("what a checkpoint says of the columns that rank ", rank(), " holds is damaged")};
  KeepForSaving();
  return own_.Recut();
}

Result<bool> Columns::StepDry() {
  const data::Batch nothing;
  TRY(Step(nothing, nothing, {}));
  return dry_;
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
