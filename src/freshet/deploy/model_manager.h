#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "deploy/publisher.h"
#include "deploy/runtime.h"
#include "deploy/versions.h"
#include "model/sums.h"

namespace freshet::deploy {

// Stores the model, answers predictions, and applies incremental and batch updates: the model manager of "Continuous
// Training of Large Scale Machine Learning Models", section 5.3, with its update, update_iteration, predict and
// error_rate. Without readers (0) it only learns: nothing is published.
//
// Threads: Predict, ErrorRate and Read from any number of threads, each with its own slot; they never wait for an
//          update. Everything else belongs to one thread, the writer's.
class ModelManager {
 public:
  ModelManager(const model::Model& model, data::Description description, const optimize::OptimizerOptions& optimizer,
               optimize::Memory& memory, int readers, Publisher::Companion companion);

  // Begins with these weights, and with the sums that belong to them; nothing: with the model's starting values. Sums
  // of another update rule are of no use: false.
  Result<bool> Begin(const optimize::Parameters* weights, const model::Sums* sums = nullptr);

  const model::Model& model() const { return *model_; }
  data::Description& description() { return description_; }
  const data::Description& description() const { return description_; }
  const State& state() const { return *state_; }

  // Learns from raw rows that are new, in order. `scores` are what it predicted before each. Visible to predictions
  // after Publish.
  Result<double> Update(data::Rows& rows, std::vector<float>& scores);
  // Predicts raw rows by the learning state, for quality where nothing is learned.
  Result<double> Foresee(data::Rows& rows, std::vector<float>& scores);
  // Trains on rows of the history and publishes the outcome: Copy, Runtime::Run and TakeOver in one, on this thread.
  Result<WorkReport> UpdateIteration(Runtime& runtime, const History& history, const Work& work, std::uint64_t version);

  // The same for the state that learns (State::Fade).
  void Fade(double keep) {
    state_->Fade(keep);
    copying_.reset();  // it would have the sums of before
  }

  // A copy of the state, to be trained by somebody else: at once, or a few megabytes at a time while learning goes on.
  // CopySome is called until it says that the copy is complete; Copy, called right then, hands it over.
  Result<std::unique_ptr<State>> Copy();
  Result<bool> CopySome(std::uint64_t bytes);
  Result<std::unique_ptr<State>> NewState() const { return NewState(*model_); }
  // Another state takes over. Its editions were made from it (Editions) before the rows in `touched` changed; none:
  // they are made here.
  Result<void> TakeOver(std::unique_ptr<State> state, std::vector<std::unique_ptr<Edition>> editions,
                        const optimize::RowSets& touched);
  // What TakeOver needs, made by any thread that has the state, which is of this model, to itself.
  Result<std::vector<std::unique_ptr<Edition>>> Editions(const model::Model& model, const State& state,
                                                         const data::Description& description) const;
  // From here on it is the same model with more classes, which outlives this. Its state knows what the present one
  // does. Copies made before are of no use any more.
  Result<void> TakeMoreClasses(const model::Model& wider);
  // A state of that model, which has as many classes or fewer than this one.
  Result<std::unique_ptr<State>> NewState(const model::Model& model) const;
  // A state that is no longer needed; its memory will be used again.
  void GiveBack(std::unique_ptr<State> state) { spare_ = std::move(state); }

  // Makes what was learned visible; false when that must wait until long readers are done.
  Result<bool> Publish(std::uint64_t version);
  bool dirty() const { return dirty_; }

  Publisher::Reading Read(int slot) const { return publisher_.Read(slot); }
  // Scores of raw rows, which are standardised in place. Returns the version that answered.
  std::uint64_t Predict(int slot, data::Rows& rows, model::Workspace& workspace, std::vector<float>& scores) const;
  // The mean error (share of wrong classes, or squared error) of raw labelled rows.
  double ErrorRate(int slot, data::Rows& rows) const;

 private:
  // A copy on its way: blocks before `block` and rows before `row` of it are copied; `touched` have changed since.
  struct Copying {
    std::unique_ptr<State> state;
    std::size_t block = 0;
    std::vector<std::uint64_t> copied;  // rows, by block
    optimize::RowSets touched;
    bool complete = false;
  };
  Result<std::unique_ptr<State>> StateToCopyInto();

  const model::Model* model_;
  std::optional<data::Augment> view_;
  data::Description description_;  // dictionaries grow as names come; moments are the state's
  const optimize::OptimizerOptions options_;
  optimize::Memory& memory_;
  const bool serves_;
  Publisher publisher_;
  std::unique_ptr<State> state_, spare_;
  std::optional<Copying> copying_;
  optimize::RowSets touched_;
  model::Workspace workspace_;
  bool dirty_ = false;  // learned, not published
};

}  // namespace freshet::deploy
