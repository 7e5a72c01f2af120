#include "strategy/ring/layer_moves.h"

#include <algorithm>

namespace freshet::strategy::ring {

void LayerMoves::BeginStep(const Plan& plan, std::vector<Stage>& stages) {
  rounds_.BeginStep();
  if (rounds_.starts()) {
    compute_ = apply_ = 0;
    steps_ = 0;
    for (Stage& stage : stages) stage.Measure(&clock_);
  }
  if (rounds_.ends() && steps_ > 0) {
    MeasureLayers(plan);
    for (Stage& stage : stages) stage.Measure(nullptr);
  }
}

void LayerMoves::Computed(base::Clock::Duration took) {
  if (rounds_.measures()) compute_ += base::Seconds(took);
}

void LayerMoves::Applied(base::Clock::Duration took) {
  if (!rounds_.measures()) return;
  apply_ += base::Seconds(took);
  ++steps_;
}

// The update takes as long as its parameters are many.
void LayerMoves::MeasureLayers(const Plan& plan) {
  const auto steps = static_cast<double>(steps_);
  busy_ = (compute_ + apply_) / steps;
  of_layer_.assign(plan.facts.size(), 0);
  double all = 0;
  for (const Stage& stage : plan.stages) {
    stage.AddSeconds(of_layer_);
    for (int layer = stage.layers().first; layer < stage.layers().last; ++layer)
      all += static_cast<double>(plan.facts[static_cast<std::size_t>(layer)].parameters());
  }
  for (std::size_t layer = 0; layer < of_layer_.size(); ++layer)
    of_layer_[layer] =
        (of_layer_[layer] + apply_ * static_cast<double>(plan.facts[layer].parameters()) / std::max(all, 1.0)) / steps;
}

// The stage here that an edge to or from a neighbour belongs to, among those that are held.
std::size_t LayerMoves::OwnStage(const Edge& edge, int partner) const {
  const std::size_t stage = partner > 0 ? edge.number - 1 : edge.number;
  return stage / static_cast<std::size_t>(size_);
}

// What changes hands when an edge moves there.
LayerRange LayerMoves::Moved(const Plan& plan, int partner, std::size_t stage, const Edge& edge) const {
  const int from = partner > 0 ? plan.held[stage].last : plan.held[stage].first, to = plan.places.LayerAt(edge.place);
  return {std::min(from, to), std::max(from, to)};
}

LayerMoves::Edge LayerMoves::Choose(const Plan& plan, int to, double theirs) const {
  std::vector<Offer> offers;
  std::vector<Edge> edges;
  for (std::size_t s = 0; s < plan.held.size(); ++s) {
    const auto stage = s * static_cast<std::size_t>(size_) + static_cast<std::size_t>(rank_);
    const std::size_t number = to > 0 ? stage + 1 : stage;
    if (number == 0 || number == plan.held.size() * static_cast<std::size_t>(size_)) continue;  // no edge
    const std::size_t first = plan.places.PlaceOf(plan.held[s].first), last = plan.places.PlaceOf(plan.held[s].last);
    double seconds = 0;
    for (std::size_t k = 1; k < last - first; ++k) {  // one layer stays
      const std::size_t place = to > 0 ? last - k : first + k, moved = to > 0 ? place : place - 1;
      for (int layer = plan.places.LayerAt(moved); layer < plan.places.LayerAt(moved + 1); ++layer)
        seconds += of_layer_[static_cast<std::size_t>(layer)];
      if (!CanCross(plan, place)) continue;
      offers.push_back({seconds, plan.places.floats(place)});
      edges.push_back({static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(place)});
    }
  }
  const std::size_t best = BestOffer(offers, busy_, theirs);
  return best == offers.size() ? Edge() : edges[best];
}

// That a neighbour gives what it can have.
Result<void> LayerMoves::Check(const Plan& plan, int from, const Edge& edge) const {
  const auto members = static_cast<std::uint32_t>(size_);
  const std::uint32_t stages = members * static_cast<std::uint32_t>(plan.held.size());
  const auto mine = static_cast<std::uint32_t>(rank_);
  const bool ours = edge.number > 0 && edge.number < stages &&
                    (from > 0 ? (edge.number - 1) % members == mine : edge.number % members == mine);
  if (ours && edge.place > 0 && edge.place < plan.places.count()) {
    const LayerRange& held = plan.held[OwnStage(edge, from)];
    const int cut = plan.places.LayerAt(edge.place);
    if (from > 0 ? cut > held.last : cut < held.first) return {};
  }
  return Error{Code::kCorrupt, Str("rank ", rank_ + from, " gave layers that it cannot have (place ", edge.place,
                                   " of edge ", edge.number, ")")};
}

Result<std::uint64_t> LayerMoves::Meet(fabric::Fabric& fabric, fabric::Tag tag, const Laps& laps, Plan& plan,
                                       OwnLayers& own) {
  const int partner = rounds_.partner();
  if (partner == 0) return 0;
  const double theirs = partner > 0 ? laps.busy_next() : laps.busy_before();
  if (!(busy_ > 0) || !(theirs > 0) || !Unequal(busy_, theirs)) return 0;
  fabric::Transfers transfers(fabric, tag, "moving layers to a neighbour");
  const int with = rank_ + partner;
  const bool gives = busy_ > theirs;
  Edge edge = gives ? Choose(plan, partner, theirs) : Edge();
  const auto message = std::as_writable_bytes(std::span(&edge, 1));
  if (gives)
    TRY(transfers.Send(with, message));
  else
    TRY(transfers.Wait(TRY(transfers.Receive(with, message))));
  if (edge.number == 0) return TRY(transfers.WaitAll()), 0;
  if (!gives) TRY(Check(plan, partner, edge));
  const std::size_t stage = OwnStage(edge, partner);
  const LayerRange moved = Moved(plan, partner, stage, edge);
  std::vector<LayerRange> held = plan.held;
  (partner > 0 ? held[stage].last : held[stage].first) = plan.places.LayerAt(edge.place);
  std::uint64_t bytes = 0;
  if (gives) {
    for (const std::span<float> values : own.Of(moved)) {
      bytes += values.size_bytes();
      TRY(transfers.Send(with, fabric::AsBytes(values)));
    }
    TRY(transfers.WaitAll());
    TRY(own.Hold(held));
  } else {
    TRY(own.Hold(held));
    for (const std::span<float> values : own.Of(moved))
      TRY(transfers.Wait(TRY(transfers.Receive(with, fabric::AsBytes(values)))));
    TRY(transfers.WaitAll());
  }
  plan.held = std::move(held);
  return bytes;
}

}  // namespace freshet::strategy::ring
