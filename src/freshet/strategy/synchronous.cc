#include "strategy/synchronous.h"

#include <algorithm>
#include <utility>

#include "model/digest.h"
#include "strategy/observe.h"
#include "strategy/sum_in_order.h"

namespace freshet::strategy {

std::size_t Synchronous::piece() const {
  const auto workers = static_cast<std::size_t>(size());
  const std::size_t rows = options_.batch * updates();
  return options_.whole ? rows : std::max<std::size_t>(rows / workers, 1);
}

data::Batch Synchronous::Share(const data::Batch& piece) const {
  if (!options_.whole) return piece;
  return piece.Slice(fabric::ChunkBegin(piece.rows, rank(), size()),
                     fabric::ChunkBegin(piece.rows, rank() + 1, size()));
}

// What everybody must know before an update: the weight of all rows, what is asked, and one progress for all, since
// rates depend on it. And, of the update before, when each was ready to exchange.
Result<double> Synchronous::Agree(const data::Batch& mine) {
  std::vector<float> shared = {0,
                               static_cast<float>(mine.rows),
                               asked_stop_ ? 1.0f : 0.0f,
                               asked_save_ ? 1.0f : 0.0f,
                               static_cast<float>(progress_),
                               0,
                               asked_admission_ ? 1.0f : 0.0f};
  if (observes_ && !options_.whole) {
    digest_.width = mine.sparse() ? 0 : mine.width;
    digest_.ClearRows();
    model::Digest(world_.model, world_.parameters, mine, world_.optimizer, digest_);
    shared[5] = static_cast<float>(digest_.size());
  }
  const std::size_t first = shared.size();
  shared.resize(first + static_cast<std::size_t>(size()), 0.0f);
  if (unbooked_) shared[first + static_cast<std::size_t>(rank())] = static_cast<float>(unbooked_->ready);
  for (std::size_t r = 0; r < mine.rows; ++r) shared[0] += mine.weight(r);
  const auto begun = world_.clock.Now();
  TRY(world_.collectives.AllReduce(shared));
  agreed_at_ = world_.clock.Now();
  ready_.assign(shared.begin() + static_cast<std::ptrdiff_t>(first), shared.end());
  Book(ready_);
  Count(&StepTimes::wait, "wait", begun, agreed_at_);
  rows_agreed_ = shared[1];
  everyone_dry_ = shared[1] == 0;
  stop_agreed_ = shared[2] > 0;
  save_agreed_ = shared[3] > 0;
  something_to_observe_ = shared[5] > 0;
  admission_agreed_ = shared[6] > 0;
  agreed_progress_ = options_.whole ? progress_ : shared[4] / static_cast<float>(size());
  world_.optimizer.SetProgress(agreed_progress_);
  return shared[0];
}

Result<void> Synchronous::Observe(const data::Batch& piece) {
  CHECK(observes_);
  if (options_.whole) {
    world_.model.Observe(world_.parameters, piece, world_.optimizer);
  } else if (something_to_observe_) {
    const auto begun = world_.clock.Now();
    TRY(ObserveTogether(world_, digest_));
    Count(&StepTimes::exchange, "exchange rows seen", begun, world_.clock.Now());
  }
  return {};
}

Result<std::vector<double>> Synchronous::Sum(const std::vector<double>& mine) {
  return SumInOrder(world_.collectives, mine);
}

std::string Synchronous::algorithms() const {
  const fabric::Collectives& all = world_.collectives;
  return all.options().algorithm == fabric::Algorithm::kAuto ? all.table().ToText() : "";
}

void Synchronous::Count(double StepTimes::*part, const char* name, base::Clock::Duration begin,
                        base::Clock::Duration end, base::Trace::Details details) {
  times_.*part += base::Seconds(end - begin);
  AddSpan(name, begin, end, std::move(details));
}

void Synchronous::AddSpan(const char* name, base::Clock::Duration begin, base::Clock::Duration end,
                          base::Trace::Details details) {
  if (world_.trace == nullptr) return;
  details.step = step_;
  world_.trace->Add(name, base::Trace::kTraining, begin, end, std::move(details));
}

void Synchronous::CountExchange(base::Clock::Duration begin, base::Clock::Duration end, base::Trace::Details details) {
  CHECK(!unbooked_);  // there is one exchange between two agreements
  unbooked_ = {base::Seconds(end - begin), base::Seconds(begin - agreed_at_)};
  AddSpan("exchange", begin, end, std::move(details));
}

// An exchange cannot end before the last has begun it. All left the agreement at about the same moment, so that the
// times since then can be compared though clocks cannot.
void Synchronous::Book(std::span<const float> ready) {
  if (!unbooked_) return;
  const Unbooked done = *std::exchange(unbooked_, std::nullopt);
  const double slowest = *std::max_element(ready.begin(), ready.end());
  const double waited = std::clamp(slowest - done.ready, 0.0, done.took);
  times_.wait += waited;
  times_.exchange += done.took - waited;
}

Result<void> Synchronous::BookExchange() {
  std::vector<float> ready(static_cast<std::size_t>(size()), 0.0f);
  if (unbooked_) ready[static_cast<std::size_t>(rank())] = static_cast<float>(unbooked_->ready);
  TRY(world_.collectives.AllReduce(ready));
  Book(ready);
  return {};
}

StepTimes Synchronous::times() const {
  StepTimes times = times_;
  if (unbooked_) times.exchange += unbooked_->took;
  return times;
}

Result<void> Synchronous::BookExchangeOf(Synchronous& inner) {
  const StepTimes before = inner.times();
  TRY(inner.BookExchange());
  Adopt(before, inner.times());
  return {};
}

// Adds what the times of another strategy have grown by.
void Synchronous::Adopt(const StepTimes& before, const StepTimes& after) {
  for (double StepTimes::*part : {&StepTimes::compute, &StepTimes::wait, &StepTimes::exchange, &StepTimes::apply})
    times_.*part += after.*part - before.*part;
  times_.bytes_dense += after.bytes_dense - before.bytes_dense;
}

Result<double> Synchronous::InParts(Synchronous& inner, const data::Batch& whole, const data::Batch& mine,
                                    std::span<float> scores) {
  const StepTimes before = inner.times();
  const std::size_t width = world_.model.scores(), most = updates();
  // A short piece, at the end of an epoch, makes fewer updates, not smaller ones.
  const std::size_t wanted = std::max<std::size_t>((whole.rows * most + piece() - 1) / piece(), 1);
  const std::size_t parts = options_.whole ? wanted : std::min(wanted, most);  // its rows may be more than its share
  double loss = 0;
  inner.SetProgress(agreed_progress_);  // all groups have come as far
  // Workers with rows of their own may have shorter pieces than others, and take part in all of their updates.
  for (std::size_t part = 0; part < (options_.whole ? parts : most); ++part) {
    const auto cut = [&](std::size_t rows, std::size_t at) { return rows * std::min(at, parts) / parts; };
    const std::size_t first = cut(mine.rows, part), last = cut(mine.rows, part + 1);
    const auto made = TRY(inner.Step(whole.Slice(cut(whole.rows, part), cut(whole.rows, part + 1)),
                                     mine.Slice(first, last), scores.subspan(first * width, (last - first) * width)));
    CHECK(made.has_value());  // nobody asks an inner strategy to stop
    loss += *made;
  }
  Adopt(before, inner.times());
  return loss;
}

Result<std::optional<double>> Synchronous::Step(const data::Batch& piece, const data::Batch& mine,
                                                std::span<float> scores) {
  BeginStep();
  const base::Span span(world_.trace, "step", base::Trace::kTraining, {.step = step_});
  TRY(At("step.begin"));
  const double weight = TRY(Agree(mine));
  TRY(At("step.agreed"));
  if (stop_agreed_) return std::optional<double>();
  if (everyone_dry_) return std::optional<double>(0.0);
  const fabric::Fabric& fabric = world_.collectives.fabric();
  const std::uint64_t sent = fabric.bytes_sent(), shared = fabric.bytes_shared();
  if (options_.undo) KeepForUndo(piece);
  const Result<double> loss = Update(piece, mine, weight, scores);
  if (!options_.lossy || loss.ok()) computed_.reset();
  if (!loss.ok() && options_.undo && !computed_) TRY(TakeBack());
  TRY(loss);
  times_.bytes_sent += fabric.bytes_sent() - sent;
  times_.bytes_shared += fabric.bytes_shared() - shared;
  ++times_.steps;
  times_.rows += mine.rows;
  return std::optional<double>(loss.value());
}

void Synchronous::BeginStep() {
  step_ = world_.optimizer.step();
  computed_.reset();
}

void Synchronous::Agreed(const Wishes& agreed) {
  stop_agreed_ = agreed.stop;
  save_agreed_ = agreed.save;
  admission_agreed_ = agreed.admit;
  agreed_progress_ = progress_;
  world_.optimizer.SetProgress(agreed_progress_);
}

Result<void> Synchronous::TakeBack() {
  undo_.Restore();
  if (kept_.empty()) return {};
  return Load(TRY(data::TensorFile::Parse(std::exchange(kept_, {}), "what a worker remembers")));
}

void Synchronous::KeepForUndo(const data::Batch& piece) {
  kept_ = options_.codec == "none" ? "" : Remembered(*this);
  undo_.Begin();
  if (!ChangesEarly()) return;
  if (options_.whole)
    undo_.KeepRowsOf(piece);
  else
    undo_.KeepAll();  // also what others have rows of
}

std::string Remembered(const Strategy& strategy, bool shared) {
  std::vector<data::Tensor> tensors;
  shared ? strategy.SaveShared(tensors) : strategy.Save(tensors);
  if (tensors.empty()) return "";
  base::StringFile file;
  CHECK(data::WriteTensors(file, tensors, {}).ok());
  return std::move(file.text);
}

Result<bool> Synchronous::StepDry() {
  const data::Batch nothing;
  TRY(Step(nothing, nothing, {}));
  return everyone_dry_;
}

Result<void> Synchronous::EndEpoch() {
  TRY(Strategy::EndEpoch());
  return BookExchange();
}

}  // namespace freshet::strategy
