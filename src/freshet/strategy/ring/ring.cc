#include "strategy/ring/ring.h"

#include "base/check.h"
#include "base/option.h"
#include "strategy/ring/columns.h"
#include "strategy/ring/pipeline.h"

namespace freshet::strategy {
namespace {

// What no ring can do, whatever is cut.
Result<void> Check(const StrategyOptions& options) {
  const auto refuse = [](std::string_view option, std::string_view why) {
    return Error{Code::kInvalid, Str(Option("strategy"), " ring does not go with ", Option(option), why)};
  };
  if (!options.whole) return refuse("split", " bytes or own: a row passes all members, who must all have it; use rows");
  if (options.factors) return refuse("layer-factors", ": no gradients travel; leave it out");
  return {};
}

}  // namespace

Result<StrategyPtr> MakeRing(const StrategyOptions& options, const Strategy::World& world) {
  CHECK(!options.undo);  // what is lost lies with others (elastic_ring.h)
  TRY(Check(options));
  const bool rounds = options.codec == "fp16" || options.codec == "bf16" || options.codec == "int8";
  if (options.codec != "none" && (world.model.partials() != nullptr || !rounds))
    return Error{
        Code::kInvalid,
        Str(Option("strategy"), " ring does not go with ", Option("codec"), " ", options.codec, ": ",
            world.model.partials() != nullptr ? "no gradients travel; leave it out"
                                              : "activations travel, of which nothing can be held back for the "
                                                "next ones; use fp16, bf16 or int8")};
  if (world.model.partials() != nullptr) {
    if (options.balance || options.recompute)
      return Error{Code::kInvalid, Str(Option(options.balance ? "balance" : "recompute"),
                                       " is for networks, whose layers lie with the members; leave it out")};
    return ring::MakeColumns(options, world);
  }
  const std::string& kind = world.model.config().kind;
  if (kind == "network") return ring::MakePipeline(options, world);
  return Error{Code::kInvalid, Str(Option("strategy"), " ring is for networks, linear models, fm and kmeans, not for ",
                                   Option("model"), " ", kind, "; use allreduce")};
}

}  // namespace freshet::strategy
