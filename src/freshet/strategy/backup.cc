// All-reduce that does not wait for the slowest: as soon as all but `backup` workers are ready, these share out the rows of
// the others and go on. Who comes late is told, and takes the sum of those who were there: every update has all its rows,
// each once, and all workers make the same updates.

#include <algorithm>
#include <deque>
#include <utility>

#include "base/option.h"
#include "fabric/subset.h"
#include "strategy/gradient_sum.h"
#include "strategy/ready_desk.h"
#include "strategy/synchronous.h"
#include "strategy/tree_sum.h"

namespace freshet::strategy {
namespace {

constexpr std::size_t kSumsKept = 4;  // for one who is late: then it is waited for

class Backup final : public Synchronous {
 public:
  Backup(const StrategyOptions& options, const World& world, optimize::Gradient gradient)
      : Synchronous(options, world), gradient_(std::move(gradient)), fabric_(world.collectives.fabric()) {
    WillObserve();
    workspace_.threads = options.threads;
    const fabric::Tag tag = world.collectives.NextTag();
    sum_tag_ = tag + 2;
    for (const optimize::BlockGradient& block : gradient_.blocks) {
      widths_.push_back(block.memory().empty() ? block.width() : 0);
      dense_ += block.memory().size();
    }
    rounds_.emplace(fabric_, ReadyDesk::Options{size(), options.backup, tag, tag + 1});
  }
  // What late ones have not taken is taken by nobody: the group is at its end.
  ~Backup() override {
    if (!sums_.empty() && !fabric_.Done(sums_.back().transfer)) fabric_.Abort({Code::kStopped, "ended"});
  }

  bool ChangesEarly() const override {
    return world_.model.observes(world_.parameters, world_.optimizer) != model::Model::Observes::kNothing;
  }
  bool interchangeable() const override { return true; }
  void SetShow(Show show) override { show_ = std::move(show); }

  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override {
    BeginStep();
    const base::Span span(world_.trace, "step", base::Trace::kTraining, {.step = world_.optimizer.step()});
    const std::uint64_t sent = fabric_.bytes_sent(), shared = fabric_.bytes_shared();
    TRY(At("step.begin"));
    if (options_.undo) KeepForUndo(piece);
    const auto made = Round(piece, mine, scores);
    if (!made.ok() && options_.undo) TRY(TakeBack());
    const double loss = TRY(made);
    times_.bytes_sent += fabric_.bytes_sent() - sent;
    times_.bytes_shared += fabric_.bytes_shared() - shared;
    ++times_.steps;
    times_.rows += mine.rows;
    return std::optional<double>(loss);
  }
  Result<void> Settle() override {
    while (!sums_.empty()) TRY(WaitForSum());
    return {};
  }

 protected:
  Result<double> Update(const data::Batch&, const data::Batch&, double, std::span<float>) override {
    CHECK(false);  // a round is another kind of step
  }

 private:
  struct Sum {
    std::string bytes;
    fabric::Transfer transfer;
  };

  Result<double> Round(const data::Batch& piece, const data::Batch& mine, std::span<float> scores) {
    TRY(rounds_->Begin());
    TRY(Observe(piece));
    const bool late = rounds_->Decided();
    const auto begun = world_.clock.Now();
    double loss = 0, weight = 0;
    gradient_.Clear();
    workspace_.step = world_.optimizer.step();
    if (!late) {
      loss = TRY(AddGradient(mine, scores));
    } else {
      world_.model.Predict(world_.parameters, mine, workspace_, scores);
      loss = world_.model.LossOf(world_.parameters, mine, workspace_, scores);
    }
    const auto computed = world_.clock.Now();
    Count(&StepTimes::compute, "compute", begun, computed);
    TRY(At("step.computed"));
    const Wishes asked = wishes();
    // Who is late says so, too: it may ask for something.
    const Go go = TRY(rounds_->Say({.stop = asked.stop, .save = asked.save, .admit = asked.admit}));
    Agreed({.stop = go.stop != 0, .save = go.save != 0, .admit = go.admit != 0});
    TRY(At("step.agreed"));
    const auto waited = world_.clock.Now();
    Count(&StepTimes::wait, "wait", computed, waited);
    TRY(go.missing[static_cast<std::size_t>(rank())] != 0 ? TakeSum(go) : MakeSum(go, piece));
    TRY(At("step.exchanged"));
    const auto exchanged = world_.clock.Now();
    Count(&StepTimes::exchange, "exchange", waited, exchanged);
    for (std::size_t r = 0; r < piece.rows; ++r) weight += piece.weight(r);
    world_.model.Apply(world_.parameters, gradient_, weight, world_.optimizer, workspace_);
    Count(&StepTimes::apply, "apply", exchanged, world_.clock.Now());
    return loss;
  }

  Result<double> AddGradient(const data::Batch& rows, std::span<float> scores) {
    if (rows.rows == 0) return 0.0;
    TRY(world_.model.Reserve(rows.rows, workspace_));
    return world_.model.LossAndGradient(world_.parameters, rows, workspace_, gradient_, scores);
  }

