// freshet.train and what comes of it.

#include "training.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <unistd.h>

#include <mutex>

#include "attend.h"
#include "base/cores.h"
#include "base/thread_pool.h"
#include "data/table_reader.h"
#include "meeting.h"
#include "model.h"
#include "options.h"
#include "tables.h"
#include "train/event_file.h"
#include "train/job.h"
#include "world.h"

namespace nb = nanobind;

namespace freshet::python {
namespace {

std::atomic<int> g_runs{0};  // of this process, to tell their event files apart

// The latest of what a training thread tells, for the thread that has the interpreter.
class Bulletin {
 public:
  void Post(const train::Progress& progress) {
    const std::lock_guard lock(mutex_);
    latest_ = progress;
  }
  std::optional<train::Progress> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(latest_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::optional<train::Progress> latest_;  // guarded by the mutex
};

nb::object OrNone(const std::optional<double>& value) { return value ? nb::cast(*value) : nb::none(); }

nb::dict DictOf(const train::Progress& progress) {
  nb::dict out;
  out["epoch"] = progress.epoch;
  out["epochs"] = progress.epochs;
  out["rows"] = progress.rows;
  out["step"] = progress.step;
  out["loss"] = progress.mean_loss;
  out["error_rate"] = OrNone(progress.error_rate);
  out["rmse"] = OrNone(progress.rmse);
  out["fraction"] = OrNone(progress.fraction);
  out["seconds"] = progress.seconds;
  return out;
}

nb::dict ReportOf(const train::Outcome& outcome) {
  const train::Report& report = outcome.report;
  const model::Loss& loss = outcome.trained.model->loss();
  nb::dict out;
  out["rows"] = report.rows;
  out["epochs"] = report.epochs;
  out["seconds"] = report.seconds;
  out["update_seconds"] = report.update_seconds;
  out["bad_rows"] = outcome.bad_rows;
  out["stopped_early"] = report.stopped_early;
  out["optimizer"] = outcome.job.learning.optimizer;
  out["rate"] = outcome.job.learning.rate;
  out["batch"] = outcome.job.batch;
  out["progressive"] = python::DictOf(report.progressive, loss);
  if (report.epochs > 1) out["last_epoch"] = python::DictOf(report.last_epoch, loss);
  if (report.held_out) out["held_out"] = python::DictOf(*report.held_out, loss);
  out["workers"] = outcome.workers.size();
  nb::list notes;
  for (const std::string& note : outcome.trained.description.notes) notes.append(note);
  out["notes"] = notes;
  return out;
}

// Options that stand beside those of the job, and the job itself as they say.
void SetJob(const nb::dict& options, train::Job& job, std::string& tensorboard) {
  base::Settings settings;
  settings.Group("Result");
  settings.Add("tensorboard", &tensorboard, "write how it goes into this directory, for TensorBoard");
  settings.Add("trace", &job.trace, "what every worker did when, for Perfetto or chrome://tracing (JSON)");
  job.Register(settings);
  SetOptions(options, settings);
  job.said = settings.Given();
}

nb::tuple Train(nb::handle source, const nb::dict& options, const std::vector<std::string>& classes, int threads,
                nb::handle progress, Model* earlier, nb::handle place) {
  World& world = World::Get();
  train::Job job;
  std::string tensorboard;
  SetJob(options, job, tensorboard);
  const std::optional<fabric::TcpOptions> meeting = MeetingOf(place);
  const data::Input named = InputOf(source);
  job.input.paths = named.paths;
  job.input.table = named.table;
  if (!classes.empty()) job.input.options.classes = classes;
  std::atomic<bool> stop{false};
  Bulletin bulletin;
  train::Around around;
  around.stop = &stop;
  base::SystemClock clock;
  std::unique_ptr<train::EventFile> events;
  if (!tensorboard.empty())
    events = ValueOf(train::EventFile::Open(world.files(), clock, tensorboard, Str(getpid(), ".", ++g_runs)));
  around.progress = [&](const train::Progress& now) {
    bulletin.Post(now);
    if (events != nullptr) events->Add(now);
  };
  const auto tick = [&] {
    if (progress.is_none()) return;
    if (const auto now = bulletin.Take()) progress(DictOf(*now));
  };
  std::optional<model::TrainedModel> start;
  auto outcome = Attended<train::Outcome>(stop, tick, [&]() -> Result<train::Outcome> {
    base::ThreadPool pool(threads > 0 ? threads : base::AvailableCores(), &clock);
    if (earlier != nullptr) start = TRY(earlier->Copy(world.memory()));
    if (start) around.earlier = &*start;
    if (meeting) around.fabric = TRY(Meet(*meeting, stop, clock));
    return train::Run(world.env(pool), world.memory(), std::move(job), std::move(around));
  });
  tick();
  if (events != nullptr) ValueOf(events->End(outcome.report));
  const nb::dict report = ReportOf(outcome);
  return nb::make_tuple(nb::cast(new Model(std::move(outcome.trained)), nb::rv_policy::take_ownership), report);
}

// A model that has learned nothing yet, for rows like those of the table.
Result<std::unique_ptr<Model>> MakeCold(train::Job job) {
  World& world = World::Get();
  base::InlineExecutor executor;
  const base::Env env = world.env(executor);
  TRY(train::Check(env.files, job, 1));
  TRY(job.learning.ChooseTask(env.files, job.input));
  data::Description description;
  TRY(data::Open(env, job.input, description));
  job.learning.SettleDefaults(description);
  const auto config = TRY(job.learning.Config(description, env.log));
  auto model = TRY(model::Model::Make(config));
  if (job.input.scale_target && model->WantsScaledLabels()) description.target = data::Target::Moving();
  auto parameters = TRY(model->NewParameters(world.memory()));
  auto made =
      std::make_unique<Model>(model::TrainedModel{std::move(model), std::move(parameters), std::move(description), {}});
  made->SetLearning(job.learning);
  return made;
}

std::unique_ptr<Model> Cold(nb::handle source, const nb::dict& options, const std::vector<std::string>& classes) {
  train::Job job;
  std::string unused;
  SetJob(options, job, unused);
  job.input.table = InputOf(source).table;
  job.input.options.classes = classes;
  if (job.learning.optimizer == "lbfgs")
    Raise({Code::kInvalid,
           "optimizer lbfgs sees all rows at once; another one is needed to learn from some after others"});
  return ValueOf(MakeCold(std::move(job)));
}

}  // namespace

data::Input InputOf(nb::handle source) {
  data::Input input;
  if (nb::isinstance<Table>(source))
    input.table = nb::cast<Table&>(source).native;
  else
    input.paths = nb::cast<std::vector<std::string>>(source);
  return input;
}

nb::dict DictOf(const train::Evaluation& evaluation, const model::Loss& loss) {
  nb::dict out;
  out["rows"] = evaluation.rows();
  const bool log_loss = loss.name() == "logistic" || loss.name() == "softmax";
  out[log_loss ? "log_loss" : "loss"] = evaluation.loss();
  if (const auto error = evaluation.error_rate()) out["error_rate"] = *error;
  if (const auto auc = evaluation.auc()) out["auc"] = *auc;
  if (const auto rmse = evaluation.rmse()) out["rmse"] = *rmse;
  return out;
}

void BindTraining(nb::module_& module) {
  module.def("train", &Train, nb::arg("source"), nb::arg("options"), nb::arg("classes"), nb::arg("threads"),
             nb::arg("progress").none(), nb::arg("earlier").none(), nb::arg("place").none());
  module.def("cold", &Cold, nb::arg("source"), nb::arg("options"), nb::arg("classes"));
}

}  // namespace freshet::python
