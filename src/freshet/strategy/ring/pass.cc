#include "strategy/ring/pass.h"

#include <algorithm>
#include <utility>

namespace freshet::strategy::ring {

Pass::Pass(const Schedule& schedule, int member, std::span<Stage> stages, const Learned& learned, const Rows& rows,
           Traffic& traffic, const base::Clock& clock, Told told)
    : schedule_(schedule), learned_(learned), rows_(rows), traffic_(traffic), clock_(clock), told_(std::move(told)) {
  const auto members = static_cast<int>(schedule.actions.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    Lane lane{.stage = &stages[i], .number = static_cast<int>(i) * members + member};
    const auto number = static_cast<std::size_t>(lane.number);
    lane.depth = schedule.depth[number];
    lane.depth_before = schedule.depth[number == 0 ? 0 : number - 1];
    for (std::vector<Handles>* handles : {&lane.arriving, &lane.sent_on, &lane.coming_back})
      handles->resize(lane.depth);
    lane.sent_back.resize(lane.depth_before);
    lanes_.push_back(std::move(lane));
  }
}

fabric::Tag Pass::PlaceOf(int edge, std::size_t tensor) const {
  CHECK(edge > 0 && edge <= kMostStages && tensor < kMostTensors);
  return kFirstEdge + static_cast<fabric::Tag>(edge) * kMostTensors + tensor;
}

Result<void> Pass::Begin() {
  const std::size_t most_rows = (rows_.piece.rows + rows_.micros - 1) / rows_.micros;
  for (Lane& lane : lanes_) {
    lane.stage->MakeRoom(lane.depth, lane.depth_before, most_rows);
    for (std::size_t micro = 0; micro < lane.depth; ++micro) TRY(Open(lane, micro));
  }
  return {};
}

Result<void> Pass::Do(const Action& action) {
  Lane& lane = lanes_[static_cast<std::size_t>(action.stage) / schedule_.actions.size()];
  return action.backward ? Backward(lane, action) : Forward(lane, action);
}

// A micro-batch may arrive from here on.
Result<void> Pass::Open(Lane& lane, std::size_t micro) {
  TRY(lane.stage->Begin(micro, FirstRow(micro + 1) - FirstRow(micro)));
  for (std::size_t i = 0; i < lane.stage->enters().size(); ++i)
    lane.arriving[micro % lane.depth].push_back(
        TRY(traffic_.FromBefore(fabric::AsBytes(lane.stage->Entering(micro, i)), PlaceOf(lane.number, i))));
  return {};
}

// For what must have arrived, and what must have left before its memory is used again.
Result<void> Pass::WaitFor(Handles& arriving, Handles& left, const Action& action) {
  if (arriving.empty() && left.empty()) return {};
  const auto begun = clock_.Now();
  TRY(traffic_.Wait(arriving));
  TRY(traffic_.Wait(left));
  told_("wait", action, begun);
  return {};
}

Result<void> Pass::Forward(Lane& lane, const Action& action) {
  const std::size_t micro = action.micro, place = micro % lane.depth;
  TRY(WaitFor(lane.arriving[place], lane.sent_back[micro % lane.depth_before], action));
  const auto begun = clock_.Now();
  lane.stage->Forward(micro, learned_.parameters, InputOf(micro), {rows_.seed, rows_.step, RowsOf(micro).samples});
  MakeDeltas(lane, micro, true);
  told_("forward", action, begun);
  const auto& leaves = lane.stage->leaves();
  for (std::size_t i = 0; i < leaves.size(); ++i)
    lane.sent_on[place].push_back(
        TRY(traffic_.SendOn(fabric::AsBytes(lane.stage->Leaving(micro, i)), PlaceOf(lane.number + 1, i))));
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].learns)
      lane.coming_back[place].push_back(
          TRY(traffic_.FromNext(fabric::AsBytes(lane.stage->LeavingGradient(micro, i)), PlaceOf(lane.number + 1, i))));
  return {};
}

void Pass::MakeDeltas(Lane& lane, std::size_t micro, bool tell) {
  const data::Batch rows = RowsOf(micro);
  for (const Stage::HeadOutput& output : lane.stage->Heads(micro)) {
    std::span<float> deltas = output.deltas;
    if (deltas.empty()) {  // nothing learns by this head
      unwanted_.resize(output.made.size());
      deltas = unwanted_;
    }
    const double loss = learned_.head_loss.Of(output.head, rows, InputOf(micro), output.made, deltas);
    if (output.head != 0 || !tell) continue;
    learned_.tidings.loss += loss;
    const std::size_t width = learned_.head_loss.scores();
    learned_.head_loss.CopyScores(
        output.made, std::span(learned_.tidings.scores).subspan(FirstRow(micro) * width, rows.rows * width));
  }
}

Result<void> Pass::Backward(Lane& lane, const Action& action) {
  const std::size_t micro = action.micro, place = micro % lane.depth;
  TRY(WaitFor(lane.coming_back[place], lane.sent_on[place], action));
  const auto begun = clock_.Now();
  const model::network::Draw draw{rows_.seed, rows_.step, RowsOf(micro).samples};
  if (lane.stage->Again(micro, learned_.parameters, InputOf(micro), draw)) MakeDeltas(lane, micro, false);
  lane.stage->Backward(micro, learned_.parameters, learned_.gradient);
  told_("backward", action, begun);
  const auto& enters = lane.stage->enters();
  for (std::size_t i = 0; i < enters.size(); ++i)
    if (enters[i].learns)
      lane.sent_back[micro % lane.depth_before].push_back(
          TRY(traffic_.SendBack(fabric::AsBytes(lane.stage->EnteringGradient(micro, i)), PlaceOf(lane.number, i))));
  if (micro + lane.depth < rows_.micros) TRY(Open(lane, micro + lane.depth));
  return {};
}

}  // namespace freshet::strategy::ring
