#include "strategy/slices.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/option.h"
#include "fabric/collectives/transfers.h"
#include "fabric/subset.h"
#include "model/network/network.h"
#include "strategy/allreduce.h"
#include "strategy/group_plan.h"
#include "strategy/own_slices.h"

namespace freshet::strategy {
namespace {

// Some of the workers, as if they were all there are.
struct Some {
  fabric::Subset fabric;
  fabric::Collectives collectives;

  Some(const fabric::Collectives& all, std::vector<int> ranks, fabric::Tag apart)
      : fabric(all.fabric(), std::move(ranks), apart), collectives(fabric, How(all.options())) {}

 private:
  // The engine's own sums, and what was measured, are of all.
  static fabric::Collectives::Options How(fabric::Collectives::Options how) {
    if (how.algorithm == fabric::Algorithm::kNative) how.algorithm = fabric::Algorithm::kAuto;
    how.table = {};
    return how;
  }
};

// Who works together on slices: a group, whose members have one each; and who has the same slice in each group.
struct Sharers {
  std::vector<int> group;                // of the whole
  std::unique_ptr<Some> inside, across;  // none: all are one group; there is one group
};

class Slices final : public AllReduce {
 public:
  // The world's parameters and optimizer are those of the slices.
  Slices(const StrategyOptions& options, const World& world, optimize::Gradient gradient, std::vector<GradientSum> sums,
         std::unique_ptr<OwnSlices> own, Sharers sharers)
      : AllReduce(options, world, std::move(gradient), std::move(sums)),
        own_(std::move(own)),
        sharers_(std::move(sharers)) {
    meets_ = true;
    workspace_.exchange = [this](auto to, auto from) { Exchange(to, from); };
  }

  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override {
    own_->Take();
    return AllReduce::Step(piece, mine, scores);
  }

  Result<void> Settle() override {
    const auto begun = world_.clock.Now();
    const fabric::Fabric& fabric = world_.collectives.fabric();
    const std::uint64_t sent = fabric.bytes_sent(), shared = fabric.bytes_shared();
    TRY(own_->Give(inside()));
    times_.bytes_sent += fabric.bytes_sent() - sent;
    times_.bytes_shared += fabric.bytes_shared() - shared;
    Count(&StepTimes::exchange, "exchange", begun, world_.clock.Now(), {.note = "slices of all to all"});
    return {};
  }

 protected:
  Result<double> Update(const data::Batch& piece, const data::Batch& mine, double weight,
                        std::span<float> scores) override {
    const double loss = TRY(AllReduce::Update(piece, mine, weight, scores));
    own_->Changed();
    times_.bytes_dense += exchanged_bytes_;
    return loss;
  }

  // Tells the workspace how many rows of the part each of the group has.
  bool BeginPart(const data::Batch& piece, std::size_t part, std::size_t parts) override {
    std::vector<std::size_t> rows;
    for (const int worker : sharers_.group) {
      const std::size_t share =
          fabric::ChunkBegin(piece.rows, worker + 1, size()) - fabric::ChunkBegin(piece.rows, worker, size());
      rows.push_back(share * (part + 1) / parts - share * part / parts);
    }
    const bool some = std::any_of(rows.begin(), rows.end(), [](std::size_t count) { return count > 0; });
    workspace_.slicing = own_->Of(std::move(rows));
    return some;
  }

 private:
  fabric::Collectives& inside() { return sharers_.inside ? sharers_.inside->collectives : world_.collectives; }

  void Exchange(std::span<const std::span<const float>> to, std::span<const std::span<float>> from) {
    if (!met_.ok()) return;
    const auto begun = world_.clock.Now();
    met_ = Send(to, from);
    exchanged_ += world_.clock.Now() - begun;
  }
  Result<void> Send(std::span<const std::span<const float>> to, std::span<const std::span<float>> from) {
    fabric::Fabric& group = inside().fabric();
    fabric::Transfers transfers(group, inside().NextTag(), "exchanging rows between slices");
    for (int step = 1; step < group.size(); ++step) {
      const int other = (group.rank() + group.size() - step) % group.size();
      TRY(transfers.Receive(other, fabric::AsBytes(from[static_cast<std::size_t>(other)])));
    }
    for (int step = 1; step < group.size(); ++step) {
      const int other = (group.rank() + step) % group.size();
      const auto rows = fabric::AsBytes(to[static_cast<std::size_t>(other)]);
      TRY(transfers.Send(other, rows));
      exchanged_bytes_ += rows.size();
    }
    return transfers.WaitAll();
  }

