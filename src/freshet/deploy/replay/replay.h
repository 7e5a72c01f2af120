#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/env.h"
#include "deploy/deployment.h"
#include "deploy/replay/feed.h"

namespace freshet::deploy {

// How far one run of a replay is; told from the thread it runs on, one at a time.
struct ReplayProgress {
  Method method = Method::kStatic;
  std::uint64_t seed = 0;
  std::size_t arrived = 0, rows = 0;  // of the feed
  double error = 0;                   // mean so far
};

struct ReplayOptions {
  std::vector<Method> methods = {Method::kBaseline, Method::kBaselinePlus, Method::kVelox, Method::kContinuous,
                                 Method::kStatic};
  model::ModelConfig model;
  // Of every method; method, directory, seed and clip are set here. retrain_rows 0: five retrainings, one after each
  // sixth of what arrives, unless retrain_error is set.
  DeploymentOptions deployment;
  Course::Options course;  // its seed is that of the run
  int initial_epochs = 1;
  bool scale_target = true;       // numbers are learned centred and scaled (data::Target), as the initial part has them
  bool all_answer_drift = false;  // also baseline+ and velox, by what `deployment` says about it
  std::uint64_t test_every = 1;   // test increments from one evaluation of the test set to the next
  std::uint64_t seed = 1;         // of the first run
  int seeds = 1;                  // runs with seed, seed + 1, …
  std::function<void(const ReplayProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;

  Result<void> Validate() const;
};

// A place of a learning curve.
struct ReplayPoint {
  std::size_t arrived = 0;  // rows of the feed so far
  double error = 0;         // with test rows: over those so far; without: of the arrivals since the last point
  double mean = 0;          // of all errors so far
};

// What one method did with one seed. Errors: the share of wrong classes or the mean squared error. With test rows, the
// error of the model as of then over all that have come so far, at every test_every-th of them; without, of each
// arrival before it was learned. Steps and seconds are those of training: the initial one included, updates by single
// arrivals not.
struct ReplayRun {
  Method method = Method::kStatic;
  std::uint64_t seed = 0;
  double mean_error = 0;   // over all of these
  double final_error = 0;  // with test rows: the last; without: over the last tenth of the arrivals
  std::uint64_t steps = 0;
  double seconds = 0, longest = 0;  // longest: of iterations or retrainings
  std::uint64_t iterations = 0, given_up = 0, drifts = 0;
  double wall_seconds = 0;  // from the first arrival to the last, with updates and tests
  std::string problem;
  std::vector<ReplayPoint> curve;
  std::vector<std::size_t> drifts_at, retrained_at;  // arrivals by then, as exactly as the curve has points
};

struct ReplayReport {
  std::size_t rows = 0, initial = 0, test_rows = 0;
  std::uint64_t retrain_rows = 0;  // in force
  std::vector<ReplayRun> runs;     // seed after seed, each with its methods in the order asked for
};

// A method over all seeds. Ratios are taken seed by seed.
struct Spread {
  double mean = 0, deviation = 0;
};
struct MethodSummary {
  Method method = Method::kStatic;
  Spread mean_error, final_error;
  double steps = 0, seconds = 0, iterations = 0;  // means
  double longest = 0;                             // the longest of all
  std::optional<Spread> error_to_velox, steps_to_velox;
};
std::vector<MethodSummary> Summarise(const ReplayReport& report);

// Sends a feed through deployments kept up to date by different methods: the experiments of "Continuous Training of
// Large Scale Machine Learning Models", section 6. All methods of a seed begin with the same initial model, meet the
// same arrivals in the same order and are tested on the same rows, and everything but the seconds is the same whenever
// it is run, whatever the executor's width. A model of method static is trained once on everything; its error is that
// over the arrivals (or the test rows) afterwards.
//
// Threads: the runs are spread over env's executor; blocks until all are done. Memory: each run holds the feed once.
// Failure: kStopped after *stop; the first error of a run, in their order.
Result<ReplayReport> Replay(const base::Env& env, const ReplayOptions& options, const Feed& feed);

}  // namespace freshet::deploy
