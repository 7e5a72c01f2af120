#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "fabric/collectives/transfers.h"
#include "strategy/modules/assembly.h"
#include "strategy/ring/head_deltas.h"
#include "strategy/ring/schedule.h"

namespace freshet::strategy::modules {

// One update of a member: its micro-batches on their way through the modules it holds, forward and back, in the order of a
// schedule (order.h). A tensor goes from the module that makes it straight to each that reads it, and gradients come back
// the same way; where several read it they are added in the order of the modules.
//
// Waits only for what comes before in the schedule; what it sends is on its way while it computes. Ownership: borrows all
// it is given. Threads: one. Failure: as the fabric's, or kInvalid when there is no memory.
class Pass {
 public:
  struct World {
    const Assembly& assembly;
    const ring::Schedule& schedule;
    int member = 0;
    std::span<ring::Stage> stages;  // the member's modules, in their order
    const optimize::Parameters& parameters;
    optimize::Gradient& gradient;  // added to
    const model::network::HeadLoss& head_loss;
    const base::Clock& clock;
  };
  struct Rows {
    const data::Batch& piece;      // of the update
    const float* input = nullptr;  // as the network reads them; null: no module here needs them
    std::size_t width = 0;         // of the input
    std::size_t micros = 1;
    std::uint64_t seed = 1, step = 0;  // of what is drawn at random
  };
  // Told what the member did when: "forward", "backward" or "wait", of which micro-batch in which module.
  using Told = std::function<void(const char* what, const ring::Action& action, base::Clock::Duration begin)>;

  Pass(const World& world, const Rows& rows, fabric::Transfers& transfers, Told told);

  // Does all of it. Where the network's answer is made, adds its loss to `loss` and copies its scores.
  Result<void> Run(double& loss, std::span<float> scores);

  std::uint64_t sent_on() const { return sent_on_; }      // bytes of tensors
  std::uint64_t sent_back() const { return sent_back_; }  // and of their gradients

 private:
  using Handles = std::vector<fabric::Transfers::Handle>;
  // A module of this member and what is on its way from and to it, by place of the micro-batch among those under way.
  struct Lane {
    std::size_t module = 0;
    ring::Stage* stage = nullptr;
    std::size_t depth = 1, opened = 0;
    std::vector<Handles> arriving = {}, sent_on = {}, coming_back = {}, sent_back = {};
    // Gradients from all readers but the first, of each place, tensor that leaves, and reader.
    std::vector<std::vector<std::vector<std::vector<float>>>> more = {};
  };

  Result<void> Open(Lane& lane);
  Result<void> Forward(Lane& lane, const ring::Action& action);
  Result<void> Backward(Lane& lane, const ring::Action& action);
  Result<void> WaitFor(const std::vector<Handles*>& what, const ring::Action& action);
  const Module& ModuleOf(const Lane& lane) const { return world_.assembly.modules[lane.module]; }
  Lane* LaneOf(std::size_t module);  // null: another member's
  // Where the gradient of a leaving tensor comes to that a reader gives, the how-manieth of the tensor's.
  std::span<float> GradientPlace(Lane& lane, std::size_t leaving, std::size_t reader, std::size_t micro);
  fabric::Tag Part(std::size_t link, std::size_t reader, bool back) const;
  std::size_t FirstRow(std::size_t micro) const { return rows_.piece.rows * micro / rows_.micros; }
  data::Batch RowsOf(std::size_t micro) const { return rows_.piece.Slice(FirstRow(micro), FirstRow(micro + 1)); }
  const float* InputOf(std::size_t micro) const {
    return rows_.input == nullptr ? nullptr : rows_.input + FirstRow(micro) * rows_.width;
  }

  const World world_;
  const Rows rows_;
  fabric::Transfers& transfers_;
  const Told told_;
  ring::HeadDeltas head_deltas_;
  std::vector<Lane> lanes_;
  double* loss_ = nullptr;
  std::span<float> scores_;
  std::uint64_t sent_on_ = 0, sent_back_ = 0;
};

}  // namespace freshet::strategy::modules