  static std::vector<int> RanksOf(const Go& go, bool missing) {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < go.missing.size(); ++rank)
      if ((go.missing[rank] != 0) == missing) ranks.push_back(static_cast<int>(rank));
    return ranks;
  }

  // With the rows of those who are missing, each of whom is sent the sum by one of those who are not.
  Result<void> MakeSum(const Go& go, const data::Batch& piece) {
    const std::vector<int> there = RanksOf(go, false), missing = RanksOf(go, true);
    const int place = static_cast<int>(std::find(there.begin(), there.end(), rank()) - there.begin());
    const int count = static_cast<int>(there.size());
    for (const int one : missing) {
      const std::size_t first = fabric::ChunkBegin(piece.rows, one, size());
      const std::size_t rows = fabric::ChunkBegin(piece.rows, one + 1, size()) - first;
      const data::Batch part = piece.Slice(first + fabric::ChunkBegin(rows, place, count),
                                           first + fabric::ChunkBegin(rows, place + 1, count));
      scores_of_others_.resize(part.rows * world_.model.scores());
      TRY(AddGradient(show_ ? show_(part) : part, scores_of_others_));
    }
    fabric::Subset subset(fabric_, there, (fabric::Tag{1} << 52) + (rounds_->round() << 24));
    fabric::Collectives::Options how = world_.collectives.options();
    if (how.algorithm == fabric::Algorithm::kNative) how.algorithm = fabric::Algorithm::kAuto;  // of all members alone
    how.table = {};
    fabric::Collectives collectives(subset, how);
    StrategyOptions plain = options_;
    plain.overlap = false;
    GradientSum sum = TRY(GradientSum::Make(plain, collectives, world_.model));
    sum.Begin(gradient_, workspace_.step);
    TRY(sum.Finish(gradient_, world_.parameters));
    times_.bytes_dense += sum.bytes_dense();
    for (std::size_t i = 0; i < missing.size(); ++i) {
      if (static_cast<int>(i) % count != place) continue;
      while (sums_.size() >= kSumsKept) TRY(WaitForSum());
      Sum& kept = sums_.emplace_back();
      PartialSum::Of(gradient_, 0).Encode(kept.bytes, 0, dense_);
      kept.transfer = TRY(fabric_.StartSend(missing[i], sum_tag_, std::as_bytes(std::span(kept.bytes))));
    }
    return {};
  }
  Result<void> WaitForSum() {
    TRY(fabric_.Wait(sums_.front().transfer));
    sums_.pop_front();
    return {};
  }

  Result<void> TakeSum(const Go& go) {
    const std::vector<int> there = RanksOf(go, false), missing = RanksOf(go, true);
    const auto place = static_cast<std::size_t>(std::find(missing.begin(), missing.end(), rank()) - missing.begin());
    const auto transfer = TRY(fabric_.StartBorrow(there[place % there.size()], sum_tag_));
    const fabric::Arrived arrived = TRY(fabric_.Wait(transfer));
    std::string_view bytes(reinterpret_cast<const char*>(arrived.view.data()), arrived.view.size());
    const auto sum = PartialSum::Decode(bytes, dense_, widths_);
    if (sum.ok()) sum.value().Give(gradient_);
    fabric_.Release(transfer);
    if (!sum.ok()) return sum.error();
    return {};
  }

  optimize::Gradient gradient_;
  fabric::Fabric& fabric_;
  model::Workspace workspace_;
  fabric::Tag sum_tag_ = 0;
  std::vector<std::size_t> widths_;  // of touched rows, by block of parameters; 0: it is dense
  std::size_t dense_ = 0;            // floats
  std::optional<ReadyRounds> rounds_;
  std::deque<Sum> sums_;  // for those who are late
  std::vector<float> scores_of_others_;
  Show show_;
};

}  // namespace

Result<SynchronousPtr> MakeBackup(const StrategyOptions& options, const Strategy::World& world) {
  const auto not_with = [](std::string_view what) {
    return Error{Code::kInvalid, Str(Option("backup"), " does not go with ", what)};
  };
  if (options.codec != "none") return not_with(Str(Option("codec"), " ", options.codec));
  if (options.factors) return not_with(Option("layer-factors"));
  if (options.exact) return not_with(Option("exact"));
  if (options.accumulate > 1) return not_with(Option("accumulate"));
  if (!options.whole) return not_with(Str(Option("split"), " bytes or own: others must have the rows of who is slow"));
  if (world.model.traits().sums_over_workers && options.batch_norm != "local")
    return not_with(Str("batch norm over all rows of an update: give ", Option("batch-norm"), " local"));
  // Too few may be left, in the end, for some to be done without.
  StrategyOptions fewer = options;
  fewer.backup = std::min(options.backup, world.collectives.fabric().size() - 1);
  if (fewer.backup == 0) return MakeAllReduce(fewer, world);
  return SynchronousPtr(std::make_unique<Backup>(fewer, world, TRY(world.model.NewGradient(world.memory))));
}

}  // namespace freshet::strategy
