#include "strategy/ring/items.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/option.h"
#include "fabric/collectives/transfers.h"
#include "model/ratings.h"
#include "strategy/ring/partial_laps.h"
#include "strategy/sum_in_order.h"

namespace freshet::strategy::ring {

Result<StrategyPtr> Items::Make(const StrategyOptions& options, const World& world) {
  CHECK(world.model.ratings() != nullptr);
  const int members = world.collectives.fabric().size();
  if (members > static_cast<int>(Grid::kSides))
    return Error{Code::kInvalid, Str(Option("strategy"), " ring: ", members, " workers, and users are of ",
                                     Grid::kSides, " sides, of which each needs one; use at most ", Grid::kSides)};
  if (options.batch != 1)
    return Error{Code::kInvalid, Str(Option("batch"), " ", options.batch, " does not go with ", Option("strategy"),
                                     " ring and ", Option("model"), " ", world.model.config().kind,
                                     ": ratings are learned from one after another; leave it out")};
  return StrategyPtr(new Items(world));
}

Items::Items(const World& world)
    : world_(world),
      user_blocks_(world.model.ratings()->UserBlocks()),
      item_blocks_(world.model.ratings()->ItemBlocks()),
      user_rows_(Grid::kSides),
      item_rows_(Grid::kSides) {}

Walk::Sides Items::SidesOf(int member) const {
  return {fabric::ChunkBegin(Grid::kSides, member, size()), fabric::ChunkBegin(Grid::kSides, member + 1, size())};
}

Result<std::optional<double>> Items::Step(const data::Batch& piece, const data::Batch&, std::span<float>) {
  return Error{Code::kInvalid,
               Str("a step of ", piece.rows, " ratings on a ring, whose members train on all of them in passes; give ",
                   Option("strategy"), " allreduce")};
}

// New rows are at the end.
void Items::FindRows(const Grid& grid) {
  const std::uint64_t users = world_.parameters.rows(user_blocks_[0]), items = world_.parameters.rows(item_blocks_[0]);
  for (; users_found_ < users; ++users_found_) {
    const auto user = static_cast<std::uint32_t>(users_found_);
    user_rows_[grid.UserSide(user)].push_back(user);
  }
  for (; items_found_ < items; ++items_found_) {
    const auto item = static_cast<std::uint32_t>(items_found_);
    item_rows_[grid.ItemSide(item)].push_back(item);
  }
}

// Before each round but the first after all have met, when everybody has all items, those of one side move on: in a pass
// that is at least as often as there are others, so that a wish has come round when it ends.
Result<void> Items::Pass(const Grid& grid, std::uint64_t ratings, const std::function<void(std::size_t round)>& train) {
  static_assert(Grid::kSides >= 2);
  const base::Span span(world_.trace, "step", base::Trace::kTraining, {.step = world_.optimizer.step()});
  TRY(At("step.begin"));
  FindRows(grid);
  Wishes wishes = asked_;
  for (std::size_t round = 0; round < Grid::kSides; ++round) {
    if (moved_ != round) {
      TRY(HandOn(static_cast<std::uint32_t>(round), wishes));
      moved_ = (moved_ + 1) % Grid::kSides;
      CHECK(moved_ == round);
    }
    newer_ = true;
    const auto begun = world_.clock.Now();
    train(round);
    const auto ended = world_.clock.Now();
    times_.compute += base::Seconds(ended - begun);
    AddSpan("compute", begun, ended);
  }
  TRY(At("step.computed"));
  agreed_ = wishes;
  ++times_.steps;
  times_.rows += ratings;
  return {};
}

Result<void> Items::HandOn(std::uint32_t round, Wishes& wishes) {
  fabric::Fabric& fabric = world_.collectives.fabric();
  const int n = size(), me = rank();
  if (n == 1) return {};
  const Sides mine = users();
  // Those whom the last side of users has met, and those whom the one before the first has.
  const std::size_t leaves = Grid::MetBy(mine.last - 1, moved_);
  const std::size_t comes = Grid::MetBy(mine.first + Grid::kSides - 1, moved_);
  const std::uint64_t sent = fabric.bytes_sent(), shared = fabric.bytes_shared();
  const auto begun = world_.clock.Now();
  const Head head{.step = world_.optimizer.step(),
                  .round = round,
                  .side = static_cast<std::uint32_t>(leaves),
                  .stop = wishes.stop,
                  .save = wishes.save};
  Head other{};
  leaving_.clear();
  Pack(item_blocks_, item_rows_[leaves], leaving_);
  coming_.resize(Floats(item_blocks_, item_rows_[comes]));
  const auto packed = world_.clock.Now();
  auto heard = packed;
  {
    fabric::Transfers transfers(fabric, world_.collectives.NextTag(), "handing on items round the ring");
    const int next = (me + 1) % n, previous = (me + n - 1) % n;
    enum : fabric::Tag { kHead, kItems };
    const auto head_comes = TRY(transfers.Receive(previous, std::as_writable_bytes(std::span(&other, 1)), kHead));
    TRY(transfers.Receive(previous, fabric::AsBytes(coming_), kItems));
    TRY(transfers.Send(next, std::as_bytes(std::span(&head, 1)), kHead));
    TRY(transfers.Send(next, std::as_bytes(std::span(leaving_)), kItems));
    TRY(transfers.Wait(head_comes));  // until then the one before was not as far
    heard = world_.clock.Now();
    if (other.step != head.step || other.round != round || other.side != comes)
      return Error{Code::kInvalid,
                   Str("rank ", me, " is at rating ", head.step, ", round ", round, ", side ", comes,
                       " of the items, and what came to it at rating ", other.step, ", round ", other.round, ", side ",
                       other.side, ": members of a ring are given the same ratings")};
    TRY(transfers.WaitAll());
  }
  Unpack(item_blocks_, item_rows_[comes], coming_);
  wishes.stop |= other.stop != 0;
  wishes.save |= other.save != 0;
  const auto ended = world_.clock.Now();
  times_.wait += base::Seconds(heard - packed);
  times_.exchange += base::Seconds((ended - begun) - (heard - packed));
  times_.bytes_sent += fabric.bytes_sent() - sent;
  times_.bytes_shared += fabric.bytes_shared() - shared;
  times_.bytes_dense = times_.bytes_sent + times_.bytes_shared;
  times_.bytes_moved += leaving_.size() * sizeof(float);
  AddSpan("exchange", begun, ended);
  return At("step.exchanged");
}

std::size_t Items::Floats(const std::vector<std::size_t>& blocks, std::span<const std::uint32_t> rows) const {
  std::size_t width = 0;
  for (const std::size_t b : blocks)
    width += world_.parameters.width(b) * (1 + static_cast<std::size_t>(world_.optimizer.slots()));
  return width * rows.size();
}

void Items::Pack(const std::vector<std::size_t>& blocks, std::span<const std::uint32_t> rows,
                 std::vector<float>& values) const {
  const auto slots = static_cast<std::size_t>(world_.optimizer.slots());
  const optimize::Parameters& state = std::as_const(world_.optimizer).state();
  const std::size_t before = values.size();
  values.resize(before + Floats(blocks, rows));
  float* to = values.data() + before;
  for (const std::size_t b : blocks) {
    const std::size_t width = world_.parameters.width(b);
    for (const std::uint32_t row : rows) {
      to = std::copy_n(world_.parameters.Row(b, row), width, to);
      if (slots > 0) to = std::copy_n(state.Row(b, row), width * slots, to);
    }
  }
}

// Gives back what is left of the values.
std::span<const float> Items::Unpack(const std::vector<std::size_t>& blocks, std::span<const std::uint32_t> rows,
                                     std::span<const float> values) {
  const auto slots = static_cast<std::size_t>(world_.optimizer.slots());
  const float* from = values.data();
  for (const std::size_t b : blocks) {
    const std::size_t width = world_.parameters.width(b);
    for (const std::uint32_t row : rows) {
      std::copy_n(from, width, world_.parameters.Row(b, row));
      from += width;
      if (slots == 0) continue;
      std::copy_n(from, width * slots, world_.optimizer.state().Row(b, row));
      from += width * slots;
    }
  }
  return values.subspan(static_cast<std::size_t>(from - values.data()));
}

Result<void> Items::Settle() {
  if (!std::exchange(newer_, false)) return {};
  std::vector<float> mine;
  for (std::size_t side = users().first; side < users().last; ++side) {
    Pack(user_blocks_, user_rows_[side], mine);
    Pack(item_blocks_, item_rows_[Grid::MetBy(side, moved_)], mine);
  }
  PartialLaps laps(world_.collectives);
  TRY(laps.Tell(mine, [&](int member, std::span<const float> given) { return Put(member, given); }));
  moved_ = 0;
  return {};
}

Result<void> Items::Put(int member, std::span<const float> values) {
  const Sides theirs = SidesOf(member);
  std::size_t wanted = 0;
  for (std::size_t side = theirs.first; side < theirs.last; ++side)
    wanted += Floats(user_blocks_, user_rows_[side]) + Floats(item_blocks_, item_rows_[Grid::MetBy(side, moved_)]);
  if (values.size() != wanted)
    return Error{Code::kCorrupt, Str("rank ", member, " gave ", values.size(), " numbers of users and items, of ",
                                     wanted, " that it has")};
  for (std::size_t side = theirs.first; side < theirs.last; ++side) {
    values = Unpack(user_blocks_, user_rows_[side], values);
    values = Unpack(item_blocks_, item_rows_[Grid::MetBy(side, moved_)], values);
  }
  return {};
}

void Items::AddSpan(const char* name, base::Clock::Duration begin, base::Clock::Duration end) {
  if (world_.trace == nullptr) return;
  world_.trace->Add(name, base::Trace::kTraining, begin, end, {.step = world_.optimizer.step()});
}

Result<std::vector<double>> Items::Sum(const std::vector<double>& mine) { return SumInOrder(world_.collectives, mine); }

Result<StrategyPtr> MakeItems(const StrategyOptions& options, const Strategy::World& world) {
  return Items::Make(options, world);
}

}  // namespace freshet::strategy::ring
