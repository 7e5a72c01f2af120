#include "strategy/ring/outlook.h"

namespace freshet::strategy::ring {

Result<std::vector<Outlook>> LookAhead(const model::network::Graph& graph, const model::network::Backend& backend,
                                       const CutOptions& options, Order order, bool recompute) {
  const auto facts = TRY(model::network::Infer(graph));
  const std::vector<StageCut> cut = TRY(CutNetwork(graph, facts, backend, options));
  const Schedule schedule = MakeSchedule(order, options.members, options.stages_each, options.micros);
  const std::size_t rows = (options.rows + options.micros - 1) / options.micros;
  double all = 0;
  for (const StageCut& stage : cut) all += stage.cost;
  const auto members = static_cast<std::size_t>(options.members);
  std::vector<Outlook> outlooks(members);
  for (std::size_t s = 0; s < cut.size(); ++s) {
    Outlook& member = outlooks[s % members];
    member.stages.push_back(cut[s]);
    member.parameters += cut[s].parameters;
    member.cost_share += cut[s].cost / all;
    for (const Crossing& tensor : cut[s].enters) {
      const auto bytes = static_cast<std::uint64_t>(tensor.elements) * options.rows * sizeof(float);
      outlooks[(s + members - 1) % members].bytes_next += bytes;
      if (tensor.learns) member.bytes_back += bytes;
    }
    Stage stage = TRY(Stage::Make(
        graph, {cut[s], s + 1 < cut.size() ? cut[s + 1].enters : std::vector<Crossing>(), 1, &backend, recompute},
        rows));
    stage.MakeRoom(schedule.depth[s], schedule.depth[s == 0 ? 0 : s - 1], rows);
    member.working_bytes += stage.bytes();
  }
  return outlooks;
}

}  // namespace freshet::strategy::ring
