#include "strategy/ring/ring.h"

#include "base/check.h"
#include "base/option.h"
#include "strategy/ring/columns.h"
#include "strategy/ring/items.h"
#include "strategy/ring/pipeline.h"

namespace freshet::strategy {
namespace {

// What a ring cannot do, whatever is cut; rows are handed on where that is columns.
Result<void> Check(const StrategyOptions& options, const model::Model& model) {
  const auto refuse = [](std::string_view option, std::string_view why) {
    return Error{Code::kInvalid, Str(Option("strategy"), " ring does not go with ", Option(option), why)};
  };
  if (!options.whole && model.partials() == nullptr)
    return refuse("split", Str(" bytes or own and ", Option("model"), " ", model.config().kind,
                               ": a row passes all members, who must all have it; use rows"));
  if (options.factors) return refuse("layer-factors", ": no gradients travel; leave it out");
  return {};
}

// What cuts the rows of a step in networks, whose activations take memory, and moves their layers.
Result<void> CheckNotOfNetworks(const StrategyOptions& options, std::string_view why) {
  const StrategyOptions usual;
  const auto refuse = [&](std::string_view option, const auto& value) {
    return Error{Code::kInvalid, Str(Option(option), " ", value, " is for networks: ", why, "; leave it out")};
  };
  if (options.accumulate != usual.accumulate) return refuse("accumulate", options.accumulate);
  if (options.micro != usual.micro) return refuse("micro", options.micro);
  if (options.stages != usual.stages) return refuse("stages", options.stages);
  if (options.pipeline != usual.pipeline) return refuse("pipeline", options.pipeline);
  if (options.recompute)
    return Error{Code::kInvalid,
                 Str(Option("recompute"), " is for networks, whose layers lie with the members; leave it out")};
  return {};
}

// What moves between neighbours are layers, or columns that all know where to find.
Result<void> CheckBalance(const StrategyOptions& options, const model::Model& model) {
  if (!options.balance) return {};
  if (model.ratings() != nullptr)
    return Error{Code::kInvalid, Str(Option("balance"),
                                     " is for networks, linear models, fm and kmeans, not for "
                                     "ratings, past which all items walk; leave it out")};
  if (model.partials() != nullptr && !options.whole)
    return Error{Code::kInvalid, Str(Option("balance"), " does not go with ", Option("split"),
                                     " bytes or own on a ring: rows are handed on by a cut that all know, and who has "
                                     "moved columns tells its neighbour alone; use rows, or leave it out")};
  return {};
}

Result<void> CheckCodec(const StrategyOptions& options, const model::Model& model) {
  const auto refuse = [&](std::string_view why) {
    return Error{Code::kInvalid,
                 Str(Option("strategy"), " ring does not go with ", Option("codec"), " ", options.codec, ": ", why)};
  };
  if (options.codec == "none") return {};
  if (model.partials() != nullptr) return refuse("no gradients travel; leave it out");
  if (model.ratings() != nullptr)
    return refuse("items travel themselves, and nothing of them may be lost; leave it out");
  if (options.codec == "fp16" || options.codec == "bf16" || options.codec == "int8") return {};
  return refuse("activations travel, of which nothing can be held back for the next ones; use fp16, bf16 or int8");
}

}  // namespace

Result<StrategyPtr> MakeRing(const StrategyOptions& options, const Strategy::World& world) {
  CHECK(!options.undo);  // what is lost lies with others (elastic_ring.h)
  TRY(Check(options, world.model));
  TRY(CheckCodec(options, world.model));
  TRY(CheckBalance(options, world.model));
  if (world.model.partials() != nullptr) {
    TRY(CheckNotOfNetworks(options, "a step of this model takes a few numbers for each of its rows on a ring"));
    return ring::MakeColumns(options, world);
  }
  if (world.model.ratings() != nullptr) {
    TRY(CheckNotOfNetworks(options, "ratings are learned from one after another"));
    if (options.large)
      return Error{Code::kInvalid,
                   Str(Option("large-model"), " does not go with ", Option("strategy"),
                       " ring of ratings, past which all items walk; use ", Option("strategy"), " server")};
    return ring::MakeItems(options, world);
  }
  const std::string& kind = world.model.config().kind;
  if (kind == "network") return ring::MakePipeline(options, world);
  return Error{Code::kInvalid, Str(Option("strategy"),
                                   " ring is for networks, linear models, fm and kmeans, and for factorization where "
                                   "there are ratings to walk past; here ",
                                   Option("model"), " ", kind, " has none; use allreduce")};
}

}  // namespace freshet::strategy
