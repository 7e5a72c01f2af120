#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/trace.h"
#include "data/batch.h"
#include "data/tensor_file.h"
#include "fabric/collectives/collectives.h"
#include "model/model.h"
#include "strategy/server/panel.h"
#include "strategy/server/report.h"
#include "strategy/walk.h"

namespace freshet::strategy {

struct StrategyOptions {
  std::string kind = "allreduce";
  std::uint64_t batch = 32;  // rows of one update, over all workers together
  bool whole = true;         // every worker is handed all rows and takes its share of each update; else only its own
  int threads = 1;           // that a worker may compute with
  bool undo = false;  // a step that fails leaves everything as it was, at the price of copies of what it may change

  // What is exchanged, and how.
  std::string codec = "none";           // none, fp16, bf16, int8, 1bit, topk, threshold, power
  double top = 0.01;                    // topk: share of values that travel; threshold: the least size that does
  int power_rank = 2;                   // power: columns of the factors
  bool factors = false;                 // dense layers travel as inputs and deltas where that is fewer bytes
  bool overlap = true;                  // exchange what is finished while the rest is computed
  std::size_t bucket_bytes = 4 << 20;   // gradients travel in buckets of at most about this size
  std::uint64_t accumulate = 1;         // parts in which a worker computes its share of an update
  std::string batch_norm = "together";  // its means and variances: of all workers' rows together, or local
  int backup = 0;         // all-reduce, bulk server: updates do not wait for so many slowest; others do their rows
  bool lossy = false;     // average, groups: what a lost worker learned since the last mean is given up, not done again
  bool exact = false;     // all-reduce: sums by blocks of rows, so that their bits do not depend on who is there
  int exact_blocks = 16;  // of an update's rows; a power of two, at least as many as workers

  // average, groups
  std::uint64_t every = 16;      // updates a worker makes alone between two averages
  bool average_state = false;    // what the optimizer remembers is averaged, too
  double block_momentum = 0;     // of the averages' own movement
  std::uint64_t warm_start = 0;  // updates by plain all-reduce before averaging or compression begins
  int group = 2;                 // workers of a group, which all-reduce among themselves
  bool uneven = false;           // groups may be smaller where their size does not divide the workers; else an error

  bool slice_all =
      false;  // slices, hybrid (which has groups, too): also of layers of which the gradient would be fewer bytes

  // gossip: how two meet, every so many updates (`every`), and who may
  std::string gossip = "pairs";       // pairs, push-sum, walk; see gossip.cc
  std::string neighbours = "random";  // see neighbours.h
  std::uint64_t seed = 1;             // of who is written to

  // server, groups through one: who has the parameters, and how far workers may drift apart (server/synchrony.h)
  int servers = 0;                 // the last so many members have no rows; 0: every member is worker and server
  std::string synchrony;           // bsp, ssp:S, asp:V, bap; empty: bsp. Of groups: they meet through a server
  std::uint64_t fetch_every = 1;   // not bsp: steps for which a worker uses what it has read
  std::uint64_t push_every = 1;    // not bsp: steps whose gradients a worker pushes together
  int replicas = 2;                // members that have each shard, where losses are survived
  bool slower_when_stale = false;  // not bsp: an update counts the less, the more came before it since its worker read
  // Servers have memory for their rows only, workers for those of their batches (server/near_rows.h).
  bool large = false;

  // ring, of networks: how a step goes through the stages of the members (ring/schedule.h)
  std::string pipeline = "1f1b";  // flush, 1f1b, interleaved
  std::uint64_t micro = 0;        // micro-batches of an update; 0: a few for each member
  int stages = 0;                 // that each member holds; 0: 1, or 2 where they are interleaved
  bool recompute = false;         // keep what enters a stage alone, and run it forward again before backward
  bool balance = false;           // layers (or columns) move between neighbours, by the time they are measured to take
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
  std::uint64_t bytes_dense = 0;  // what the same exchange would send uncompressed, by a ring, or to servers
  std::uint64_t bytes_next = 0, bytes_back = 0;  // ring: of tensors, to the next member and to the one before
  // ring: of weights, with what the optimizer remembers of them, that were handed to a neighbour: layers that move to
  // balance, items that walk
  std::uint64_t bytes_moved = 0;
  std::uint64_t bytes_handed =
      0;  // ring: of rows, its own and others', to the next member, for what that and others need
  std::uint64_t bytes_copied = 0;  // ring: of parts of the model, to the member that has a copy
  double apart = 0;  // gossip: from the mean of all to this worker's parameters, in lengths of that, when all last met

