#include "strategy/strategy.h"

#include "base/option.h"
#include "strategy/modules/modules.h"
#include "strategy/own_pace.h"
#include "strategy/ring/ring.h"
#include "strategy/slices.h"
#include "strategy/synchronous.h"

namespace freshet::strategy {
namespace {

// The registry: one line for each way of meeting, which has one file of its own.
struct Entry {
  std::string_view name;
  Result<SynchronousPtr> (*make)(const StrategyOptions& options, const Strategy::World& world);
};
constexpr Entry kRegistry[] = {{"allreduce", MakeAllReduce}, {"average", MakeAverage}, {"groups", MakeGroups}};

// And for each in which nobody waits for the others, or whose members are not alike.
struct OtherEntry {
  std::string_view name;
  Result<StrategyPtr> (*make)(const StrategyOptions& options, const Strategy::World& world);
};
constexpr OtherEntry kOthers[] = {{"gossip", MakeGossip}, {"server", MakeServer}, {"ring", MakeRing},
                                  {"slices", MakeSlices}, {"hybrid", MakeHybrid}, {"modules", MakeModules}};

// What makes no sense, of any kind.
Result<void> Check(const StrategyOptions& options, const Strategy::World& world) {
  const auto workers = static_cast<std::uint64_t>(world.collectives.fabric().size());
  const bool by_ratings = options.kind == "ring" && world.model.ratings() != nullptr;  // no row is shared
  if (options.batch < workers && !by_ratings)
    return Error{Code::kInvalid, Str(Option("batch"), " ", options.batch, " has no row for some of ", workers,
                                     " workers; give at least ", workers)};
  if (options.every == 0 || options.accumulate == 0 || options.group < 1 || options.power_rank < 1)
    return Error{Code::kInvalid, Str(Option("every"), ", ", Option("accumulate"), ", ", Option("group"), " and ",
                                     Option("power-rank"), " must be at least 1")};
  if (options.exact && options.kind != "allreduce")
    return Error{Code::kInvalid, Str(Option("exact"), " is for ", Option("strategy"), " allreduce; what ", options.kind,
                                     " makes depends on how many workers there are")};
  if (options.backup > 0 && options.kind != "allreduce" && options.kind != "server")
    return Error{Code::kInvalid, Str(Option("backup"), " is for ", Option("strategy"), " allreduce and server")};
  return {};
}

}  // namespace

std::vector<std::string> Synchronous::Kinds() {
  std::vector<std::string> names;
  for (const Entry& entry : kRegistry) names.emplace_back(entry.name);
  return names;
}

void StepTimes::Add(const StepTimes& other) {
  for (double StepTimes::*part :
       {&StepTimes::read, &StepTimes::compute, &StepTimes::wait, &StepTimes::exchange, &StepTimes::apply})
    this->*part += other.*part;
  for (std::uint64_t StepTimes::*part :
       {&StepTimes::steps, &StepTimes::rows, &StepTimes::bytes_sent, &StepTimes::bytes_shared, &StepTimes::bytes_dense,
        &StepTimes::bytes_next, &StepTimes::bytes_back, &StepTimes::bytes_moved, &StepTimes::bytes_handed,
        &StepTimes::bytes_copied})
    this->*part += other.*part;
  for (std::size_t i = 0; i < stale.size(); ++i) stale[i] += other.stale[i];
  if (other.apart > 0) apart = other.apart;  // they met later
}

std::vector<std::string> Strategy::Kinds() {
  std::vector<std::string> names = Synchronous::Kinds();
  for (const OtherEntry& entry : kOthers) names.emplace_back(entry.name);
  return names;
}

Result<StrategyPtr> Strategy::Make(const StrategyOptions& options, const World& world) {
  if (options.kind == "groups" && !options.synchrony.empty()) {
    TRY(Check(options, world));
    return MakeServerGroups(options, world);
  }
  for (const OtherEntry& entry : kOthers) {
    if (entry.name != options.kind) continue;
    TRY(Check(options, world));
    return entry.make(options, world);
  }
  return StrategyPtr(TRY(Synchronous::Make(options, world)));
}

Result<SynchronousPtr> Synchronous::Make(const StrategyOptions& options, const World& world) {
  TRY(Check(options, world));
  for (const Entry& entry : kRegistry)
    if (entry.name == options.kind) return entry.make(options, world);
  return Error{Code::kInvalid,
               Str("strategy ", Quoted(options.kind), ": expected one of ", Join(Strategy::Kinds(), ", "))};
}

Result<void> Strategy::EndEpoch() {
  if (!in_step())
    while (!TRY(StepDry())) continue;
  return Settle();
}

}  // namespace freshet::strategy
