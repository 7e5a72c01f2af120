#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/cuts.h"
#include "data/rows.h"
#include "train/evaluation.h"
#include "train/window.h"

namespace freshet::train {

// Rows that are being learned from. A run can be saved or stopped in its midst.
struct Lot {
  data::Batch rows = {};          // behind those that are due stand those that wait for more
  std::size_t due = 0, done = 0;  // 0 due: there is no lot
  std::size_t before = 0;         // so many of those done are not in `rows` any more
  double from = 0, to = 0;        // the progress of training at the first and behind the last

  // How far training has come in its midst.
  double progress() const;
};

// Where a worker stands in its run: what it must know to go on after a stop as if there had been none, beside the model,
// the optimizer and the description of its input.
//
// Threads: one at a time.
struct Standing {
  Standing(const model::Model& model, const data::Description& description, std::size_t window_bytes)
      : window(description.dense, description.features, window_bytes),
        seen(SumsFor(model, description)),
        progressive(seen) {}

  int epoch = 0;
  data::Position position;  // up to where this epoch's rows have been taken
  bool learned = false;     // all of this epoch's rows; what comes behind that is still to be done
  double progress = 0;      // of training, as it was last set
  Window window;
  Lot lot;
  double window_begin = 0;    // the progress of training when its first row was read
  std::uint64_t windows = 0;  // shuffled so far, names the random stream of the next

  Evaluation seen;         // this epoch, predicted before learned
  Evaluation progressive;  // the first epoch
  std::uint64_t rows = 0;  // learned from, over all epochs; of all workers up to when they last met, then of this one
  std::uint64_t joined_rows = 0;  // of all workers, when they last met
  std::vector<double> rows_each;  // of each worker in the epoch that ended
  data::Cuts cuts;                // of the input, when it was cut anew
  std::vector<double> where;      // rows by their place, as an earlier run counted them in this epoch
  double seconds = 0;             // spent in passes that train
  std::uint64_t saves = 0;        // checkpoints that were begun, which name their parts
  bool cached = false;            // parsed rows are kept

  // Rows that were read but not learned from yet.
  data::Batch Waiting() const;

  // The place in the rows, and what has been seen of them, as JSON, and back. Loading throws the JSON library's errors.
  std::string Place() const;
  std::string Counts() const;
  void LoadPlace(const std::string& json);
  bool LoadCounts(const std::string& json);  // false when they are damaged
};

}  // namespace freshet::train
