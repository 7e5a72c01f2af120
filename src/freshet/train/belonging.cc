#include "train/belonging.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/option.h"
#include "strategy/server/synchrony.h"

namespace freshet::train {
namespace {

using Names = std::vector<std::string>;

// The table: an option, and the strategies that look at it.
struct Belonging {
  std::string_view option;
  Names strategies;
};
const std::vector<Belonging>& Belongings() {
  static const std::vector<Belonging> all = {
      {"synchrony", {"server", "groups"}},
      {"servers", {"server", "groups"}},
      {"replicas", {"server"}},
      {"slower-when-stale", {"server", "groups"}},
      {"fetch-every", {"server", "groups"}},
      {"push-every", {"server", "groups"}},
      {"every", {"average", "groups", "gossip"}},
      {"group", {"groups", "hybrid"}},
      {"gossip", {"gossip"}},
      {"neighbours", {"gossip"}},
      {"slice-all", {"slices", "hybrid"}},
      {"order", {"scheduled"}},
      {"coordinates", {"scheduled"}},
      {"rho", {"scheduled"}},
      {"pipeline", {"ring", "modules"}},
      {"micro", {"ring", "modules"}},
      {"recompute", {"ring", "modules"}},
      {"stages", {"ring"}},
      {"balance", {"ring"}},
  };
  return all;
}

std::string AnyOf(const Names& names) {
  if (names.size() < 2) return Join(names, "");
  return Str(Join(Names(names.begin(), names.end() - 1), ", "), " or ", names.back());
}

// The lines of all options, by name.
std::map<std::string, std::string, std::less<>> LinesOf(Together together) {
  base::Settings settings;
  together.Register(settings);
  const std::string text = settings.Effective();
  std::map<std::string, std::string, std::less<>> lines;
  for (const std::string_view line : Split(text, '\n'))
    if (!line.empty()) lines.emplace(line.substr(0, line.find(' ')), line);
  return lines;
}

// What else than the strategy the option goes with, and is not there; "" when nothing is missing.
std::string Missing(std::string_view option, const Together& together) {
  const strategy::StrategyOptions& how = together.strategy;
  if (option == "replicas" && together.elastic.empty()) return Option("elastic");
  const bool through_server = how.kind == "server" || !how.synchrony.empty();
  if (option == "servers" && !through_server) return Str(Option("synchrony"), ", by which groups meet through servers");
  if (option == "slower-when-stale" || option == "fetch-every" || option == "push-every") {
    const auto synchrony = strategy::server::Synchrony::Parse(how.synchrony);
    if (synchrony.ok() && synchrony.value().bulk()) return Str(Option("synchrony"), " ssp:S, asp:V or bap");
  }
  return "";
}

struct Foreign {
  std::string_view option;
  std::string goes_with;
};

// What was given and is not used.
std::vector<Foreign> FindForeign(const Together& together) {
  const auto lines = LinesOf(together), usual = LinesOf(Together());
  const std::string kind = together.strategy.kind == "auto" ? "allreduce" : together.strategy.kind;
  std::vector<Foreign> found;
  for (const auto& [option, strategies] : Belongings()) {
    if (lines.at(std::string(option)) == usual.at(std::string(option))) continue;
    if (std::find(strategies.begin(), strategies.end(), kind) == strategies.end())
      found.push_back({option, Str(Option("strategy"), " ", AnyOf(strategies))});
    else if (std::string missing = Missing(option, together); !missing.empty())
      found.push_back({option, std::move(missing)});
  }
  return found;
}

}  // namespace

Result<void> CheckBelonging(const std::vector<Together>& ways, std::string_view not_with) {
  CHECK(!ways.empty());
  std::vector<std::vector<Foreign>> found;
  for (const Together& way : ways) found.push_back(FindForeign(way));
  for (const Foreign& foreign : found.front()) {
    const bool to_all = std::all_of(found.begin(), found.end(), [&](const std::vector<Foreign>& of_one) {
      return std::any_of(of_one.begin(), of_one.end(), [&](const Foreign& f) { return f.option == foreign.option; });
    });
    if (to_all)
      return Error{Code::kInvalid, Str(Option(foreign.option), " goes with ", foreign.goes_with, ", not with ",
                                       not_with, "; it would do nothing: leave it out")};
  }
  return {};
}

void DropForeign(Together& together) {
  const auto usual = LinesOf(Together());
  const std::vector<Foreign> found = FindForeign(together);
  base::Settings settings;
  together.Register(settings);
  for (const Foreign& foreign : found)
    CHECK(settings.ParseToml(usual.at(std::string(foreign.option)), "defaults").ok());
}

}  // namespace freshet::train
