#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "strategy/ring/head_deltas.h"
#include "strategy/ring/laps.h"
#include "strategy/ring/schedule.h"
#include "strategy/ring/stage.h"
#include "strategy/ring/traffic.h"

namespace freshet::strategy::ring {

// One step of a member: the micro-batches of an update on their way through the stages it holds, forward and back.
//
// Waits only for neighbours, at the place in the schedule where something of theirs is needed; what it sends is on its
// way while it computes. Ownership: borrows all it is given. Threads: one. Failure: as the fabric's, or kInvalid when
// there is no memory for micro-batches of this size.
class Pass {
 public:
  struct Learned {
    const optimize::Parameters& parameters;
    optimize::Gradient& gradient;  // added to
    const model::network::HeadLoss& head_loss;
    Tidings& tidings;  // gets loss and scores of the network's answer, where a stage here has it; has room for them
  };
  struct Rows {
    const data::Batch& piece;      // all rows of the update
    const float* input = nullptr;  // as the network reads them; null: no stage here needs them
    std::size_t width = 0;         // of the input
    std::size_t micros = 1;
    std::uint64_t seed = 1, step = 0;  // of what is drawn at random
    // Else micro-batches of other updates are under way in the same places, of which there were so many.
    bool alone = true;
    std::size_t before = 0;
  };
  // Told what the member did when: "forward", "backward" or "wait", of which micro-batch in which stage.
  using Told = std::function<void(const char* what, const Action& action, base::Clock::Duration begin)>;

  // `stages` are the member's own, in the order of the network: every members-th from `member` on.
  Pass(const Schedule& schedule, int member, std::span<Stage> stages, const Learned& learned, const Rows& rows,
       Traffic& traffic, const base::Clock& clock, Told told);

  // Makes room, and lets as many micro-batches arrive as there are places.
  Result<void> Begin();
  Result<void> Do(const Action& action);

  // The same piece by piece, where micro-batches of another update are under way in the same places.
  Result<bool> LetArrive();  // one more, for which there is a place; false when there is none. Of one stage
  // The parameters lie elsewhere from now on.
  void See(const optimize::Parameters& parameters) { parameters_ = &parameters; }

 private:
  using Handles = std::vector<Traffic::Handle>;
  // A stage and what is on its way from and to its neighbours, by place of the micro-batch among those under way.
  struct Lane {
    Stage* stage = nullptr;
    int number = 0;
    std::size_t depth = 1, depth_before = 1;
    std::size_t opened = 0;  // micro-batches that may arrive
    std::vector<Handles> arriving = {}, sent_on = {}, coming_back = {}, sent_back = {};
  };

  Result<void> Open(Lane& lane);
  Result<void> Forward(Lane& lane, const Action& action);
  Result<void> Backward(Lane& lane, const Action& action);
  Result<void> WaitFor(Handles& arriving, Handles& left, const Action& action);
  // Loss and deltas at the heads here; with `tell`, for the tidings, too.
  void MakeDeltas(Lane& lane, std::size_t micro, bool tell);
  data::Batch RowsOf(std::size_t micro) const { return rows_.piece.Slice(FirstRow(micro), FirstRow(micro + 1)); }
  const float* InputOf(std::size_t micro) const {
    return rows_.input == nullptr ? nullptr : rows_.input + FirstRow(micro) * rows_.width;
  }
  std::size_t FirstRow(std::size_t micro) const { return rows_.piece.rows * micro / rows_.micros; }
  fabric::Tag PlaceOf(int edge, std::size_t tensor) const;

  const Schedule& schedule_;
  const Learned learned_;
  const optimize::Parameters* parameters_;
  const Rows rows_;
  Traffic& traffic_;
  const base::Clock& clock_;
  const Told told_;
  std::vector<Lane> lanes_;
  HeadDeltas head_deltas_;
};

}  // namespace freshet::strategy::ring
