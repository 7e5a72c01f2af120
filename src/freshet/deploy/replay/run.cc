#include "deploy/replay/run.h"

#include <algorithm>

#include "base/random.h"
#include "data/standardise.h"
#include "deploy/samplers/shuffle.h"

namespace freshet::deploy {
namespace {

constexpr std::size_t kPoints = 200;  // of a curve, about

Result<void> GoOn(const ReplayOptions& options) {
  if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed)) return Error{Code::kStopped, "stopped"};
  return {};
}

std::optional<std::pair<float, float>> ClipOf(const Feed& feed) {
  if (!feed.ratings()) return std::nullopt;
  return std::pair(feed.least_label, feed.most_label);
}

// Rows hold numbers already, so that nobody needs the names.
data::Description Nameless(data::Description description) {
  for (data::Dictionary& dictionary : description.dictionaries) dictionary = {};
  return description;
}

data::Rows EmptyRows(const Feed& feed) {
  data::Rows rows;
  rows.width = feed.rows.width;
  rows.ClearRows();
  return rows;
}

// Of what the model begins with; where that is nothing, of what comes.
data::Target TargetOf(const Course& course, std::span<const std::uint64_t> arrivals) {
  data::Rows rows = EmptyRows(course.feed());
  for (const std::uint64_t arrival : arrivals) course.Append(arrival, rows);
  const auto labels = rows.labels.span();
  return labels.empty() ? data::Target::Moving() : data::Target::Of({labels.begin(), labels.end()});
}

Result<std::unique_ptr<model::Model>> ModelFor(const ReplayOptions& options, std::uint64_t seed) {
  model::ModelConfig config = options.model;
  config.seed = seed;
  return model::Model::Make(config);
}

// One method on its way through a course.
class Run {
 public:
  Run(const base::Env& env, const ReplayOptions& options, const Course& course, Method method, std::uint64_t seed)
      : env_(env), options_(options), course_(course), test_(course) {
    run_.method = method;
    run_.seed = seed;
  }

  Result<ReplayRun> Go(const ReplayStart& start) {
    TRY(Open(start));
    run_.steps = start.steps;
    run_.seconds = start.seconds;
    const auto began = env_.clock.Now();
    next_point_ = course_.initial() + (course_.size() - course_.initial()) / kPoints;
    const std::size_t last_tenth = course_.size() - (course_.size() - course_.initial()) / 10;
    for (std::size_t arrival = 0; arrival < course_.initial(); ++arrival)
      if (course_.tested(arrival)) test_.Add(arrival);
    for (std::size_t arrival = course_.initial(); arrival < course_.size(); ++arrival) {
      TRY(GoOn(options_));
      if (arrival == last_tenth) at_last_tenth_ = deployment_->stats().quality;
      if (course_.tested(arrival))
        MeetTest(arrival);
      else
        Send(arrival);
      if (arrival + 1 == course_.size() || arrival >= next_point_) Mark(arrival + 1);
    }
    run_.wall_seconds = base::Seconds(env_.clock.Now() - began);
    Finish();
    return std::move(run_);
  }

 private:
  Result<void> Open(const ReplayStart& start) {
    const Feed& feed = course_.feed();
    DeploymentOptions options = options_.deployment;
    options.directory = "";
    options.method = run_.method;
    options.seed = options.data.seed = run_.seed;
    options.data.remembered_ids = 1;
    if (const auto clip = ClipOf(feed)) options.clip = *clip;
    if (run_.method != Method::kContinuous && !options_.all_answer_drift)
      options.drift_keep = 1, options.drift_forget = false;
    auto model = TRY(ModelFor(options_, run_.seed));
    auto parameters = TRY(model->NewParameters(memory_));
    auto state = TRY(State::Make(*model, options.optimizer, memory_, start.state->moments));
    TRY(state->CopyFrom(*start.state));
    deployment_ = TRY(Deployment::Open(env_, options, runtime_, memory_,
                                       {std::move(model), std::move(parameters), Nameless(feed.description), {}}, {}));
    data::Rows past = EmptyRows(feed);
    TRY(course_.Read(course_.Trained(0, course_.initial()), past));
    return deployment_->BeginWith(std::move(state), past);
  }

  void MeetTest(std::size_t arrival) {
    test_.Add(arrival);
    if (test_.size() % options_.test_every != 0) return;
    last_error_ = test_.Error(deployment_->model(), deployment_->models().state());
    errors_ += last_error_;
    ++tests_;
  }

  void Send(std::size_t arrival) {
    data::Rows rows = EmptyRows(course_.feed());
    course_.Append(arrival, rows);
    deployment_->PostLearn(std::move(rows), {}, {}, [](const Result<LearnReply>& reply) { CHECK(reply.ok()); });
    deployment_->Settle();
  }

  // A point of the curve.
  void Mark(std::size_t arrived) {
    next_point_ = arrived + (course_.size() - course_.initial()) / kPoints;
    if (options_.course.test_rows > 0) {
      if (tests_ > 0) run_.curve.push_back({arrived, last_error_, errors_ / static_cast<double>(tests_)});
    } else {
      const Quality quality = deployment_->stats().quality;
      if (quality.rows > marked_.rows) run_.curve.push_back({arrived, Since(quality, marked_), quality.mean()});
      marked_ = quality;
    }
    const Stats stats = deployment_->stats();
    if (stats.drifts > drifts_) run_.drifts_at.push_back(arrived);
    if (run_.method == Method::kVelox && stats.iterations > retrainings_) run_.retrained_at.push_back(arrived);
    drifts_ = stats.drifts;
    retrainings_ = stats.iterations;
    if (options_.progress && !run_.curve.empty())
      options_.progress({run_.method, run_.seed, arrived, course_.size(), run_.curve.back().mean});
  }

