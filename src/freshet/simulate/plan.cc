#include "simulate/plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/str.h"
#include "strategy/slices.h"

namespace freshet::simulate {
namespace {

constexpr std::size_t kBestOfFirst = 4;

class Planner {
 public:
  Planner(const Choices& choices, const model::Model& model, const Costs& costs, fabric::sim::Flows& flows,
          const std::function<Result<void>()>& go_on)
      : choices_(choices), model_(model), costs_(costs), flows_(flows), go_on_(go_on) {}

  // Who exchanges with whom.
  Result<void> TryFirst(const Scenario& base) {
    for (const std::string& kind : choices_.strategies)
      for (const fabric::Algorithm topology : choices_.topologies)
        for (const int workers : choices_.workers_per_node) {
          Scenario scenario = base;
          scenario.strategy.kind = kind;
          scenario.collectives.algorithm = topology;
          scenario.workers_per_node = workers;
          const auto all = static_cast<std::uint64_t>(scenario.nodes) * static_cast<std::uint64_t>(workers);
          if (scenario.strategy.batch < all) continue;  // not a row for each
          if (kind == "slices" && !CanSlice(static_cast<int>(all), scenario.strategy.batch)) continue;
          TRY(Try(scenario));
        }
    return {};
  }
  // What travels, in pieces of which size. What sends parameters has neither.
  Result<void> TrySecond(const Scenario& base) {
    if (base.strategy.kind == "average") return {};
    for (const std::string& codec : choices_.codecs)
      for (const std::size_t bucket : choices_.buckets) {
        Scenario scenario = base;
        scenario.strategy.codec = codec;
        scenario.strategy.bucket_bytes = bucket;
        if (codec == base.strategy.codec && bucket == base.strategy.bucket_bytes) continue;  // it was tried
        TRY(Try(scenario));
      }
    return {};
  }
  void Sort() {
    std::stable_sort(tried_.begin(), tried_.end(), [](const Candidate& a, const Candidate& b) {
      return a.outcome.rows_per_second > b.outcome.rows_per_second;
    });
  }
  std::vector<Candidate>& tried() { return tried_; }
  // The first that cannot be, as a ring of more members than a network has layers; the others are tried all the same.
  const std::optional<Error>& refused() const { return refused_; }

 private:
  bool CanSlice(int workers, std::uint64_t batch) const {
    return costs_.OfOneLayer(0, 1, 1).has_value() && strategy::SlicesPay(model_, workers, batch);
  }
  Result<void> Try(const Scenario& scenario) {
    if (go_on_) TRY(go_on_());
    auto outcome = Simulate(scenario, model_, costs_, flows_);
    if (!outcome.ok() && outcome.error().code != Code::kInvalid) return outcome.error();
    if (outcome.ok())
      tried_.push_back({scenario, std::move(outcome).value()});
    else if (!refused_)
      refused_ = outcome.error();
    return {};
  }

  const Choices& choices_;
  const model::Model& model_;
  const Costs& costs_;
  fabric::sim::Flows& flows_;
  const std::function<Result<void>()>& go_on_;
  std::vector<Candidate> tried_;
  std::optional<Error> refused_;
};

}  // namespace

std::string Candidate::Name() const {
  const strategy::StrategyOptions& how = scenario.strategy;
  std::string name = Str(how.kind, " by ", NameOf(scenario.collectives.algorithm));
  if (how.kind == "average" || how.kind == "groups") name += Str(", every ", how.every);
  if (how.kind != "average")
    name += Str(", ", how.codec == "none" ? "exact" : how.codec, ", buckets of ",
                HumanBytes(static_cast<double>(how.bucket_bytes)));
  return name +
         Str(", ", scenario.workers_per_node, scenario.workers_per_node == 1 ? " worker" : " workers", " a node");
}

std::string Candidate::Why(const Candidate& better) const {
  struct Part {
    const char* name;
    double more;  // seconds of an update, than the better one
  };
  const strategy::StepTimes &a = outcome.times, &b = better.outcome.times;
  const std::array parts = {
      Part{outcome.reach < 0.9 * better.outcome.reach ? "small batches" : "computing", a.compute - b.compute},
      Part{"exchange", a.exchange - b.exchange}, Part{"waiting", a.wait - b.wait}, Part{"disk", a.read - b.read},
      Part{"updates", a.apply - b.apply}};
  const auto most =
      std::max_element(parts.begin(), parts.end(), [](const Part& x, const Part& y) { return x.more < y.more; });
  const double slower = outcome.step_seconds / better.outcome.step_seconds - 1;
  if (slower < 0.01) return "as fast";
  return Str(Fixed(100 * slower, slower < 0.1 ? 1 : 0), " % slower: ", most->name, " (", outcome.Bottleneck(), ")");
}

Result<std::vector<Candidate>> Plan(const Scenario& base, const Choices& choices, Search search,
                                    const model::Model& model, const Costs& costs, fabric::sim::Flows& flows,
                                    const std::function<Result<void>()>& go_on) {
  Planner planner(choices, model, costs, flows, go_on);
  TRY(planner.TryFirst(base));
  if (planner.tried().empty() && planner.refused()) return *planner.refused();
  if (planner.tried().empty())
    return Error{Code::kInvalid, Str("batch ", base.strategy.batch, " on ", base.nodes,
                                     " nodes: there is not a row for each worker, however they are placed",
                                     choices.strategies == std::vector<std::string>{"slices"}
                                         ? ", or no layer of which less would travel as slices"
                                         : "")};
  planner.Sort();
  std::vector<Scenario> first;
  for (const Candidate& candidate : planner.tried()) first.push_back(candidate.scenario);
  if (search == Search::kStaged) first.resize(std::min(first.size(), kBestOfFirst));
  for (const Scenario& scenario : first) TRY(planner.TrySecond(scenario));
  planner.Sort();
  return std::move(planner.tried());
}

}  // namespace freshet::simulate