  // server: updates it made, by how many others it had made since the worker read from which they come; the last: and more.
  std::array<std::uint64_t, 64> stale{};

  void Add(const StepTimes& other);
  double total() const { return read + compute + wait + exchange + apply; }
};

// A model that is being trained, and what belongs to it. Borrowed; outlives who has it.
struct Learner {
  const model::Model& model;
  optimize::Parameters& parameters;
  optimize::Optimizer& optimizer;
  optimize::Memory& memory;
  const base::Clock& clock;
  base::Trace* trace = nullptr;
  // Told where a step is (step.begin, step.agreed, step.computed, step.exchanged; regroup.…), which then may fail.
  std::function<Result<void>(std::string_view place)> at = {};
  server::Panel* panel = nullptr;  // of a parameter server, for who asks from outside
};

// How one member of a training makes its steps: what a trainer asks of any way of working together, or alone
// (alone.h). Those of several workers who take every step together are Synchronous. A strategy is one file and one line
// in the registry of strategy.cc.
//
// Ownership: borrows everything, which outlives it. Threads: one; starts none.
// Failure:   as the fabric's (kPeerLost, kTimeout). With StrategyOptions::undo parameters, and what the optimizer
//            remembers, are then as they were before the step; else they are of no use.
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
    std::function<Result<void>(std::string_view place)> at = {};  // as Learner's
    server::Panel* panel = nullptr;

