#include "strategy/ring/no_flush.h"

#include <algorithm>
#include <utility>

namespace freshet::strategy::ring {

struct NoFlush::Flight {
  Flight(const World& world, const Schedule& schedule, const Update& update, fabric::Tag tag, Tidings& tidings,
         const optimize::Parameters& parameters, std::uint64_t step, std::size_t before)
      : piece(update.piece),
        weight(update.weight),
        progress(update.progress),
        lap{.stop = update.stop ? 1U : 0U, .save = update.save ? 1U : 0U, .answered = true},
        laps(world.fabric.rank(), world.fabric.size()),
        traffic(world.fabric, tag, world.packing),
        micros(update.micros) {
    // What is looked at on the way back stays.
    if (piece.samples != nullptr) samples.assign(piece.samples, piece.samples + piece.rows);
    if (piece.samples != nullptr) piece.samples = samples.data();
    if (update.input != nullptr) input.assign(update.input, update.input + piece.rows * update.width);
    const Pass::Rows rows{.piece = piece,
                          .input = update.input == nullptr ? nullptr : input.data(),
                          .width = update.width,
                          .micros = micros,
                          .seed = update.seed,
                          .step = step,
                          .alone = false,
                          .before = before};
    pass.emplace(schedule, world.fabric.rank(), world.stages,
                 Pass::Learned{parameters, world.own.gradient(), world.head_loss, tidings}, rows, traffic, world.clock,
                 world.told);
  }

  data::Batch piece;
  std::vector<std::uint64_t> samples;
  std::vector<float> input;
  double weight, progress;
  Tidings lap;
  Laps laps;
  Traffic traffic;
  std::optional<Pass> pass;
  std::size_t micros, back = 0;
  std::size_t stale = 0;
};

NoFlush::NoFlush(const World& world, Apply apply)
    : world_(world),
      apply_(std::move(apply)),
      schedule_(MakeSchedule(Order::kStash, world.fabric.size(), 1, static_cast<std::size_t>(world.fabric.size()))),
      ahead_(static_cast<std::size_t>(world.fabric.size() - world.fabric.rank() - 1)) {}

NoFlush::~NoFlush() {
  if (!flights_.empty()) world_.fabric.Abort({Code::kStopped, "a member left with micro-batches under way"});
}

Result<void> NoFlush::Step(const Update& update, fabric::Tag tag, Tidings& tidings) {
  const auto rank = static_cast<std::size_t>(world_.fabric.rank());
  if (flights_.empty() && empty_) {
    step_ = world_.own.optimizer().step();
    world_.stages[0].MakeRoom(schedule_.depth[rank], schedule_.depth[rank == 0 ? 0 : rank - 1], world_.micro_rows);
  }
  // Of the update before: as long as that is under way here, what there is; else what there was before it.
  const bool newest = empty_ || !flights_.empty();
  flights_.push_back(std::make_unique<Flight>(world_, schedule_, update, tag, tidings,
                                              newest ? world_.own.parameters() : world_.own.kept(), step_++,
                                              numbered_));
  Flight& flight = *flights_.back();
  flight.stale = empty_ ? 0 : 1;
  empty_ = knows_last_ = false;
  numbered_ += flight.micros;
  while (opened_ < schedule_.depth[rank] && TRY(flight.pass->LetArrive())) ++opened_;
  const std::size_t micros = flight.micros;  // with its last one the flight may end, where none is ahead
  for (std::size_t micro = 0; micro < micros; ++micro) {
    TRY(flight.pass->Do({false, world_.fabric.rank(), micro}));
    ++under_way_;
    if (micro + 1 == micros) TRY(flight.laps.Up(flight.traffic, flight.lap, 0));
    if (under_way_ > ahead_) TRY(BackOne());
  }
  while (flights_.size() > 1) TRY(BackOne());
  return {};
}

Result<void> NoFlush::BackOne() {
  Flight& flight = *flights_.front();
  TRY(flight.pass->Do({true, world_.fabric.rank(), flight.back++}));
  --under_way_;
  if (!TRY(flights_.back()->pass->LetArrive())) --opened_;
  if (flight.back < flight.micros) return {};
  return Finish(flight);
}

// Where the next update is under way already, it has seen the weights that are now those before the last update.
Result<void> NoFlush::Finish(Flight& flight) {
  TRY(flight.laps.Down(flight.traffic, flight.lap, 0));
  TRY(flight.traffic.WaitAll());
  TRY(world_.own.Keep());
  for (std::size_t i = 1; i < flights_.size(); ++i) flights_[i]->pass->See(world_.own.kept());
  TRY(apply_(flight.weight, flight.progress));
  done_.push_back(
      {flight.lap.stop != 0, flight.lap.save != 0, flight.stale, flight.traffic.sent_on(), flight.traffic.sent_back()});
  flights_.pop_front();
  knows_last_ = flights_.empty();
  return {};
}

Result<void> NoFlush::Drain() {
  while (!flights_.empty()) TRY(BackOne());
  empty_ = true;
  knows_last_ = false;  // all do
  return {};
}

std::vector<NoFlush::Done> NoFlush::TakeDone() {
  std::vector<Done> taken(done_.begin(), done_.end() - (knows_last_ ? 1 : 0));
  done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(taken.size()));
  return taken;
}

}  // namespace freshet::strategy::ring
