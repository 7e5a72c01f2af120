#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/settings.h"
#include "data/open.h"
#include "fabric/fabric.h"
#include "fabric/membership/elastic_place.h"
#include "model/model_file.h"
#include "strategy/elastic_strategy.h"
#include "train/choice.h"
#include "train/coordinate_trainer.h"
#include "train/learning.h"
#include "train/together.h"
#include "train/topology.h"
#include "train/train_trace.h"
#include "train/trainer.h"
#include "train/worker_report.h"

namespace freshet::train {

// A training run, as whoever wants one describes it: what is learned, how, and from what. Everything has a default, and
// what depends on the model or the data is chosen when both are known: the same for every door.
//
//   train::Job job;
//   job.input.paths = {"sea.csv"};
//   train::Outcome outcome = TRY(train::Run(env, memory, job));
//   TRY(train::Save(env.files, outcome, "sea.model"));
struct Job {
  data::Input input;
  Learning learning;
  Together together;
  std::string from;         // start from this model file
  int epochs = 0;           // passes over the data; 0: as many as suit the model
  std::uint64_t batch = 0;  // rows per update; 0: as many as suit model and workers
  bool shuffle = false;     // networks always do unless it is said
  std::uint64_t prefetch = 4;
  bool deterministic = true;
  double holdout = 0;  // share of rows kept back to test on
  std::int64_t holdout_after = 0;
  int patience = 0;
  std::string checkpoint;  // the run is saved here; the same job again resumes it
  double checkpoint_seconds = 60;
  bool fresh = false;           // start over though there is a checkpoint
  bool keep_optimizer = false;  // also keep what the update rule has summed up
  std::string cache;            // parsed rows are kept here
  std::string scratch = "/tmp";
  std::string trace;  // what every worker did when goes here

  // Names of options that were given although they may be as they were before: what was given is not chosen anew.
  // Options that differ from their defaults always count as given.
  std::set<std::string, std::less<>> said;

  // Binds all options but the trace to the names by which documentation and messages know them.
  void Register(base::Settings& settings);
  bool Said(std::string_view name) const;
  // Every option but the trace as it is now: lines of name = value.
  std::string Lines() const;
};

// Where a job is run, and who is told of it.
struct Around {
  // This process is one of several that all run the same job, each a worker; null: it has no others.
  std::unique_ptr<fabric::Fabric> fabric{};
  // It may be lost, and others come, while they train (Together::elastic): with a fabric of those who begin, or without,
  // for who comes or begins alone.
  std::optional<fabric::ElasticPlace> elastic{};
  // Start from this model, in place of the file that Job::from names; borrowed until Run returns.
  const model::TrainedModel* earlier = nullptr;
  // The workers are others now.
  std::function<void(const strategy::GroupChange& change)> changed{};
  const std::atomic<bool>* stop = nullptr;  // set: what there is is kept, and kStopped returned
  // The model by which this process computes, given the one that is trained; borrowed until Run returns. Null: that one.
  std::function<const model::Model&(const model::Model& model)> dressed{};
  // The input was opened, and this is what it is taken for.
  std::function<void(const data::Description& description)> opened{};
  // What the others are told of this process, and what all say of theirs, by rank, before they begin.
  std::string card{};
  std::function<void(const std::vector<std::string>& cards)> met{};
  // Of this process, as a member of a parameter server; borrowed.
  strategy::server::Panel* panel = nullptr;
  // As TrainOptions::progress, of this process, whichever it is among several.
  std::function<void(const Progress& progress)> own_progress{};
  // As TrainOptions::progress; of several workers the first one's.
  std::function<void(const Progress& progress)> progress{};
};

// What a run has made. With several workers all have the same model.
struct Outcome {
  std::shared_ptr<optimize::Memory>
      memory{};  // of a large model's parameters, which do not lie in Run's; outlives them
  Job job;       // as it was run: with what was chosen in place of every "auto" and unset number
  model::TrainedModel trained;
  Report report;
  std::vector<WorkerReport> workers{};  // how each did; none when there was one alone
  Topology topology{};
  std::optional<Choice> choice{};                 // of a strategy that was left open; in `job`, too
  std::optional<Descent> descent{};               // of strategy scheduled
  std::optional<strategy::GroupHistory> group{};  // where workers might come and go
  std::uint64_t bad_rows = 0;                     // set aside in the last pass
  int rank = 0;                                   // of this process, at the end
  std::unique_ptr<TrainTrace> trace{};
};

// Refuses (kInvalid) what cannot be: options out of their limits, and those that do not go together for `workers`, in
// this process or others. Reads nothing but whether files are there; Run does it, too.
Result<void> Check(base::Files& files, const Job& job, int workers);

// Trains. With a fabric or job.together.workers as one of several workers, which it starts threads for.
//
// Blocking:  until training has ended. Not to be called from a task of env's executor, whose threads it uses.
// Ownership: the outcome borrows env and memory.
// Failure:   kInvalid and kBadInput for a job or data that make no sense; kDiverged; kPeerLost; kStopped after *stop,
//            with a checkpoint where the job has one. The other processes are told.
Result<Outcome> Run(const base::Env& env, optimize::Memory& memory, Job job, Around around = {});

// How good the model is on rows of this input, which is read as the model reads rows. In the outcome's trace, too.
Result<Evaluation> Evaluate(const base::Env& env, Outcome& outcome, const std::vector<std::string>& paths,
                            const std::atomic<bool>* stop = nullptr);

// Writes the model file.
Result<void> Save(base::Files& files, const Outcome& outcome, const std::string& path);

}  // namespace freshet::train
