#include "strategy/ring/pass.h"

#include <algorithm>
#include <utility>

namespace freshet::strategy::ring {

Pass::Pass(const Schedule& schedule, int member, std::span<Stage> stages, const Learned& learned, const Rows& rows,
           Traffic& traffic, const base::Clock& clock, Told told)
    : schedule_(schedule),
      learned_(learned),
      parameters_(&learned.parameters),
      rows_(rows),
      traffic_(traffic),
      clock_(clock),
      told_(std::move(told)),
      head_deltas_(learned.head_loss) {
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
    for (std::size_t place = 0; place < lane.depth; ++place) TRY(Open(lane));
  }
  return {};
}

Result<bool> Pass::LetArrive() {
  CHECK(lanes_.size() == 1);
  if (lanes_[0].opened == rows_.micros) return false;
  TRY(Open(lanes_[0]));
  return true;
}

Result<void> Pass::Do(const Action& action) {
  Lane& lane = lanes_[static_cast<std::size_t>(action.stage) / schedule_.actions.size()];
  return action.backward ? Backward(lane, action) : Forward(lane, action);
}

// The next micro-batch may arrive from here on.
Result<void> Pass::Open(Lane& lane) {
  if (lane.opened == rows_.micros) return {};
  const std::size_t micro = lane.opened++, number = rows_.before + micro;
  TRY(lane.stage->Begin(number, FirstRow(micro + 1) - FirstRow(micro)));
  for (std::size_t i = 0; i < lane.stage->enters().size(); ++i)
    lane.arriving[number % lane.depth].push_back(
        TRY(traffic_.FromBefore(lane.stage->Entering(number, i), PlaceOf(lane.number, i))));
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
  const std::size_t micro = action.micro, number = rows_.before + micro, place = number % lane.depth;
  TRY(WaitFor(lane.arriving[place], lane.sent_back[number % lane.depth_before], action));
  const auto begun = clock_.Now();
  lane.stage->Forward(number, *parameters_, InputOf(micro), {rows_.seed, rows_.step, RowsOf(micro).samples});
  MakeDeltas(lane, micro, true);
  told_("forward", action, begun);
  const auto& leaves = lane.stage->leaves();
  for (std::size_t i = 0; i < leaves.size(); ++i)
    lane.sent_on[place].push_back(TRY(traffic_.SendOn(lane.stage->Leaving(number, i), PlaceOf(lane.number + 1, i))));
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].learns)
      lane.coming_back[place].push_back(
          TRY(traffic_.FromNext(lane.stage->LeavingGradient(number, i), PlaceOf(lane.number + 1, i))));
  return {};
}

void Pass::MakeDeltas(Lane& lane, std::size_t micro, bool tell) {
  const data::Batch rows = RowsOf(micro);
  const std::size_t width = learned_.head_loss.scores();
  std::span<float> scores;
  if (tell) scores = std::span(learned_.tidings.scores).subspan(FirstRow(micro) * width, rows.rows * width);
  const double loss = head_deltas_.Make(*lane.stage, rows_.before + micro, rows, InputOf(micro), scores);
  if (tell) learned_.tidings.loss += loss;
}

Result<void> Pass::Backward(Lane& lane, const Action& action) {
  const std::size_t micro = action.micro, number = rows_.before + micro, place = number % lane.depth;
  TRY(WaitFor(lane.coming_back[place], lane.sent_on[place], action));
  const auto begun = clock_.Now();
  const model::network::Draw draw{rows_.seed, rows_.step, RowsOf(micro).samples};
  if (lane.stage->Again(number, *parameters_, InputOf(micro), draw)) MakeDeltas(lane, micro, false);
  lane.stage->Backward(number, *parameters_, learned_.gradient);
  told_("backward", action, begun);
  const auto& enters = lane.stage->enters();
  for (std::size_t i = 0; i < enters.size(); ++i)
    if (enters[i].learns)
      lane.sent_back[number % lane.depth_before].push_back(
          TRY(traffic_.SendBack(lane.stage->EnteringGradient(number, i), PlaceOf(lane.number, i))));
  return rows_.alone ? Open(lane) : Result<void>();
}

}  // namespace freshet::strategy::ring
