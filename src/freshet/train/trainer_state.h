#pragma once

#include <mutex>

#include "data/images/augment.h"
#include "strategy/alone.h"
#include "train/early_stopping.h"
#include "train/held_out.h"
#include "train/row_cache.h"
#include "train/strata.h"
#include "train/trainer.h"

namespace freshet::train {

// Rows that are being learned from. A run can be saved or stopped in its midst.
struct Trainer::Lot {
  data::Batch rows = {};          // behind those that are due stand those that wait for more
  std::size_t due = 0, done = 0;  // 0 due: there is no lot
  std::size_t before = 0;         // so many of those done are not in `rows` any more
  double from = 0, to = 0;        // the progress of training at the first and behind the last
};

// What a Trainer remembers while it runs; private to trainer*.cc.
struct Trainer::State {
  State(const base::Env& env, const model::Model& model, const optimize::Parameters& parameters,
        const data::Description& description, const TrainOptions& options);

  // Where this worker stands in its rows, and what it has seen, as JSON, and back. Load throws the JSON library's
  // errors.
  std::string Place() const;
  std::string Counts() const;
  void LoadPlace(const std::string& json);
  bool LoadCounts(const std::string& json);  // false when they are damaged
  // Rows that were read but not learned from yet.
  data::Batch Waiting() const;

  int epoch = 0;
  data::Position position;   // up to where this epoch's rows have been taken
  bool learned = false;      // all of this epoch's rows; what comes behind that is still to be done
  double progress = 0;       // of training, as it was last set
  bool length_known = true;  // of the source, so that progress has a fraction
  Window window;
  Lot lot;
  double window_begin = 0;    // the progress of training when its first row was read
  std::uint64_t windows = 0;  // shuffled so far, names the random stream of the next
  Strata strata;
  Watch watch;
  bool strata_whole = false;  // holds everything: later epochs need not read
  HeldOut held_out;

  std::optional<data::Augment> augment;
  std::vector<float> shown;  // what it makes of a batch
  std::vector<float> scores;
  optimize::HeapMemory memory;  // of `alone` and `early`, which it outlives
  std::unique_ptr<strategy::Alone> alone;

  Evaluation seen;         // this epoch, predicted before learned
  Evaluation progressive;  // the first epoch

  data::RowSource* source = nullptr;  // what Run was given
  RowCache cache;

  EarlyStopping early;

  std::uint64_t joined_rows = 0;  // of all workers, when they last met
  std::vector<double> rows_each;  // of each worker in the epoch that ended
  data::Cuts cuts;                // of the input, when it was cut anew
  std::vector<double> where;      // rows by their place, as an earlier run counted them in this epoch
  Report report;
};

}  // namespace freshet::train
