#include "deploy/replay/replay.h"

#include <algorithm>
#include <iterator>

#include "base/mutex.h"
#include "deploy/replay/run.h"

namespace freshet::deploy {
namespace {

// Runs tasks side by side: what each returns, or the first error in their order.
template <class T, class Task>
Result<std::vector<T>> RunAll(base::Executor& executor, std::size_t count, const Task& task) {
  std::vector<T> values(count);
  std::vector<std::optional<Error>> errors(count);
  executor.Run(static_cast<int>(count), [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    auto result = task(at);
    if (result.ok())
      values[at] = std::move(result).value();
    else
      errors[at] = result.error();
  });
  for (const auto& error : errors)
    if (error) return *error;
  return values;
}

// The runs of some seeds, appended to the report.
Result<void> RunSeeds(const base::Env& env, ReplayOptions options, const Feed& feed, std::uint64_t seed,
                      std::size_t seeds, ReplayReport& report) {
  optimize::HeapMemory memory;
  std::vector<Course> courses;
  for (std::size_t s = 0; s < seeds; ++s) {
    options.course.seed = seed + s;
    courses.push_back(TRY(Course::Make(feed, options.course)));
  }
  report.rows = feed.size();
  report.initial = courses[0].initial();
  report.test_rows = options.course.test_rows;
  std::uint64_t& retrain_rows = options.deployment.retrain_rows;
  if (retrain_rows == 0 && options.deployment.retrain_error == 0)
    retrain_rows = (feed.size() - courses[0].initial()) / 6 + 1;
  report.retrain_rows = retrain_rows;
  const auto starts = TRY(RunAll<ReplayStart>(env.executor, seeds, [&](std::size_t s) {
    return TrainStart(env, options, memory, courses[s], courses[s].initial(), seed + s);
  }));
  const std::size_t methods = options.methods.size();
  auto runs = TRY(RunAll<ReplayRun>(env.executor, seeds * methods, [&](std::size_t i) {
    const std::size_t s = i / methods;
    const Method method = options.methods[i % methods];
    if (method == Method::kStatic) return RunStatic(env, options, courses[s], seed + s);
    return RunMethod(env, options, courses[s], starts[s], method, seed + s);
  }));
  std::move(runs.begin(), runs.end(), std::back_inserter(report.runs));
  return {};
}

}  // namespace

Result<void> ReplayOptions::Validate() const {
  std::vector<std::string> wrong;
  if (methods.empty()) wrong.emplace_back("no method to replay");
  if (initial_epochs < 1) wrong.push_back(Str("initial epochs ", initial_epochs, ": expected 1 or more"));
  if (test_every < 1) wrong.emplace_back("the test set is evaluated every 0 increments: expected 1 or more");
  if (seeds < 1) wrong.push_back(Str("seeds ", seeds, ": expected 1 or more"));
  const auto made = model::Model::Make(model);  // a model that cannot be made is refused where it is
  if (made.ok() && made.value()->traits().answers_clusters)
    wrong.push_back(Str(model.kind, " has no labels to be wrong about; replay needs a model that has"));
  if (!wrong.empty()) return Error{Code::kInvalid, Join(wrong, "; ")};
  return {};
}

Result<ReplayReport> Replay(const base::Env& env, const ReplayOptions& given, const Feed& feed) {
  TRY(given.Validate());
  base::Mutex mutex;  // guards the progress callback
  ReplayOptions options = given;
  if (given.progress)
    options.progress = [&](const ReplayProgress& progress) {
      const base::Lock lock(mutex);
      given.progress(progress);
    };
  ReplayReport report;
  const auto seeds = static_cast<std::uint64_t>(options.seeds);
  // A few seeds at a time, so that memory does not grow with their number.
  const std::uint64_t wave = 4 * static_cast<std::uint64_t>(env.executor.width());
  for (std::uint64_t first = 0; first < seeds; first += wave)
    TRY(RunSeeds(env, options, feed, options.seed + first, std::min(wave, seeds - first), report));
  return report;
}

}  // namespace freshet::deploy