  const std::unique_ptr<OwnSlices> own_;
  const Sharers sharers_;
  std::uint64_t exchanged_bytes_ = 0;
};

// What slices cannot do.
Result<void> Check(const StrategyOptions& options, const model::Model& model) {
  const auto refuse = [&](std::string_view option, std::string_view why) {
    return Error{Code::kInvalid, Str(Option("strategy"), " ", options.kind, " does not go with ", Option(option), why)};
  };
  if (!options.whole)
    return refuse("split", " bytes or own: all must know how many rows each has in an update; use rows");
  if (options.undo) return refuse("elastic", ": each worker alone has its slices; leave it out");
  if (options.kind != "hybrid") return {};
  if (options.codec != "none") return refuse("codec", Str(" ", options.codec, "; leave it out"));
  if (model.traits().sums_over_workers && options.batch_norm == "together")
    return refuse("batch-norm", " together: groups compute apart; use local");
  return {};
}

Result<StrategyPtr> Make(const StrategyOptions& options, const Strategy::World& world, Sharers sharers) {
  TRY(Check(options, world.model));
  const auto members = static_cast<int>(sharers.group.size());
  const auto groups = static_cast<std::uint64_t>(world.collectives.fabric().size() / members);
  const auto found = std::find(sharers.group.begin(), sharers.group.end(), world.collectives.fabric().rank());
  auto own = TRY(OwnSlices::Make(options, world.learner(), static_cast<int>(found - sharers.group.begin()), members,
                                 std::max<std::uint64_t>(options.batch / groups, 1)));
  std::vector<bool> whole = own->sliced();
  whole.flip();
  std::vector<GradientSum> sums;
  sums.push_back(TRY(GradientSum::Make(options, world.collectives, world.model, world.trace, own->sliced())));
  if (sharers.across) {
    StrategyOptions plain = options;
    plain.factors = false;
    sums.push_back(TRY(GradientSum::Make(plain, sharers.across->collectives, world.model, world.trace, whole)));
  }
  optimize::Gradient gradient = TRY(world.model.NewGradient(world.memory, own->portion()));
  for (GradientSum& sum : sums)
    sum.Begin(gradient, world.optimizer.step());  // what they remember has the shape of that
  const Strategy::World of_slices{world.collectives, world.model, own->parameters(), own->optimizer(), world.memory,
                                  world.clock,       world.trace, world.at,          world.panel};
  return StrategyPtr(std::make_unique<Slices>(options, of_slices, std::move(gradient), std::move(sums), std::move(own),
                                              std::move(sharers)));
}

}  // namespace

bool SlicesPay(const model::Model& model, int members, std::uint64_t rows) {
  const model::network::Graph* const graph = model::network::GraphOf(model);
  if (graph == nullptr) return false;
  const auto facts = model::network::Infer(*graph);
  CHECK(facts.ok());
  const auto cuts = model::network::CutIntoSlices(*graph, facts.value(), members, rows);
  return std::any_of(cuts.begin(), cuts.end(), [](auto cut) { return cut != model::network::Slicing::Cut::kWhole; });
}

Result<StrategyPtr> MakeSlices(const StrategyOptions& options, const Strategy::World& world) {
  Sharers sharers;
  for (int worker = 0; worker < world.collectives.fabric().size(); ++worker) sharers.group.push_back(worker);
  return Make(options, world, std::move(sharers));
}

Result<StrategyPtr> MakeHybrid(const StrategyOptions& options, const Strategy::World& world) {
  const fabric::Fabric& all = world.collectives.fabric();
  StrategyOptions even = options;
  even.uneven = false;
  const GroupPlan plan = TRY(GroupPlan::Make(even, all.size(), all.rank()));
  Sharers sharers{plan.members, nullptr, nullptr};
  std::vector<int> same;
  for (const int leader : plan.leaders) same.push_back(leader + all.rank() % options.group);
  sharers.inside = std::make_unique<Some>(world.collectives, plan.members, fabric::Tag{1} << 48);
  sharers.across = std::make_unique<Some>(world.collectives, same, fabric::Tag{2} << 48);
  return Make(options, world, std::move(sharers));
}

}  // namespace freshet::strategy
