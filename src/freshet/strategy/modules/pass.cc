#include "strategy/modules/pass.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace freshet::strategy::modules {
namespace {

std::size_t IndexOf(const std::vector<std::size_t>& among, std::size_t one) {
  const auto found = std::find(among.begin(), among.end(), one);
  CHECK(found != among.end());
  return static_cast<std::size_t>(found - among.begin());
}

}  // namespace

Pass::Pass(const World& world, const Rows& rows, fabric::Transfers& transfers, Told told)
    : world_(world), rows_(rows), transfers_(transfers), told_(std::move(told)), head_deltas_(world.head_loss) {
  for (std::size_t m = 0; m < world_.assembly.modules.size(); ++m) {
    if (world_.assembly.modules[m].member != world_.member) continue;
    Lane lane{.module = m, .stage = &world_.stages[lanes_.size()], .depth = world_.schedule.depth[m]};
    for (std::vector<Handles>* handles : {&lane.arriving, &lane.sent_on, &lane.coming_back, &lane.sent_back})
      handles->resize(lane.depth);
    lane.more.resize(lane.depth);
    lanes_.push_back(std::move(lane));
  }
}

Pass::Lane* Pass::LaneOf(std::size_t module) {
  for (Lane& lane : lanes_)
    if (lane.module == module) return &lane;
  return nullptr;
}

fabric::Tag Pass::Part(std::size_t link, std::size_t reader, bool back) const {
  return static_cast<fabric::Tag>(world_.assembly.links[link].first_edge + reader) * 2 + (back ? 1 : 0);
}

std::span<float> Pass::GradientPlace(Lane& lane, std::size_t leaving, std::size_t reader, std::size_t micro) {
  const std::span<float> first = lane.stage->LeavingGradient(micro, leaving);
  if (reader == 0) return first;
  auto& of_place = lane.more[micro % lane.depth];
  of_place.resize(ModuleOf(lane).leaves.size());
  const Link& link = world_.assembly.links[ModuleOf(lane).leaves[leaving]];
  of_place[leaving].resize(link.to.size() - 1);
  std::vector<float>& place = of_place[leaving][reader - 1];
  if (place.size() < first.size()) place.resize(first.size());
  return std::span(place).first(first.size());
}

Result<void> Pass::Run(double& loss, std::span<float> scores) {
  loss_ = &loss;
  scores_ = scores;
  const std::size_t most_rows = (rows_.piece.rows + rows_.micros - 1) / rows_.micros;
  for (Lane& lane : lanes_) {
    lane.stage->MakeRoom(lane.depth, lane.depth, most_rows);
    for (std::size_t place = 0; place < lane.depth; ++place) TRY(Open(lane));
  }
  for (const ring::Action& action : world_.schedule.actions[static_cast<std::size_t>(world_.member)]) {
    Lane* const lane = LaneOf(static_cast<std::size_t>(action.stage));
    CHECK(lane != nullptr);
    TRY(action.backward ? Backward(*lane, action) : Forward(*lane, action));
  }
  return {};
}

// The next micro-batch may arrive from here on.
Result<void> Pass::Open(Lane& lane) {
  if (lane.opened == rows_.micros) return {};
  const std::size_t micro = lane.opened++;
  TRY(lane.stage->Begin(micro, FirstRow(micro + 1) - FirstRow(micro)));
  const std::vector<std::size_t>& enters = ModuleOf(lane).enters;
  for (std::size_t i = 0; i < enters.size(); ++i) {
    const Link& link = world_.assembly.links[enters[i]];
    const int maker = world_.assembly.modules[link.from].member;
    if (maker == world_.member) continue;
    const fabric::Tag part = Part(enters[i], IndexOf(link.to, lane.module), false);
    lane.arriving[micro % lane.depth].push_back(
        TRY(transfers_.Receive(maker, std::as_writable_bytes(lane.stage->Entering(micro, i)), part)));
  }
  return {};
}

Result<void> Pass::WaitFor(const std::vector<Handles*>& what, const ring::Action& action) {
  if (std::all_of(what.begin(), what.end(), [](const Handles* each) { return each->empty(); })) return {};
  const auto begun = world_.clock.Now();
  for (Handles* handles : what) {
    for (const auto& handle : *handles) TRY(transfers_.Wait(handle));
    handles->clear();
  }
  told_("wait", action, begun);
  return {};
}

