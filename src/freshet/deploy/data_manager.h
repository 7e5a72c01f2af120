#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "deploy/id_window.h"
#include "deploy/joined_sets.h"
#include "deploy/log/record_log.h"
#include "deploy/pending.h"
#include "deploy/samplers/rate.h"
#include "deploy/samplers/sampler.h"

namespace freshet::deploy {

struct DataOptions {
  SamplerOptions sampler;
  SamplingRateOptions rate;
  double per_arrival = 0;          // rows of history in an iteration for each row of the buffer, beside the rate's
  std::uint64_t most_sample = 0;   // rows of history in one iteration; 0: as the rate says
  std::uint64_t quiet_rows = 500;  // arrivals that per_arrival counts at least when it was not they who called for it
  double buffer_share = 1;         // of the buffer's rows that an iteration visits
  std::size_t remembered_ids = 10'000'000;
  std::int64_t feedback_ttl = 3600;         // seconds a prediction waits for its label
  std::uint64_t pending_bytes = 256 << 20;  // of predictions that wait, in memory; twice as much on the disk
  std::uint64_t seed = 1;
};

// Did arrivals call for an iteration, or was it time that did, or a person?
enum class Pace { kArrivals, kQuiet };

// What an iteration takes, so that a record can say it.
struct Take {
  std::uint64_t seed = 1;   // the same seed gives the same rows
  std::uint64_t first = 0;  // the oldest row that is still kept
  double rate = 0, per_arrival = 0, buffer_share = 1;
  std::uint64_t most_sample = 0;
  std::uint64_t least_sample = 0;  // of history; above 0, the buffer is history where it is not visited itself
  bool sets = true;                // data sets are told from arrivals (records of old do not)
};

// Keeps the observations and chooses those that an iteration learns from: the data manager of "Continuous Training of
// Large Scale Machine Learning Models", section 5.2. The buffer holds what came since the last iteration; the history
// is everything before.
//
// Threads: one at a time, the writer's; the log may be read by others.
class DataManager {
 public:
  static Result<std::unique_ptr<DataManager>> Make(const DataOptions& options, RecordLog& log);

  RecordLog& log() { return log_; }
  IdWindow& ids() { return ids_; }
  Pending& pending() { return pending_; }
  Sampler& sampler() { return *sampler_; }
  SamplingRate& rate() { return rate_; }

  // A row of the log was learned: it is in the buffer now, under the number end() had.
  void Observe(double loss) { sampler_->Observe(end_++, loss); }
  // The same for a row that the model was trained on before: it is history at once. The buffer must be empty.
  void Remember(double loss) {
    CHECK(buffered() == 0);
    Observe(loss);
    buffer_begin_ = end_;
  }
  // A data set joined the history under the numbers from `first` on; unless it is known that the model was trained on
  // its rows, nobody has learned them yet.
  void Join(std::uint64_t first, std::uint64_t rows, bool known = false);
  // One that had joined before such were noted; it counts as visited.
  void NoteJoined(std::uint64_t first, std::uint64_t rows) {
    if (first >= sets_.end()) sets_.Add(first, rows, true);
  }
  std::uint64_t unvisited() const { return sets_.unvisited(); }  // rows of data sets that no iteration has visited
  std::uint64_t end() const { return end_; }                     // of the numbers: rows so far
  // The log has rows up to this number, of which some were lost.
  void SkipTo(std::uint64_t end) { end_ = std::max(end_, end); }
  std::uint64_t buffered() const { return end_ - buffer_begin_ - sets_.RowsBetween(buffer_begin_, end_); }
  // The number of the observation that was so many before the next one; data sets do not count.
  std::uint64_t ObservationBefore(std::uint64_t observations) const {
    return sets_.ObservationBefore(end_ + 1, observations);
  }
  // Rows that are drawn from: the history but what was forgotten.
  std::uint64_t drawable() const { return end_ - forgotten_ + sets_.RowsBetween(0, forgotten_); }

  // Observations before `begin` are not drawn any more, and fewer are drawn by as much as that is of the history. Data
  // sets stay.
  void Forget(std::uint64_t begin) { forgotten_ = std::max(forgotten_, std::min(begin, end_)); }
  // What an iteration would take now, by the options and the present rate.
  Take Plan(std::uint64_t seed, std::uint64_t first, Pace pace = Pace::kArrivals) const;
  // The rows of an iteration that starts now: a share of the buffer, and a sample of what came before it, mixed. The
  // buffer is empty afterwards.
  std::vector<std::uint64_t> TakeIteration(const Take& take);
  // Rows of data sets that no iteration has visited, mixed: they belong to the iteration, too, as rows that are new.
  std::vector<std::uint64_t> TakeUnvisited(const Take& take) const;
  // It has ended: sets that begin before this number need no visit any more.
  void Visited(std::uint64_t end) { sets_.Visited(end); }
  // Every row there is, mixed: for a retraining. The buffer is empty afterwards.
  std::vector<std::uint64_t> TakeEverything(std::uint64_t seed, std::uint64_t first);

  std::string Save() const;  // JSON: buffer, sampler, rate
  Result<void> Load(const std::string& json);

 private:
  DataManager(const DataOptions& options, RecordLog& log, std::unique_ptr<Sampler> sampler)
      : options_(options),
        log_(log),
        sampler_(std::move(sampler)),
        rate_(options.rate),
        ids_(options.remembered_ids),
        pending_(options.feedback_ttl, options.pending_bytes) {}

  const DataOptions options_;
  RecordLog& log_;
  std::unique_ptr<Sampler> sampler_;
  SamplingRate rate_;
  IdWindow ids_;
  Pending pending_;
  JoinedSets sets_;
  std::uint64_t buffer_begin_ = 0, end_ = 0, forgotten_ = 0;
};

}  // namespace freshet::deploy
