#include "train/choice.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/cores.h"
#include "base/str.h"
#include "fabric/collectives/measure.h"
#include "fabric/sim/star_flows.h"
#include "simulate/calibrate.h"
#include "simulate/plan.h"
#include "train/checkpoints.h"
#include "train/topology.h"

namespace freshet::train {
namespace {

using fabric::Algorithm;

// Is anything exchanged whose way could be chosen? Touched rows go to their owners and back.
Result<bool> AnyDense(const model::Model& model) {
  optimize::HeapMemory memory;
  const optimize::Gradient gradient = TRY(model.NewGradient(memory));
  return std::any_of(gradient.blocks.begin(), gradient.blocks.end(),
                     [](const optimize::BlockGradient& block) { return !block.memory().empty(); });
}

// Which of its host this member is, counted from 0.
int LocalRank(const fabric::Fabric& fabric) {
  int before = 0;
  for (int rank = 0; rank < fabric.rank(); ++rank) before += fabric.host(rank) == fabric.host(fabric.rank()) ? 1 : 0;
  return before;
}

// A worker's share of a batch: rows of zeros, which are as good as any to be timed by and no row of words is without.
Result<simulate::StepCost> MeasureShare(const model::Model& model, std::size_t rows, int threads,
                                        const base::Clock& clock, double seconds) {
  const std::vector<float> numbers(rows * model.config().features), labels(rows);
  data::Batch batch;
  batch.rows = rows;
  batch.labels = labels.data();
  batch.dense = numbers.data();
  batch.width = model.config().features;
  return simulate::MeasureBatch(model, batch, threads, clock, seconds);
}

// This group as a platform: a star of hosts.
void Describe(const fabric::Fabric& fabric, fabric::sim::Platform& platform, simulate::Scenario& scenario) {
  std::set<std::string> hosts;
  for (int rank = 0; rank < fabric.size(); ++rank) hosts.insert(fabric.host(rank));
  const auto count = static_cast<int>(hosts.size());
  platform.name = "this group";
  platform.nodes = fabric.size() % count == 0 ? count : fabric.size();  // where hosts differ, as if each worker had one
  platform.cores = base::AvailableCores();
  scenario.nodes = platform.nodes;
  scenario.workers_per_node = fabric.size() / platform.nodes;
}

// Those whose letters are not as many as pairs of workers.
constexpr int kMany = 32;
std::vector<Algorithm> Topologies(const fabric::Fabric& fabric, Algorithm named) {
  if (named != Algorithm::kAuto) return {named};
  if (fabric.prefers_native()) return {Algorithm::kDirect};  // what it does comes nearest to that
  std::vector<Algorithm> usable = fabric::UsableAlgorithms(fabric);
  std::erase_if(usable, [&](Algorithm algorithm) {
    return algorithm == Algorithm::kNative || (fabric.size() > kMany && algorithm == Algorithm::kDirect);
  });
  return usable;
}

// Rank 0's.
Result<Choice> Search(const fabric::Fabric& fabric, const model::Model& model, const simulate::StepCost& share,
                      simulate::Calibration calibration, Algorithm named, const ChoiceWishes& wishes) {
  simulate::Scenario base;
  Describe(fabric, calibration.platform, base);
  base.platform = calibration.platform;
  base.strategy = wishes.strategy;
  base.strategy.kind = "allreduce";
  base.steps = 1;
  base.work = calibration.work;
  const std::size_t rows = std::max<std::size_t>(wishes.strategy.batch / static_cast<std::size_t>(fabric.size()), 1);
  const simulate::MeasuredCosts costs({{rows, wishes.strategy.threads, share}});
  simulate::Choices choices;
  choices.topologies = Topologies(fabric, named);
  choices.codecs = {wishes.strategy.codec};
  choices.workers_per_node = {base.workers_per_node};
  fabric::sim::StarFlows flows(base.platform);
  const auto plan = TRY(simulate::Plan(base, choices, simulate::Search::kStaged, model, costs, flows, {}));
  const simulate::Candidate& best = plan.front();
  const Algorithm by = best.scenario.collectives.algorithm;
  Choice choice{.algorithm = by, .bucket_bytes = best.scenario.strategy.bucket_bytes};
  choice.how = Str(best.Name(), ": ", Fixed(best.outcome.step_seconds * 1e3, 2), " ms an update by simulation, of ",
                   plan.size(), " ways");
  if (named == Algorithm::kAuto && fabric.prefers_native()) choice.algorithm = Algorithm::kNative;
  // The next that is another way, not another bucket.
  const auto next = std::find_if(plan.begin(), plan.end(), [&](const simulate::Candidate& other) {
    return other.scenario.collectives.algorithm != by;
  });
  if (next != plan.end())
    choice.how += Str("; by ", NameOf(next->scenario.collectives.algorithm), " it is ", next->Why(best));
  return choice;
}

}  // namespace

std::string Choice::ToText() const { return Str(NameOf(algorithm), " ", bucket_bytes); }

Result<Choice> Choice::FromText(const std::string& text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  Choice choice;
  choice.algorithm = TRY(fabric::AlgorithmOf(text.substr(0, space)));
  const char* const begin = text.data() + std::min(space + 1, text.size());
  const auto [end, problem] = std::from_chars(begin, text.data() + text.size(), choice.bucket_bytes);
  if (problem != std::errc() || end != text.data() + text.size() || choice.bucket_bytes == 0)
    return Error{Code::kCorrupt, Str("a choice of ", Quoted(text), ": expected a topology and bytes of a bucket")};
  return choice;
}

Result<Choice> ChooseStrategy(base::Files& files, base::Clock& clock, fabric::Collectives& collectives,
                              const model::Model& model, const ChoiceWishes& wishes) {
  fabric::Fabric& fabric = collectives.fabric();
  std::string saved;
  if (fabric.rank() == 0) saved = TRY(SavedChoice(files, wishes.checkpoint));
  saved = TRY(FromRankZero(collectives, saved));
  if (!saved.empty()) {
    Choice choice = TRY(Choice::FromText(saved));
    choice.how = Str("allreduce, as the run that is resumed chose it");
    return choice;
  }
  if (!TRY(AnyDense(model)))
    return Choice{.algorithm = Algorithm::kAuto,
                  .bucket_bytes = wishes.strategy.bucket_bytes,
                  .how = "allreduce: touched rows go to their owners and back, whatever the topology"};
  simulate::Calibration calibration;
  TRY(simulate::MeasureExchange(fabric, clock, wishes.seconds, calibration));
  // As many at once as cores have room for: that there are more is simulated.
  simulate::StepCost share;
  const std::size_t rows = std::max<std::size_t>(wishes.strategy.batch / static_cast<std::size_t>(fabric.size()), 1);
  const int threads = std::max(wishes.strategy.threads, 1);
  if (LocalRank(fabric) < std::max(base::AvailableCores() / threads, 1))
    share = TRY(MeasureShare(model, rows, threads, clock, wishes.seconds));
  TRY(collectives.Barrier());
  std::string chosen, how;
  if (fabric.rank() == 0) {
    const Choice choice =
        TRY(Search(fabric, model, share, std::move(calibration), collectives.options().algorithm, wishes)
                .While("simulating ways to train"));
    chosen = choice.ToText();
    how = choice.how;
  }
  Choice choice = TRY(Choice::FromText(TRY(FromRankZero(collectives, chosen))));
  choice.how = TRY(FromRankZero(collectives, how));
  return choice;
}

}  // namespace freshet::train
