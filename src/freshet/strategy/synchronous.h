#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/rows.h"
#include "strategy/strategy.h"
#include "strategy/undo.h"

namespace freshet::strategy {

// What strategies share whose workers take every step together: they call the same things in the same order, and agree
// at the beginning of each on what everybody must know. Derived classes say what an update is.
class Synchronous : public Strategy {
 public:
  // By the name of its kind.
  static Result<std::unique_ptr<Synchronous>> Make(const StrategyOptions& options, const World& world);
  static std::vector<std::string> Kinds();
  int rank() const override { return world_.collectives.fabric().rank(); }
  int size() const override { return world_.collectives.fabric().size(); }
  bool reads_all() const override { return options_.whole; }

  // Rows of all workers together when options.whole, else of this one.
  std::size_t piece() const override;
  std::size_t piece_of_all() const override { return options_.batch * updates(); }
  data::Batch Share(const data::Batch& piece) const override;
  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override;
  Result<bool> StepDry() override;
  Result<void> EndEpoch() override;

  void Ask(bool stop, bool save) override {
    asked_stop_ = stop;
    asked_save_ = save;
  }
  void AskAdmission(bool admit) { asked_admission_ = admit; }
  bool admission_agreed() const override { return admission_agreed_; }
  bool stop_agreed() const override { return stop_agreed_; }
  bool save_agreed() const override { return save_agreed_; }
  void Forget() override { stop_agreed_ = save_agreed_ = false; }
  void SetProgress(double progress) override { progress_ = progress; }

  Result<std::vector<double>> Sum(const std::vector<double>& mine) override;
  Result<void> Barrier() override { return world_.collectives.Barrier(); }

  // Of an exchange that is not booked yet, all counts as exchange.
  StepTimes times() const override;
  void CountRead(base::Clock::Duration time) override { times_.read += base::Seconds(time); }
  // By rank, the same for all: how long each took to be ready for the exchange before the last agreement, in seconds.
  std::span<const float> ready() const { return ready_; }
  // Of a step that failed, with StrategyOptions::lossy: the loss of this worker's own part, which was done and was not
  // taken back; and how many rows all had agreed to learn from.
  std::optional<double> computed() const { return computed_; }
  double rows_agreed() const { return rows_agreed_; }
  bool everyone_dry() const { return everyone_dry_; }  // of the last step
  // All tell when they were ready for their last exchange, and book how much of it was waiting.
  virtual Result<void> BookExchange();
  std::string algorithms() const override;

 protected:
  Synchronous(const StrategyOptions& options, const World& world)
      : options_(options), world_(world), undo_(world.learner()) {}

  // Updates of a piece: how many, and one of them. `weight` is that of the rows of all workers.
  virtual std::size_t updates() const { return 1; }
  virtual Result<double> Update(const data::Batch& piece, const data::Batch& mine, double weight,
                                std::span<float> scores) = 0;
  // Whether an update may change parameters before all have met.
  virtual bool ChangesEarly() const { return true; }

  // Has the model look at the rows of an update, those of all workers, before its gradient. A strategy that calls it
  // says so in its constructor, since what others have to show is agreed on with the step.
  void WillObserve() { observes_ = true; }
  Result<void> Observe(const data::Batch& piece);

  // Parts of a step, for who makes one of another kind.
  struct Wishes {
    bool stop = false, save = false, admit = false;
  };
  void BeginStep();
  void KeepForUndo(const data::Batch& piece);
  Result<void> TakeBack();
  Wishes wishes() const { return {asked_stop_, asked_save_, asked_admission_}; }
  void Agreed(const Wishes& agreed);  // by all, who have come as far as this worker

  // A place in a step where it may be made to fail.
  Result<void> At(std::string_view place) const { return world_.at ? world_.at(place) : Result<void>(); }
  // This worker's own part of the step is done, with that loss: what is missing is the mean of all.
  void Computed(double loss) { computed_ = loss; }
  // Adds a part of a step to the times, and to the trace when there is one.
  void Count(double StepTimes::*part, const char* name, base::Clock::Duration begin, base::Clock::Duration end,
             base::Trace::Details details = {});
  // The exchange of this step, for which this worker was ready at `begin`. How long it then waited for the slowest is
  // known, and booked as wait, when all tell with the next step when they were ready.
  void CountExchange(base::Clock::Duration begin, base::Clock::Duration end, base::Trace::Details details = {});
  // The same of another strategy, whose times count for this one.
  Result<void> BookExchangeOf(Synchronous& inner);
  // A piece by steps of another strategy, one for each of its updates().
  Result<double> InParts(Synchronous& inner, const data::Batch& piece, const data::Batch& mine,
                         std::span<float> scores);

  const StrategyOptions options_;
  const World world_;
  StepTimes times_;

 private:
  // An exchange of which it is not booked yet how much was waiting.
  struct Unbooked {
    double took = 0, ready = 0;  // seconds; from the agreement until this worker was ready
  };

  Result<double> Agree(const data::Batch& mine);
  void Book(std::span<const float> ready);
  void Adopt(const StepTimes& before, const StepTimes& after);
  void AddSpan(const char* name, base::Clock::Duration begin, base::Clock::Duration end, base::Trace::Details details);

  bool asked_stop_ = false, asked_save_ = false, stop_agreed_ = false, save_agreed_ = false;
  bool asked_admission_ = false, admission_agreed_ = false;
  bool everyone_dry_ = false;
  bool observes_ = false, something_to_observe_ = false;
  data::Rows digest_;                  // of this worker's rows, where others do not have them
  std::uint64_t step_ = 0;             // the optimizer's, when the current step began
  base::Clock::Duration agreed_at_{};  // about the same moment for all
  std::optional<Unbooked> unbooked_;
  std::vector<float> ready_;
  std::optional<double> computed_;
  double rows_agreed_ = 0;
  std::string kept_;                           // what this worker remembered before the step
  double progress_ = 0, agreed_progress_ = 0;  // this worker's, that of all
  Undo undo_;
};

using SynchronousPtr = std::unique_ptr<Synchronous>;

// What it remembers (Strategy::Save, or SaveShared), as bytes for data::TensorFile; "": nothing.
std::string Remembered(const Strategy& strategy, bool shared = false);

Result<SynchronousPtr> MakeAllReduce(const StrategyOptions& options, const Strategy::World& world);
Result<SynchronousPtr> MakeAverage(const StrategyOptions& options, const Strategy::World& world);
Result<SynchronousPtr> MakeGroups(const StrategyOptions& options, const Strategy::World& world);
// All-reduce that does not wait for the slowest (StrategyOptions::backup).
Result<SynchronousPtr> MakeBackup(const StrategyOptions& options, const Strategy::World& world);
// All-reduce with sums whose bits do not depend on the number of workers (StrategyOptions::exact).
Result<SynchronousPtr> MakeExact(const StrategyOptions& options, const Strategy::World& world);

}  // namespace freshet::strategy
