// Groups: all-reduce among the workers of a group with every update, the mean of all groups every so many updates.

#include "base/option.h"
#include "fabric/subset.h"
#include "strategy/averager.h"
#include "strategy/group_plan.h"
#include "strategy/synchronous.h"

namespace freshet::strategy {
namespace {

class Groups final : public Synchronous {
 public:
  Groups(const StrategyOptions& options, const World& world, std::unique_ptr<fabric::Subset> members,
         std::unique_ptr<fabric::Collectives> collectives, SynchronousPtr inside)
      : Synchronous(options, world),
        members_(std::move(members)),
        collectives_(std::move(collectives)),
        inside_(std::move(inside)),
        averager_(world, options.block_momentum, options.average_state) {
    if (LooksTogether()) WillObserve();
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
    TRY(BookExchangeOf(*inside_));
    return Synchronous::BookExchange();
  }
  void Save(std::vector<data::Tensor>& tensors) const override {
    inside_->Save(tensors);
    averager_.Save(tensors);
  }
  Result<void> Load(const data::TensorFile& file) override {
    TRY(inside_->Load(file));
    return averager_.Load(file);
  }
  void SaveShared(std::vector<data::Tensor>& tensors) const override {
    inside_->SaveShared(tensors);
    averager_.Save(tensors);
  }
  Result<void> LoadShared(const data::TensorFile& file) override {
    TRY(inside_->LoadShared(file));
    return averager_.Load(file);
  }
  Result<void> Merge(const data::TensorFile& file) override { return inside_->Merge(file); }

 protected:
  std::size_t updates() const override { return options_.every; }

  Result<double> Update(const data::Batch& piece, const data::Batch& mine, double, std::span<float> scores) override {
    if (!begun_) averager_.Begin();
    begun_ = true;
    if (LooksTogether()) TRY(Observe(piece));
    const double loss = TRY(InParts(*inside_, piece, mine, scores));
    Computed(loss);
    apart_ = true;
    TRY(At("step.computed"));
    TRY(Settle());
    TRY(At("step.exchanged"));
    return loss;
  }

 private:
  // Who reads rows of its own shares what it sees of them with its group; but all groups must begin with the same
  // clusters.
  bool LooksTogether() const { return !options_.whole && !world_.model.Supervised(); }

  std::unique_ptr<fabric::Subset> members_;
  std::unique_ptr<fabric::Collectives> collectives_;
  SynchronousPtr inside_;
  Averager averager_;
  bool begun_ = false, apart_ = false;
};

}  // namespace

Result<SynchronousPtr> MakeGroups(const StrategyOptions& options, const Strategy::World& world) {
  fabric::Fabric& all = world.collectives.fabric();
  if (!options.synchrony.empty())
    return Error{Code::kInvalid,
                 Str(Option("strategy"), " groups with ", Option("synchrony"), " ", options.synchrony,
                     ", through a server, does not go with ", Option("elastic"), "; leave one of them out")};
  const GroupPlan plan = TRY(GroupPlan::Make(options, all.size(), all.rank()));
  auto members = std::make_unique<fabric::Subset>(all, plan.members, fabric::Tag{1} << 48);
  fabric::Collectives::Options how = world.collectives.options();
  if (how.algorithm == fabric::Algorithm::kNative) how.algorithm = fabric::Algorithm::kAuto;  // of all members alone
  how.table = {};                                                                             // likewise
  auto collectives = std::make_unique<fabric::Collectives>(*members, how);
  const Strategy::World inner{*collectives, world.model, world.parameters, world.optimizer,
                              world.memory, world.clock, world.trace};  // its places are those of all
  SynchronousPtr inside = TRY(MakeAllReduce(options, inner));
  return SynchronousPtr(
      std::make_unique<Groups>(options, world, std::move(members), std::move(collectives), std::move(inside)));
}

}  // namespace freshet::strategy
