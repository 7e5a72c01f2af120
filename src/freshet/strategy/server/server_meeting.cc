// When all meet: everybody gets everything, and what is hot moves.

#include "strategy/server/server.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "strategy/gather_numbers.h"

namespace freshet::strategy::server {

Result<void> Server::Settle() {
  Agreement agreed = TRY(Agree());
  if (!agreed.anybody) return {};
  const auto begun = world_.clock.Now();
  TRY(Open());
  TRY(CatchUp());
  TRY(Rest());
  TRY(Barrier());
  if (size() > 1) TRY(letters().CloseTogether());
  CheckLedger(agreed.passed);
  agreed = TRY(Agree());  // on what was pushed at the end
  TRY(ShareAll(agreed));
  // What a codec loses depends on what travels together: then all stays where it is, so that a run that is stopped goes on
  // to the same model.
  if (!estate_.keeps && estate_.codec == nullptr) TRY(MoveHot());
  settled_clock_ = agreed.clock;
  if (!estate_.keeps) {
    estate_.MeetAt(agreed.clock);
    began_ = false;
    away_ = dry();  // until the epoch ends
  }
  const base::Lock lock(mutex_);
  times_.stale.fill(0);
  for (auto& [shard, holding] : estate_.holdings) {
    if (holding.shard == nullptr) continue;
    if (!estate_.keeps) holding.shard->Return(agreed.clock, agreed.dry);
    if (!Answers(shard)) continue;
    for (std::size_t i = 0; i < times_.stale.size(); ++i) times_.stale[i] += holding.shard->staleness()[i];
  }
  times_.exchange += base::Seconds(world_.clock.Now() - begun);
  return {};
}

// Where losses are survived all stand at the same row now: every shard has every worker's update of every piece before it,
// each once, since a shard takes a worker's updates in order and none twice.
void Server::CheckLedger(std::uint64_t passed) const {
  if (!estate_.keeps) return;
  CHECK(!has_rows() || estate_.clock() == passed);
  const base::Lock lock(mutex_);
  for (const auto& [shard, holding] : estate_.holdings)
    for (const std::uint64_t applied : holding.shard->Applied()) CHECK(applied >= passed || !Answers(shard));
}

Result<Server::Agreement> Server::Agree() {
  // A worker that reads ahead makes steps of its own, which are not those of the model.
  const std::uint64_t step = began_ ? step_ : world_.optimizer.step();
  std::vector<std::uint64_t> mine = {began_ ? 1u : 0u, furthest(), step, dry() ? 1u : 0u, estate_.clock()};
  const std::size_t first = mine.size();
  {
    const base::Lock lock(mutex_);
    for (std::size_t b = 0; b < world_.parameters.blocks(); ++b) mine.push_back(world_.parameters.rows(b));
    for (const auto& [shard, holding] : estate_.holdings) {
      if (holding.shard == nullptr) continue;
      mine[2] = std::max(mine[2], holding.shard->optimizer().step());
      for (std::size_t b = 0; b < world_.parameters.blocks(); ++b)
        mine[first + b] = std::max(mine[first + b], holding.shard->rows(b));
    }
  }
  Agreement agreed;
  agreed.rows.resize(world_.parameters.blocks(), 0);
  for (const auto& bytes : TRY(world_.collectives.Gather(std::as_bytes(std::span<const std::uint64_t>(mine))))) {
    std::vector<std::uint64_t> told(mine.size());
    if (bytes.size() != told.size() * sizeof told[0]) return Reader::Damaged();
    std::memcpy(told.data(), bytes.data(), bytes.size());
    agreed.anybody = agreed.anybody || told[0] != 0;
    agreed.clock = std::max(agreed.clock, told[1]);
    agreed.step = std::max(agreed.step, told[2]);
    agreed.dry.push_back(told[3] != 0);
    agreed.passed = std::max(agreed.passed, told[4]);
    for (std::size_t b = 0; b < agreed.rows.size(); ++b) agreed.rows[b] = std::max(agreed.rows[b], told[first + b]);
  }
  return agreed;
}

// Everybody gets what all servers have: of each row the sum of what its server has and of nothing.
Result<void> Server::ShareAll(const Agreement& agreed) {
  TRY(world_.model.MakeRoom(world_.parameters, agreed.rows));
  TRY(world_.optimizer.Follow(world_.parameters));
  {
    const base::Lock lock(mutex_);
    for (std::size_t b = 0; b < world_.parameters.blocks(); ++b)
      for (const bool state : {false, true}) KeepOwn(b, state);
  }
  for (std::size_t b = 0; b < world_.parameters.blocks(); ++b)
    for (optimize::Parameters* each : {&world_.parameters, &world_.optimizer.state()}) {
      if (each->width(b) == 0) continue;
      const std::span<float> all = each->Values(b);
      const std::size_t most = estate_.near == nullptr ? all.size() : kPiece;  // what a sum may take beside it
      for (std::size_t first = 0; first < all.size(); first += most)
        TRY(world_.collectives.AllReduce(all.subspan(first, std::min(most, all.size() - first))));
    }
  world_.optimizer.SetStep(agreed.step);
  return {};
}

Result<void> Server::MoveHot() {
  std::vector<std::uint64_t> mine;
  {
    const base::Lock lock(mutex_);
    const auto group_of = [this](std::size_t b) { return estate_.placement.GroupOf(b); };
    const auto rows_of = [this](std::size_t b) { return world_.parameters.rows(b); };
    for (const auto& [shard, holding] : estate_.holdings) {
      const server::Load load =
          holding.shard == nullptr ? server::Load() : holding.shard->heat().TakeLoad(group_of, rows_of);
      mine.push_back(load.bytes);
      for (const auto& each : load.busiest) mine.insert(mine.end(), {each.group, each.range, each.bytes, each.rows});
    }
  }
  std::vector<server::Load> loads;
  for (const auto& told : TRY(GatherNumbers(world_.collectives, mine))) {
    if (told.empty()) continue;  // it serves nobody
    if (told.size() % 4 != 1) return Reader::Damaged();
    server::Load& load = loads.emplace_back(server::Load{.bytes = told[0], .busiest = {}});
    for (std::size_t i = 1; i < told.size(); i += 4)
      load.busiest.push_back({told[i], told[i + 1], told[i + 2], told[i + 3]});
  }
  const std::vector<Move> moves = Balance(std::move(loads));
  if (moves.empty()) return {};
  moved_ += moves.size();
  const base::Lock lock(mutex_);
  for (const Move& move : moves) estate_.placement.Move(move.group, move.range, move.to);
  estate_.copy.Moved();
  for (auto& [shard, holding] : estate_.holdings)
    if (holding.shard != nullptr)
      TRY(holding.shard->Follow(world_.parameters, world_.optimizer.state(), estate_.placement));
  return {};
}

void Server::KeepOwn(std::size_t b, bool state) {
  optimize::Parameters& all = state ? world_.optimizer.state() : world_.parameters;
  const std::uint64_t width = all.width(b);
  for (std::uint64_t first = 0; first < all.rows(b);) {
    const Placement::Stretch stretch = estate_.placement.StretchFrom(b, first, all.rows(b));
    float* const values = all.Row(b, first);
    const auto held = Answers(stretch.server) ? estate_.holdings.find(stretch.server) : estate_.holdings.end();
    if (held != estate_.holdings.end()) {
      // Where nobody has pushed anything, there is no shard yet, and all have the same.
      if (const Shard* const shard = held->second.shard.get(); shard != nullptr) {
        shard->CopyRows(state ? Shard::What::kState : Shard::What::kParameters, b, first, stretch.last, values);
      }
    } else {
      std::fill_n(values, (stretch.last - first) * width, 0.0f);
    }
    first = stretch.last;
  }
}

}  // namespace freshet::strategy::server
