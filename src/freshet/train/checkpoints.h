#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/env.h"
#include "data/source.h"
#include "model/model.h"
#include "strategy/strategy.h"
#include "train/checkpoint_files.h"
#include "train/early_stopping.h"
#include "train/standing.h"

namespace freshet::train {

// Saving and resuming a run: a model file with the optimizer's state and the place in the data added, written by rank 0
// for all, and beside it what each of several workers alone remembers. docs/formats.md lists the tensors. Resuming and
// never having stopped give the same bits when updates are made in order. Where no worker remembers anything that the
// others do not, another number of them can go on.
//
// Threads:   one. Save and Load are called by all workers at the same point of a run, and meet in them.
// Ownership: borrows everything, which outlives it.
// Failure:   of the files and the strategy; whatever is killed when, the checkpoint that is there has its parts.
//            kCorrupt, with what to do, for a checkpoint that is damaged or of another run; what was to be loaded is
//            then of no use.
class Checkpoints {
 public:
  struct Options {
    std::string path;
    std::string fingerprint;  // of what must be the same when a run is resumed
    std::string inputs;       // what is read, a line for each file; likewise
    std::string common = {};  // what must be the same for who comes later: lines of name = value
    std::string choice = {};  // what was chosen in place of a strategy (train/choice.h), for who resumes it
  };
  // What is saved beside where the run stands.
  struct World {
    const model::Model& model;
    optimize::Parameters& parameters;
    optimize::Optimizer& optimizer;
    data::Description& description;
    strategy::Strategy& strategy;
  };
  Checkpoints(const base::Env& env, Options options, const World& world);

  // Replaces the checkpoint that is there. `source` is what the workers read their parts of.
  Result<void> Save(const Standing& standing, const EarlyStopping& early, const data::RowSource& source) const;
  // By one who is left alone: nobody is met.
  Result<void> SaveAlone(const Standing& standing, const EarlyStopping& early) const;
  // False when there is none. Takes away what earlier runs left beside it.
  Result<bool> Load(Standing& standing, EarlyStopping& early) const;

  // The same for who comes while others train: it has seen nothing yet. kInvalid when it was started for something else.
  Result<std::string> Give(const Standing& standing, const EarlyStopping& early) const;
  Result<void> Take(std::string given, Standing& standing, EarlyStopping& early) const;

 private:
  int Workers() const;
  bool HasParts() const;
  CheckpointFiles OwnFiles() const;  // ranks may change
  bool Interchangeable() const;
  bool Mergeable() const;
  Result<std::vector<double>> CountTogether(const Standing& standing) const;
  // What is the same for all workers, who have seen that much together.
  Result<void> Write(base::OutputFile& file, const Standing& standing, const EarlyStopping& early,
                     const std::vector<double>& seen, std::uint64_t rows, bool with_remembered = false) const;
  Result<void> LoadFrom(const data::TensorFile& file, Standing& standing, EarlyStopping& early) const;
  Result<void> SavePart(const Standing& standing, const data::RowSource& source) const;
  Result<void> LoadPart(const data::TensorFile& part, Standing& standing) const;
  // Of `before` workers, each takes over what some of them remembered.
  Result<void> MergeParts(int before, std::uint64_t save) const;
  Result<void> LoadOptimizer(const data::TensorFile& file) const;

  const base::Env env_;
  const Options options_;
  const World world_;
};

// Which sums went by which algorithm (Strategy::algorithms) in the run whose checkpoint this is; "" when there is no
// such file, or it does not say.
Result<std::string> SavedAlgorithms(base::Files& files, const std::string& checkpoint_path);
// And what was chosen in place of a strategy there.
Result<std::string> SavedChoice(base::Files& files, const std::string& checkpoint_path);

}  // namespace freshet::train
