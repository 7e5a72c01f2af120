#pragma once

#include <memory>

#include "deploy/replay/replay.h"
#include "deploy/state.h"

// Private to replay*.cc: one run of a replay.
namespace freshet::deploy {

// A model trained on the initial part of a course, on all of it, or not yet.
struct ReplayStart {
  std::unique_ptr<model::Model> model;
  std::unique_ptr<State> state;
  std::uint64_t steps = 0;
  double seconds = 0;
};
// At its starting values, but for the moments, which are those of these rows.
Result<ReplayStart> NewStart(const ReplayOptions& options, optimize::Memory& memory, const Course& course,
                             std::span<const std::uint64_t> rows, std::uint64_t seed);
Result<ReplayStart> TrainStart(const base::Env& env, const ReplayOptions& options, optimize::Memory& memory,
                               const Course& course, std::size_t end, std::uint64_t seed);

// Rows that a model is tested on and never sees.
class TestSet {
 public:
  explicit TestSet(const Course& course);
  void Add(std::size_t arrival);
  std::size_t size() const { return rows_.size(); }
  // The mean error over all rows.
  double Error(const model::Model& model, const State& state);

 private:
  const Course& course_;
  const data::Labels::Kind task_;
  const std::optional<std::pair<float, float>> clip_;
  data::Rows rows_, standardised_;
  model::Workspace workspace_;
  std::vector<float> scores_;
};

// `start` is copied.
Result<ReplayRun> RunMethod(const base::Env& env, const ReplayOptions& options, const Course& course,
                            const ReplayStart& start, Method method, std::uint64_t seed);
Result<ReplayRun> RunStatic(const base::Env& env, const ReplayOptions& options, const Course& course,
                            std::uint64_t seed);

}  // namespace freshet::deploy