    Learner learner() const { return {model, parameters, optimizer, memory, clock, trace, at, panel}; }
  };
  static Result<std::unique_ptr<Strategy>> Make(const StrategyOptions& options, const World& world);
  static std::vector<std::string> Kinds();
  virtual ~Strategy() = default;

  // Who this member is, and what it has.
  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  virtual bool alone() const { return false; }                   // there are no others, nor will there be
  virtual bool has_rows() const { return true; }                 // a server of parameters has none
  virtual int readers() const { return size(); }                 // members that have, the first ones
  virtual bool all_read() const { return readers() == size(); }  // all the time
  virtual bool has_scores() const { return true; }               // a stage of a network that is not its last has none
  virtual bool reads_all() const { return true; }  // all members are handed the same rows, else each its own
  // Whenever members do something together they have come to the same row; else each remembers its own place.
  virtual bool same_place() const { return reads_all(); }
  // Each takes as many steps as all others, and at the same time, so that all come to the end of an epoch together.
  virtual bool in_step() const { return same_place(); }
  // Does no member remember anything that the others do not? Then another number of them can go on.
  virtual bool interchangeable() const { return false; }
  // Can what each remembers be added up (Merge)? Then so can another number.
  virtual bool mergeable() const { return false; }
  // May each member be left with what it has when an epoch ends, until somebody looks at the whole model?
  virtual bool stays_apart() const { return false; }
  // May others come and go while it trains? Then each counts rows for all, and rank 0 saves for all.
  virtual bool changes() const { return false; }

  // The next rows: a step takes those from `begin` to the one this gives, about piece() of them, of which this member
  // learns from its share.
  virtual std::size_t piece() const = 0;
  virtual std::size_t EndOfPiece(const data::Batch& rows, std::size_t begin) const {
    return std::min(begin + piece(), rows.rows);
  }
  virtual data::Batch Share(const data::Batch& piece) const { return piece; }

  // One or several updates from a piece: `mine` is this member's share (perhaps augmented, perhaps empty), `piece` all
  // that is known of it. Writes the scores of mine and gives its summed loss; nothing when no update was made because
  // of a stop, and everything is as it was.
  virtual Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                             std::span<float> scores) = 0;
  // After a step that failed: perhaps there are others to go on with. Then the loss of `mine` if the step was done by
  // them all the same, and everything is as after it; nothing if it is to be made again, of a share that may be another.
  // Else what went wrong.
  virtual Result<std::optional<double>> Recover(const Error& why, const data::Batch& mine, std::span<float> scores) {
    (void)mine, (void)scores;
    return why;
  }
  // Where what a lost member would have read goes on with others (data/leased_parts.h): the group this member is in, with
  // which the parts it reads change; rows of all members in a step, as it is planned and as the last one was, 0 when none
  // was made.
  virtual std::uint64_t generation() const { return 0; }
  virtual std::size_t piece_of_all() const { return piece(); }
  virtual std::size_t rows_of_step() const { return 0; }
  // Rows of the last step that nobody has learned from, since who had them was lost.
  virtual std::size_t given_up() const { return 0; }
  // How ratings are trained on in a grid instead of by steps, where that is how it works; else null.
  virtual Walk* walk() { return nullptr; }
  // How rows are shown to the model, where a member may have to learn from others' than its share.
  using Show = std::function<data::Batch(const data::Batch& rows)>;
  virtual void SetShow(Show show) { (void)show; }
  // Who has no more rows takes part in a step of those who still have some; true when nobody has any.
  virtual Result<bool> StepDry() { return true; }
  // Brings all to the same parameters, for a checkpoint or an evaluation.
  virtual Result<void> Settle() { return {}; }
  // The end of an epoch, at once: what is left of the others' steps, then the same parameters for all.
  virtual Result<void> EndEpoch();

  // To stop or to save is asked by any member and agreed on by all, with a step; so is how far training has come (0 to
  // 1).
  virtual void Ask(bool stop, bool save) = 0;
  virtual bool stop_agreed() const = 0;
  virtual bool save_agreed() const = 0;
  virtual void Forget() = 0;  // what was agreed on
  // Somebody wants in, all have agreed on it with a step, and call Admit: one of them gives what it takes to go on from
  // here, which who comes Takes before its first step. It may be asked to do so in Recover, too.
  using Give = std::function<Result<std::string>()>;
  virtual void SetGive(Give give) { (void)give; }
  virtual bool admission_agreed() const { return false; }
  virtual Result<void> Admit() { return {}; }
  // It failed since all others have ended, but for too few to go on with: nobody else will keep what there is.
  virtual bool left_alone() const { return false; }
  virtual bool comes() const { return false; }  // this member is the one, and has nothing yet
  virtual Result<std::string> Take() { return std::string(); }
  virtual void SetProgress(double progress) = 0;

  // Sums of all members, in the order of ranks.
  virtual Result<std::vector<double>> Sum(const std::vector<double>& mine) { return mine; }
  virtual Result<void> Barrier() { return {}; }

  // Where the time went. Time until the rows of the next step were there is told, since a strategy cannot see it.
  virtual StepTimes times() const { return {}; }
  virtual void CountRead(base::Clock::Duration time) { (void)time; }
  // What a member of a parameter server has to tell of that.
  virtual std::optional<server::Report> report() { return std::nullopt; }
  // Which sums go by which algorithm, when that was chosen by size; else "".
  virtual std::string algorithms() const { return ""; }

  // What must be saved of this member beside parameters and optimizer, and back. The tensors borrow from this.
  virtual void Save(std::vector<data::Tensor>& tensors) const { (void)tensors; }
  virtual Result<void> Load(const data::TensorFile& file) {
    (void)file;
    return {};
  }
  // The same of what all members remember alike, for one that comes.
  virtual void SaveShared(std::vector<data::Tensor>& tensors) const { Save(tensors); }
  virtual Result<void> LoadShared(const data::TensorFile& file) { return Load(file); }
  // Adds what another member remembered for itself, who is gone, to what this one does.
  virtual Result<void> Merge(const data::TensorFile& file) {
    (void)file;
    return {};
  }
  // Where members come and go: brings what each remembers together, at the first, for it to Save for all.
  virtual Result<void> Collect() { return {}; }
};

using StrategyPtr = std::unique_ptr<Strategy>;

}  // namespace freshet::strategy
