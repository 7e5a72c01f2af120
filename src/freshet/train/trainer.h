#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/trace.h"
#include "data/leased_parts.h"
#include "data/source.h"
#include "model/model.h"
#include "model/rated.h"
#include "strategy/strategy.h"
#include "train/evaluate.h"
#include "train/held_out.h"
#include "train/watch.h"

namespace freshet::train {

struct Lot;

struct TrainOptions {
  int epochs = 1;
  std::uint64_t batch = 1;       // rows per update
  std::uint64_t accumulate = 1;  // parts in which the gradient of a batch is computed, without a strategy
  bool deterministic = true;     // the same result whatever the number of threads
  bool shuffle = false;          // within a window, and the order of blocks from the second epoch on
  std::size_t shuffle_window_bytes = 16 << 20;
  std::size_t most_ratings = 1'500'000;  // factorization: trained on together; twice 12 bytes each while arranged
  bool learn_moments = true;             // standardised rows: in the first epoch; else they are known
  std::uint64_t seed = 1;
  bool mirror = false;       // images: half of them are shown right to left
  std::size_t prefetch = 4;  // networks: blocks read ahead of need
  HoldOut hold_out;
  int patience = 0;        // stop after so many epochs without a better held-out loss; 0: never
  std::string cache_path;  // keep parsed rows here; "" uses and removes a file in scratch_directory
  std::string scratch_directory = "/tmp";
  std::string checkpoint_path;  // a file; "" for none
  double checkpoint_seconds = 60;
  strategy::Strategy* strategy = nullptr;  // by which steps are made; null: alone, as the options above say
  bool own_input = false;                  // a worker whose source is not a part of what all could read
  data::LeasedParts* leases = nullptr;     // the source, where readers of its parts may change; null: it is another one
  base::Trace* trace = nullptr;            // what is done when; null: nobody wants to know
  std::string fingerprint;                 // of what must be the same when a run is resumed
  std::string inputs;                      // what is read, a line for each file; likewise
  std::string common;                      // what must be the same for who comes later: lines of name = value
  std::string choice;                      // what was chosen in place of a strategy, for who resumes the run
  // After every block, and within one every half second; called from training threads, one at a time.
  std::function<void(const Progress&)> progress;
  model::Rated* rated = nullptr;            // gets the ratings that the first epoch reads; null: nobody wants to know
  const std::atomic<bool>* stop = nullptr;  // set: checkpoint and return kStopped
};

struct Report {
  std::uint64_t rows = 0;               // trained on, over all epochs, also before a stop
  int epochs = 0;                       // finished
  double seconds = 0;                   // spent in passes that train: reading, parsing, updating
  double update_seconds = 0;            // of that in updates, summed over threads
  std::optional<double> wait_seconds;   // networks: of that waiting for rows
  Evaluation progressive;               // first epoch: every row predicted before it was learned from
  Evaluation last_epoch;                // the same, of the last epoch
  std::optional<Evaluation> held_out;   // after the last epoch (the best, with patience)
  std::vector<double> held_out_losses;  // after each epoch
  bool stopped_early = false;
  bool shared = false;   // threads updated one model at once
  double imbalance = 0;  // by how much rows of one worker were above the mean; 0: parts were not cut anew for that
};

// The training loop: epochs over a source of rows, evaluation, checkpoints, early stopping.
//
// How threads are used: rows are parsed in parallel. Updates are made in order by one thread at a time, so that
// the result does not depend on threads. If determinism is waived and the model is linear over sparse rows with more
// than kSharedWeights weights and a batch of 1, all threads update at once by relaxed atomics (not with checkpoints,
// shuffling or held-out rows). Factorization models with a batch of 1 train by blocks of users and items that no two
// threads share (strata.h): deterministic too; their rows are parsed by one thread, since training then takes them all.
// By a strategy whose items walk (strategy/walk.h) members share them out, and make the same model.
// Networks train on the calling thread, whose kernels use all threads, while others read ahead.
//
// With a strategy, several trainers (threads, processes, machines) train one model: all run the same calls in the same
// order. Rank 0's checkpoint is everybody's; what differs from worker to worker lies beside it. Where nothing does
// (all-reduce of everybody's rows without a codec) another number of workers, or one alone, can go on. Workers that
// read rows of their own end an epoch together; when the first shows that some had more than kUneven above the mean,
// later epochs read parts that were cut by rows, unless each has an input of its own.
//
// Ownership: borrows everything; parameters and description (moments, dictionaries) change as training goes.
// Failure:   kDiverged when the loss is no longer finite; kStopped after *stop, with a checkpoint written if
//            there is a path for one. Blocks the calling thread until training ends; not to be called from a task of
//            env's executor.
class Trainer {
 public:
  static constexpr std::uint64_t kSharedWeights = 1 << 16;
  static constexpr double kUneven = 0.03;

