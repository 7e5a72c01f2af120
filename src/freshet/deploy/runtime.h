#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "deploy/history.h"
#include "deploy/state.h"

namespace freshet::deploy {

// One training iteration (or several passes, for a retraining): which rows of the history, how often, how boldly.
struct Work {
  std::span<const std::uint64_t> numbers;  // the rows of the first pass, in its order
  int passes = 1;
  double scale = 1;        // of the learning rate
  std::uint64_t seed = 1;  // of the order of later passes
  const std::atomic<bool>* stop = nullptr;
  bool fresh = false;  // nobody has learned these rows yet: they count in the moments too (State::Learn), scale or not
};

struct WorkReport {
  std::uint64_t rows = 0;  // visited: one SGD step each
  double loss = 0;         // mean, before each step, of the last pass
};

// Where SGD runs. A run-time is handed a copy of the model and the rows to learn from, and nobody else touches that
// copy meanwhile.
//
// Threads: one Run at a time. Failure: kDiverged when the loss is no longer finite, kStopped after *stop.
class Runtime {
 public:
  virtual ~Runtime() = default;
  // Whether the same work always gives the same result. What does not (workers that wait for nobody) is not repeated
  // after a restart: what it made is kept.
  virtual bool repeats() const { return true; }
  virtual Result<WorkReport> Run(const model::Model& model, State& state, const History& history, const Work& work) = 0;
};

// On the calling thread.
class LocalRuntime final : public Runtime {
 public:
  Result<WorkReport> Run(const model::Model& model, State& state, const History& history, const Work& work) override;

 private:
  data::Rows rows_;
  std::vector<float> scores_;
};

}  // namespace freshet::deploy
