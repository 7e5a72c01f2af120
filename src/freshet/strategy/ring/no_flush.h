#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "strategy/ring/laps.h"
#include "strategy/ring/own_layers.h"
#include "strategy/ring/pass.h"
#include "strategy/ring/plan.h"

namespace freshet::strategy::ring {

// Updates of a pipeline that does not run empty between them: while the last micro-batches of one are on their way back,
// the first of the next go forward. Each goes back through the weights that it saw on its way forward; members keep the
// weights before the last update for that. So the gradient of every update is of weights that are one update older than
// those it changes, on every member, and of none where the pipeline has run empty before (Drain).
//
// The schedule is that of 1f1b which never ends: member i of p has p - i - 1 micro-batches ahead.
//
// Threads: one. Ownership: borrows all it is given. Failure: as the fabric's; then, or where it ends with micro-batches
// under way, the group has ended.
class NoFlush {
 public:
  struct World {
    fabric::Fabric& fabric;
    std::vector<Stage>& stages;  // one
    OwnLayers& own;
    const model::network::HeadLoss& head_loss;
    Packing& packing;
    const base::Clock& clock;
    std::size_t micro_rows = 1;  // at most
    Pass::Told told;
  };
  // An update that is done: what was agreed on with it, and how much older its weights were.
  struct Done {
    bool stop = false, save = false;
    std::size_t stale = 0;
    std::uint64_t bytes_next = 0, bytes_back = 0;
  };
  // Makes an update of the gradient there is, of rows of that weight, at that progress.
  using Apply = std::function<Result<void>(double weight, double progress)>;

  NoFlush(const World& world, Apply apply);
  ~NoFlush();

  // The rows of an update, of which the rows themselves need last no longer than the call.
  struct Update {
    const data::Batch& piece;
    const float* input = nullptr;  // as Pass::Rows
    std::size_t width = 0, micros = 1;
    std::uint64_t seed = 1;
    double weight = 0, progress = 0;
    bool stop = false, save = false;  // wishes
  };
  // Starts an update, and goes on with the one before until that is done. `tidings` get loss and scores where the answer
  // is made here.
  Result<void> Step(const Update& update, fabric::Tag tag, Tidings& tidings);
  // Brings all back that is under way. All members do so after the same step.
  Result<void> Drain();
  // Updates that are done on all members whenever they have come as far, in their order; the others are kept.
  std::vector<Done> TakeDone();

 private:
  struct Flight;
  Result<void> BackOne();
  Result<void> Finish(Flight& flight);

  const World world_;
  const Apply apply_;
  const Schedule schedule_;  // of which the depths matter
  const std::size_t ahead_;
  std::deque<std::unique_ptr<Flight>> flights_;  // the oldest first; of which not all are back
  std::size_t under_way_ = 0;                    // micro-batches that are forward, and not back
  std::size_t opened_ = 0;                       // the same, and those that may arrive
  std::size_t numbered_ = 0;                     // micro-batches so far
  std::uint64_t step_ = 0;                       // of the next update
  bool empty_ = true;                            // it has run empty, or has not begun
  std::vector<Done> done_;
  bool knows_last_ = false;  // the last update that was begun is done here; elsewhere it may not be
};

}  // namespace freshet::strategy::ring
