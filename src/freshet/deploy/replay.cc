#include "deploy/replay.h"

#include <mutex>

#include "deploy/replay_run.h"

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

}  // namespace

Result<void> ReplayOptions::Validate() const {
  std::vector<std::string> wrong;
  if (methods.empty()) wrong.emplace_back("no method to replay");
  if (initial_epochs < 1) wrong.push_back(Str("initial epochs ", initial_epochs, ": expected 1 or more"));
  if (test_every < 1) wrong.emplace_back("the test set is evaluated every 0 increments: expected 1 or more");
  if (seeds < 1) wrong.push_back(Str("seeds ", seeds, ": expected 1 or more"));
  if (model.kind == "kmeans")
    wrong.emplace_back("kmeans has no labels to be wrong about; replay needs a model that has");
  if (!wrong.empty()) return Error{Code::kInvalid, Join(wrong, "; ")};
  return {};
}

Result<ReplayReport> Replay(const base::Env& env, const ReplayOptions& given, const Stream& stream) {
  TRY(given.Validate());
  std::mutex mutex;  // guards the progress callback
  ReplayOptions options = given;
  if (given.progress)
    options.progress = [&](const ReplayProgress& progress) {
      const std::lock_guard lock(mutex);
      given.progress(progress);
    };
  const auto seeds = static_cast<std::size_t>(options.seeds);
  const std::size_t methods = options.methods.size();
  optimize::HeapMemory memory;
  std::vector<Course> courses;
  for (std::size_t s = 0; s < seeds; ++s) {
    Course::Options course = options.course;
    course.seed = options.seed + s;
    courses.push_back(TRY(Course::Make(stream, course)));
  }
  if (options.deployment.retrain_rows == 0 && options.deployment.retrain_error == 0)
    options.deployment.retrain_rows = (stream.size() - courses[0].initial()) / 6 + 1;
  const std::vector<ReplayStart> starts = TRY(RunAll<ReplayStart>(env.executor, seeds, [&](std::size_t s) {
    return TrainStart(env, options, memory, courses[s], courses[s].initial(), options.seed + s);
  }));
  ReplayReport report;
  report.retrain_rows = options.deployment.retrain_rows;
  report.rows = stream.size();
  report.initial = courses[0].initial();
  report.test_rows = options.course.test_rows;
  report.runs = TRY(RunAll<ReplayRun>(env.executor, seeds * methods, [&](std::size_t i) {
    const std::size_t s = i / methods;
    const Method method = options.methods[i % methods];
    if (method == Method::kStatic) return RunStatic(env, options, courses[s], options.seed + s);
    return RunMethod(env, options, courses[s], starts[s], method, options.seed + s);
  }));
  return report;
}

}  // namespace freshet::deploy