Result<void> Pass::Forward(Lane& lane, const ring::Action& action) {
  const std::size_t micro = action.micro, place = micro % lane.depth;
  const Module& module = ModuleOf(lane);
  TRY(WaitFor({&lane.arriving[place]}, action));
  const auto begun = world_.clock.Now();
  for (std::size_t i = 0; i < module.enters.size(); ++i) {
    const Link& link = world_.assembly.links[module.enters[i]];
    Lane* const maker = LaneOf(link.from);
    if (maker == nullptr) continue;
    const std::size_t leaving = IndexOf(ModuleOf(*maker).leaves, module.enters[i]);
    std::ranges::copy(maker->stage->Leaving(micro, leaving), lane.stage->Entering(micro, i).begin());
  }
  const data::Batch rows = RowsOf(micro);
  lane.stage->Forward(micro, world_.parameters, InputOf(micro), {rows_.seed, rows_.step, rows.samples});
  const std::size_t width = world_.head_loss.scores();
  *loss_ += head_deltas_.Make(*lane.stage, micro, rows, InputOf(micro),
                              scores_.subspan(FirstRow(micro) * width, rows.rows * width));
  told_("forward", action, begun);
  for (std::size_t i = 0; i < module.leaves.size(); ++i) {
    const Link& link = world_.assembly.links[module.leaves[i]];
    for (std::size_t reader = 0; reader < link.to.size(); ++reader) {
      const int member = world_.assembly.modules[link.to[reader]].member;
      if (member == world_.member) continue;
      const std::span<const std::byte> bytes = std::as_bytes(lane.stage->Leaving(micro, i));
      lane.sent_on[place].push_back(TRY(transfers_.Send(member, bytes, Part(module.leaves[i], reader, false))));
      sent_on_ += bytes.size();
      if (!link.tensor.learns) continue;
      lane.coming_back[place].push_back(
          TRY(transfers_.Receive(member, std::as_writable_bytes(GradientPlace(lane, i, reader, micro)),
                                 Part(module.leaves[i], reader, true))));
    }
  }
  return {};
}

Result<void> Pass::Backward(Lane& lane, const ring::Action& action) {
  const std::size_t micro = action.micro, place = micro % lane.depth;
  const Module& module = ModuleOf(lane);
  TRY(WaitFor({&lane.coming_back[place], &lane.sent_on[place], &lane.sent_back[place]}, action));
  const auto begun = world_.clock.Now();
  const model::network::Draw draw{rows_.seed, rows_.step, RowsOf(micro).samples};
  if (lane.stage->Again(micro, world_.parameters, InputOf(micro), draw))
    head_deltas_.Make(*lane.stage, micro, RowsOf(micro), InputOf(micro), {});
  for (std::size_t i = 0; i < module.leaves.size(); ++i) {
    const Link& link = world_.assembly.links[module.leaves[i]];
    if (!link.tensor.learns) continue;
    const std::span<float> sum = lane.stage->LeavingGradient(micro, i);
    for (std::size_t reader = 1; reader < link.to.size(); ++reader) {
      const std::span<const float> more = GradientPlace(lane, i, reader, micro);
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += more[k];
    }
  }
  lane.stage->Backward(micro, world_.parameters, world_.gradient);
  told_("backward", action, begun);
  for (std::size_t i = 0; i < module.enters.size(); ++i) {
    const Link& link = world_.assembly.links[module.enters[i]];
    if (!link.tensor.learns) continue;
    const std::size_t reader = IndexOf(link.to, lane.module);
    const std::span<const float> gradient = lane.stage->EnteringGradient(micro, i);
    if (Lane* const maker = LaneOf(link.from); maker != nullptr) {
      const std::size_t leaving = IndexOf(ModuleOf(*maker).leaves, module.enters[i]);
      std::ranges::copy(gradient, GradientPlace(*maker, leaving, reader, micro).begin());
      continue;
    }
    const int member = world_.assembly.modules[link.from].member;
    lane.sent_back[place].push_back(
        TRY(transfers_.Send(member, std::as_bytes(gradient), Part(module.enters[i], reader, true))));
    sent_back_ += gradient.size_bytes();
  }
  return Open(lane);
}

}  // namespace freshet::strategy::modules
