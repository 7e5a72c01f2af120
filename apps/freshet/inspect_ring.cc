#include "inspect_ring.h"

#include <nlohmann/json.hpp>

#include "strategy/ring/outlook.h"
#include "strategy/ring/plan.h"
#include "table.h"

namespace freshet::cli {

using Json = nlohmann::ordered_json;
using namespace strategy::ring;

void RingFlags::Register(base::Settings& settings) {
  settings.Add("ring", &members, "show how it would be cut for a ring of so many workers",
               {.value = "N", .least = 0, .most = 4096});
  settings.Add("pipeline", &how.pipeline, "ring: order of a step",
               {.value = "NAME", .choices = {"flush", "1f1b", "interleaved", "stash"}});
  settings.Add("micro", &how.micro, "ring: micro-batches of a training step (0: as freshet train would have it)",
               {.value = "N"});
  settings.Add("stages", &how.stages, "ring: stages that each worker holds (0: 1, interleaved 2)",
               {.value = "N", .least = 0, .most = 64});
  settings.Add("recompute", &how.recompute, "ring: as if activations were computed again in place of being kept");
}

Result<Json> RingFlags::Describe(const model::network::Graph& graph, std::uint64_t batch, int slots) const {
  const std::uint64_t micros = how.micro > 0 ? how.micro : UsualMicros(batch, members);
  if (micros > batch)
    return Error{Code::kInvalid,
                 Str("--micro ", micros, " micro-batches of --batch ", batch, ": some would have no row")};
  const CutOptions options{members, TRY(StagesEach(how, members)), static_cast<std::size_t>(batch),
                           static_cast<std::size_t>(micros)};
  const auto outlooks =
      TRY(LookAhead(graph, model::network::OneDnn(), options, TRY(OrderOf(how.pipeline)), how.recompute));
  Json ring = {
      {"members", Json::array()}, {"pipeline", how.pipeline}, {"stages", options.stages_each}, {"micro", micros}};
  for (const Outlook& member : outlooks) {
    Json stages = Json::array();
    for (const StageCut& stage : member.stages) {
      const auto first = static_cast<std::size_t>(std::max(stage.first, 1)),
                 last = static_cast<std::size_t>(stage.last) - 1;
      stages.push_back({{"first", graph.layers[first].name},
                        {"last", graph.layers[last].name},
                        {"layers", last - first + 1},
                        {"tensors_in", stage.enters.size()}});
    }
    const std::uint64_t weights = member.parameters * sizeof(float);
    const std::uint64_t copies =
        2 + static_cast<std::uint64_t>(slots) + (how.pipeline == "stash" ? 1 : 0);  // weights before the last update
    ring["members"].push_back({{"stages", std::move(stages)},
                               {"parameters", member.parameters},
                               {"cost_share", member.cost_share},
                               {"bytes", weights * copies + member.working_bytes},
                               {"working_bytes", member.working_bytes},
                               {"bytes_next", member.bytes_next},
                               {"bytes_back", member.bytes_back}});
  }
  return ring;
}

std::string RingText(const Json& ring) {
  std::vector<std::vector<std::string>> rows = {
      {"member", "layers", "cost", "parameters", "memory", "to the next", "to the one before"}};
  const Json& members = ring["members"];
  for (std::size_t m = 0; m < members.size(); ++m) {
    const Json& member = members[m];
    std::vector<std::string> stages;
    for (const Json& stage : member["stages"]) {
      const auto first = stage["first"].get<std::string>(), last = stage["last"].get<std::string>();
      stages.push_back(first == last ? first : Str(first, " … ", last));
    }
    rows.push_back({Str(m), Join(stages, ", "), Str(Fixed(100 * member["cost_share"].get<double>(), 1), " %"),
                    Grouped(member["parameters"].get<std::uint64_t>()), HumanBytes(member["bytes"].get<double>()),
                    HumanBytes(member["bytes_next"].get<double>()), HumanBytes(member["bytes_back"].get<double>())});
  }
  const auto pipeline = ring["pipeline"].get<std::string>();
  const double idle = static_cast<double>(members.size()) - 1,
               turns = ring["micro"].get<double>() * ring["stages"].get<double>();
  return Str("\n", Table(rows, 2), "pipeline    ", pipeline, ", ", ring["micro"].get<std::uint64_t>(),
             " micro-batches a step: idle ",
             pipeline == "stash" ? "where it begins and runs empty only"
                                 : Str(Fixed(100 * idle / (turns + idle), 1), " % of the time"),
             " if all stages took as long\n");
}

}  // namespace freshet::cli
