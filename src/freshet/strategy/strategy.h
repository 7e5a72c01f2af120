#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/trace.h"
#include "data/rows.h"
#include "data/tensor_file.h"
#include "fabric/collectives.h"
#include "model/model.h"

namespace freshet::strategy {

struct StrategyOptions {
  std::string kind = "allreduce";
  std::uint64_t batch = 32;  // rows of one update, over all workers together
  bool whole = true;         // every worker is handed all rows and takes its share of each update; else only its own
  int threads = 1;           // that a worker may compute with

  // What is exchanged, and how.
  std::string codec = "none";           // none, fp16, bf16, int8, one-bit, top-k, threshold, power
  double top = 0.01;                    // top-k: share of values that travel; threshold: the least size that does
  int power_rank = 2;                   // power: columns of the factors
  bool factors = false;                 // dense layers travel as inputs and deltas where that is fewer bytes
  bool overlap = true;                  // exchange what is finished while the rest is computed
  std::size_t bucket_bytes = 4 << 20;   // gradients travel in buckets of at most about this size
  std::uint64_t accumulate = 1;         // parts in which a worker computes its share of an update
  std::string batch_norm = "together";  // its means and variances: of all workers' rows together, or local

  // average, groups
  std::uint64_t every = 16;      // updates a worker makes alone between two averages
  bool average_state = false;    // what the optimizer remembers is averaged, too
  double block_momentum = 0;     // of the averages' own movement
  std::uint64_t warm_start = 0;  // updates by plain all-reduce before averaging or compression begins
  int group = 2;                 // workers of a group, which all-reduce among themselves
};

// Where the time of a worker's steps went, in seconds, and what travelled.
struct StepTimes {
  double read = 0;  // until rows were there and ready
  double compute = 0;
  double wait = 0;      // for others to be as far
  double exchange = 0;  // the transfers themselves, as far as they were not hidden behind compute
  double apply = 0;
  std::uint64_t steps = 0, rows = 0;
  std::uint64_t bytes_sent = 0, bytes_shared = 0;  // through sockets (or between threads), through shared memory
  std::uint64_t bytes_dense = 0;                   // what the same exchange would send uncompressed, by a ring

  double total() const { return read + compute + wait + exchange + apply; }
};

// How updates made in different places meet: one object for each worker, all of which call the same things in the same
// order. A strategy is one file and one line in the registry of strategy.cc.
//
// Ownership: borrows everything, which outlives it. Threads: one; starts none.
// Failure: as the fabric's (kPeerLost, kTimeout); parameters are then in no particular state.
class Strategy {
 public:
  struct World {
    fabric::Collectives& collectives;
    const model::Model& model;
    optimize::Parameters& parameters;
    optimize::Optimizer& optimizer;
    optimize::Memory& memory;
    const base::Clock& clock;
    base::Trace* trace = nullptr;
  };
  static Result<std::unique_ptr<Strategy>> Make(const StrategyOptions& options, const World& world);
  static std::vector<std::string> Kinds();
  virtual ~Strategy() = default;

  const StrategyOptions& options() const { return options_; }
  int rank() const { return world_.collectives.fabric().rank(); }
  int size() const { return world_.collectives.fabric().size(); }

  // How many rows Step wants at once: of all workers together when options.whole, else of this one.
  std::size_t piece() const;
  // This worker's share of a piece.
  data::Batch Share(const data::Batch& piece) const;
  // One or several updates from a piece: `mine` is this worker's share (perhaps augmented, perhaps empty), `piece` all
  // that is known of it. Writes the scores of mine and returns its summed loss. When it is agreed to stop, no update is
  // made, and everything is as it was.
  Result<double> Step(const data::Batch& piece, const data::Batch& mine, std::span<float> scores);
  // Takes part in a step of those who still have rows; true when nobody has any.
  Result<bool> StepDry();
  // The end of an epoch: takes part in the steps of those who still have rows, then brings all to the same parameters.
  Result<void> EndEpoch();
  // Brings all to the same parameters, for a checkpoint or an evaluation.
  virtual Result<void> Settle() { return {}; }

  // What is agreed on with every step: to stop or to save, when any worker asks; how far training has come (0 to 1).
  void Ask(bool stop, bool save) {
    asked_stop_ = stop;
    asked_save_ = save;
  }
  bool stop_agreed() const { return stop_agreed_; }
  bool save_agreed() const { return save_agreed_; }
  void Forget() { stop_agreed_ = save_agreed_ = false; }
  void SetProgress(double progress) { progress_ = progress; }

  // Sums of all workers, in the order of ranks.
  Result<std::vector<double>> Sum(const std::vector<double>& mine);
  Result<void> Barrier() { return world_.collectives.Barrier(); }

  // Where the time went. Of an exchange that is not booked yet, all counts as exchange.
  StepTimes times() const;
  // All tell when they were ready for their last exchange, and book how much of it was waiting.
  virtual Result<void> BookExchange();
  // Time until the rows of the next step were there, which the strategy cannot see.
  void CountRead(base::Clock::Duration time) { times_.read += base::Seconds(time); }
  // Which sums go by which algorithm, when that was chosen by size; else "".
  std::string algorithms() const;
  // What must be saved of this worker beside parameters and optimizer, and back. The tensors borrow from this.
  virtual void Save(std::vector<data::Tensor>& tensors) const { (void)tensors; }
  virtual Result<void> Load(const data::TensorFile& file) {
    (void)file;
    return {};
  }

 protected:
  Strategy(const StrategyOptions& options, const World& world) : options_(options), world_(world) {}

  // Updates of a piece: how many, and one of them. `weight` is that of the rows of all workers.
  virtual std::size_t updates() const { return 1; }
  virtual Result<double> Update(const data::Batch& piece, const data::Batch& mine, double weight,
                                std::span<float> scores) = 0;

  // Has the model look at the rows of an update, those of all workers, before its gradient. A strategy that calls it
  // says so in its constructor, since what others have to show is agreed on with the step.
  void WillObserve() { observes_ = true; }
  Result<void> Observe(const data::Batch& piece);

  // Adds a part of a step to the times, and to the trace when there is one.
  void Count(double StepTimes::*part, const char* name, base::Clock::Duration begin, base::Clock::Duration end,
             base::Trace::Details details = {});
  // The exchange of this step, for which this worker was ready at `begin`. How long it then waited for the slowest is
  // known, and booked as wait, when all tell with the next step when they were ready.
  void CountExchange(base::Clock::Duration begin, base::Clock::Duration end, base::Trace::Details details = {});
  // The same of another strategy, whose times count for this one.
  Result<void> BookExchangeOf(Strategy& inner);
  // A piece by steps of another strategy, one for each of its updates().
  Result<double> InParts(Strategy& inner, const data::Batch& piece, const data::Batch& mine, std::span<float> scores);

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
  bool everyone_dry_ = false;
  bool observes_ = false, something_to_observe_ = false;
  data::Rows digest_;                  // of this worker's rows, where others do not have them
  std::uint64_t step_ = 0;             // the optimizer's, when the current step began
  base::Clock::Duration agreed_at_{};  // about the same moment for all
  std::optional<Unbooked> unbooked_;
  double progress_ = 0, agreed_progress_ = 0;  // this worker's, that of all
};

using StrategyPtr = std::unique_ptr<Strategy>;
Result<StrategyPtr> MakeAllReduce(const StrategyOptions& options, const Strategy::World& world);
Result<StrategyPtr> MakeAverage(const StrategyOptions& options, const Strategy::World& world);
Result<StrategyPtr> MakeGroups(const StrategyOptions& options, const Strategy::World& world);

}  // namespace freshet::strategy