  static double Since(const Quality& now, const Quality& then) {
    return now.rows > then.rows ? (now.sum - then.sum) / (now.rows - then.rows) : 0;
  }

  void Finish() {
    const Stats stats = deployment_->stats();
    if (options_.course.test_rows > 0) {
      run_.mean_error = tests_ > 0 ? errors_ / static_cast<double>(tests_) : 0;
      run_.final_error = last_error_;
    } else {
      run_.mean_error = stats.quality.mean();
      run_.final_error = Since(stats.quality, at_last_tenth_);
    }
    run_.steps += stats.iteration_rows;
    run_.seconds += stats.iteration_seconds;
    run_.longest = stats.longest_iteration;
    run_.iterations = stats.iterations;
    run_.given_up = stats.given_up;
    run_.drifts = stats.drifts;
    run_.problem = stats.problem;
  }

  const base::Env& env_;
  const ReplayOptions& options_;
  const Course& course_;
  optimize::HeapMemory memory_;
  LocalRuntime runtime_;
  std::unique_ptr<Deployment> deployment_;
  TestSet test_;
  ReplayRun run_;
  std::size_t next_point_ = 0;
  std::uint64_t tests_ = 0, drifts_ = 0, retrainings_ = 0;
  double errors_ = 0, last_error_ = 0;
  Quality marked_, at_last_tenth_;
};

}  // namespace

Result<ReplayStart> NewStart(const ReplayOptions& options, optimize::Memory& memory, const Course& course,
                             std::span<const std::uint64_t> rows, std::uint64_t seed) {
  ReplayStart start;
  start.model = TRY(ModelFor(options, seed));
  const data::Description& description = course.feed().description;
  data::Moments moments;
  if (description.standardise) {
    moments = data::Moments(description.moments.columns());
    data::Rows one = EmptyRows(course.feed());
    for (const std::uint64_t arrival : rows) {
      one.ClearRows();
      course.Append(arrival, one);
      data::Standardise(moments, one);
    }
  }
  start.state = TRY(State::Make(*start.model, options.deployment.optimizer, memory, moments));
  if (options.scale_target && start.model->WantsScaledLabels()) start.state->target = TargetOf(course, rows);
  return start;
}

Result<ReplayStart> TrainStart(const base::Env& env, const ReplayOptions& options, optimize::Memory& memory,
                               const Course& course, std::size_t end, std::uint64_t seed) {
  TRY(GoOn(options));
  std::vector<std::uint64_t> arrivals = course.Trained(0, end);
  const auto began = env.clock.Now();
  ReplayStart start = TRY(NewStart(options, memory, course, arrivals, seed));
  if (arrivals.empty()) return start;  // it begins with nothing
  base::Random random(seed, "initial training");
  Shuffle(arrivals, random);
  LocalRuntime runtime;
  const WorkReport report =
      TRY(runtime.Run(*start.model, *start.state, course, {arrivals, options.initial_epochs, 1, seed, options.stop}));
  start.steps = report.rows;
  start.seconds = base::Seconds(env.clock.Now() - began);
  return start;
}

TestSet::TestSet(const Course& course)
    : course_(course),
      task_(course.feed().description.labels.kind),
      clip_(ClipOf(course.feed())),
      rows_(EmptyRows(course.feed())),
      standardised_(EmptyRows(course.feed())) {}

void TestSet::Add(std::size_t arrival) { course_.Append(arrival, rows_); }

double TestSet::Error(const model::Model& model, const State& state) {
  const data::Rows* rows = &rows_;
  if (state.moments.columns() > 0) {
    standardised_.ClearRows();
    for (std::size_t r = 0; r < rows_.size(); ++r) standardised_.AppendRow(rows_.batch(), r);
    data::ApplyMoments(state.moments, standardised_);
    rows = &standardised_;
  }
  const std::size_t k = model.scores();
  scores_.resize(rows->size() * k);
  state.Predict(model, rows->batch(), workspace_, scores_);
  double sum = 0;
  for (std::size_t r = 0; r < rows->size(); ++r) {
    if (clip_) scores_[r] = std::clamp(scores_[r], clip_->first, clip_->second);
    sum += ErrorOf(task_, std::span(scores_).subspan(r * k, k), rows->labels[r]);
  }
  return rows->size() > 0 ? sum / static_cast<double>(rows->size()) : 0;
}

Result<ReplayRun> RunMethod(const base::Env& env, const ReplayOptions& options, const Course& course,
                            const ReplayStart& start, Method method, std::uint64_t seed) {
  return Run(env, options, course, method, seed).Go(start);
}

Result<ReplayRun> RunStatic(const base::Env& env, const ReplayOptions& options, const Course& course,
                            std::uint64_t seed) {
  optimize::HeapMemory memory;
  const ReplayStart trained = TRY(TrainStart(env, options, memory, course, course.size(), seed));
  TestSet test(course);
  for (std::size_t arrival = 0; arrival < course.size(); ++arrival)
    if (options.course.test_rows > 0 ? course.tested(arrival) : arrival >= course.initial()) test.Add(arrival);
  ReplayRun run;
  run.seed = seed;
  run.mean_error = run.final_error = test.Error(*trained.model, *trained.state);
  run.steps = trained.steps;
  run.seconds = trained.seconds;
  return run;
}

}  // namespace freshet::deploy