  Trainer(const base::Env& env, TrainOptions options, const model::Model& model, optimize::Parameters& parameters,
          optimize::Optimizer& optimizer, data::Description& description);
  ~Trainer();

  // Trains on everything `source` has. With a checkpoint of an earlier run at checkpoint_path, goes on from there.
  Result<Report> Run(data::RowSource& source);

 private:
  struct State;
  Result<void> Epoch(data::RowSource& source);
  Result<void> EpochInOrder(data::RowSource& source);
  Result<void> EpochShared(data::RowSource& source);
  Result<void> EpochStratified(data::RowSource& source);
  bool MayShare() const;
  bool Stratified() const;
  Result<void> PrepareBlock(data::Rows& rows);
  Result<void> TrainBatch(const data::Batch& batch);
  // Makes the step of a piece. False: it is to be made of other rows, since parts have other readers.
  Result<bool> TrainPiece(const data::Batch& piece);
  Result<void> EpochLeased();
  Result<bool> TrainOnLease();
  double ProgressOfLease() const;
  Result<void> EvaluateLeased(std::size_t width, const HeldOut::GoesOn& goes_on, Evaluation& held);
  Result<void> TrainRestOfLot();
  Result<void> TrainLot(const Lot& rows);
  void SetProgress(double progress);
  Result<void> ChooseStrategy();
  bool Shown() const { return description_.view.any() || options_.mirror; }  // what is learned from is made of the rows
  void CountRead();
  Result<void> Join();
  Result<void> Rebalance(data::RowSource& source);
  Result<std::vector<double>> ToldByTheFirst(std::vector<double> mine);
  Result<void> JoinEvaluation(Evaluation& evaluation);
  Result<void> TrainWindow(double progress, bool end_of_epoch);
  double ProgressAt(const data::RowSource& source, const data::Position& position) const;
  Result<void> AfterBlock(const data::RowSource& source, const data::Position& position);
  Result<void> AfterUpdate();
  double Reached() const;
  Result<void> SaveOrStop(base::Clock::Duration now);
  void Show(double fraction);
  void TellIfLate(double fraction);
  bool GoesOn();
  void Ask(base::Clock::Duration now);
  Error Stopped() const;
  bool KeepsRows(const data::RowSource& source) const;
  Result<void> FillCache(data::RowSource& source);
  Result<data::RowSource*> SourceFor(data::RowSource& source, int epoch);
  Result<void> EvaluateHeldOut(data::RowSource& source);
  Result<void> StopTogether(const Result<void>& mine);
  Result<void> CollectRated(data::RowSource& source);
  Result<void> SaveCheckpoint();
  data::Batch Show(data::Batch rows, std::vector<float>& memory) const;
  Error KeepWhatThereIs(Error why);
  Result<void> Resume();
  Error Diverged() const;

  const base::Env env_;
  const TrainOptions options_;
  const model::Model& model_;
  optimize::Parameters& parameters_;
  optimize::Optimizer& optimizer_;
  data::Description& description_;
  strategy::Strategy* strategy_ = nullptr;  // while it runs
  std::unique_ptr<State> state_;
};

}  // namespace freshet::train
