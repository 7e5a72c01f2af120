#include "train/job.h"

#include <algorithm>

#include "base/option.h"
#include "base/writable.h"
#include "data/table.h"
#include "optimize/scratch_memory.h"
#include "train/agreement.h"
#include "train/belonging.h"
#include "train/evaluate.h"
#include "train/job_parts.h"

namespace freshet::train {
namespace {

// What is read, for whoever resumes the run. When a file was written does not matter, only what is in it; of what
// cannot be looked at twice (a pipe) nothing is known.
std::string Account(base::Files& files, const data::Input& input) {
  if (input.table != nullptr) return Str(Grouped(input.table->rows()), " rows in memory\n");
  const auto accounts = LookAt(files, input.Resolved());
  if (!accounts.ok()) return "";
  std::string lines;
  for (const FileAccount& file : accounts.value())
    lines += Str(file.path, " of ", Grouped(file.bytes), file.folder ? " files" : " bytes", ", checksum ",
                 file.checksum, "\n");
  return lines;
}

// The same without the paths, which hosts may know by other names.
std::string Contents(base::Files& files, const std::vector<std::string>& patterns) {
  const auto accounts = LookAt(files, patterns);
  std::string lines;
  if (accounts.ok())
    for (const FileAccount& file : accounts.value())
      lines += Str("data = ", file.bytes, file.folder ? " files" : " bytes", ", checksum ", file.checksum, "\n");
  return lines;
}

// Before anything is read: all have the same settings and, unless each has its own, the same files.
Result<void> CompareWorkers(base::Files& files, const Job& job, Members& members) {
  TRY(AgreeOnSettings(members, "settings", CommonSettings(job)));
  const std::string& split = job.together.split;
  return AgreeOnFiles(members, split == "auto" ? "rows" : split,
                      job.together.own() ? std::vector<FileAccount>() : TRY(LookAt(files, job.input.Resolved())));
}

// Names are numbered while rows are read, and each worker would number those of its own share: all look at theirs
// first, so that nobody may have one that can be read only once.
Result<void> CheckNames(base::Files& files, const data::Input& input, const data::Description& description,
                        Members& members) {
  if (description.dictionaries.empty()) return {};
  const auto once = TRY(members.Tell("inputs that can be read once", input.Once(files)));
  const bool ratings = description.format == "ratings";
  for (std::size_t rank = 0; rank < once.size(); ++rank)
    if (!once[rank].empty())
      return members.Refuse(Str(Option("split"), " own: ", members.Name(rank), " has ", once[rank],
                                ", which can be read only once, and ", ratings ? "users and items" : "categories",
                                " are looked for before training, to be numbered alike; give it a file",
                                ratings ? "" : Str(", or hash them with ", Option("bits"), " 18")));
  return {};
}

// What all workers begin with, as far as files told it.
std::string CommonStart(const Start& start) {
  return Str("input = ", start.description.ToJson(), "\nmodel = ", start.config.ToJson(),
             "\nchecksum of the weights of ", Option("from"), " = ",
             start.earlier == nullptr ? 0 : start.earlier->parameters.Checksum(), "\n");
}

// Begins with an earlier model: its input, its kind and its loss.
Result<void> BeginWith(const model::TrainedModel& earlier, Start& start) {
  Job& job = start.job;
  start.earlier = &earlier;
  start.description = earlier.description;
  if (!job.input.scale_target && earlier.description.target.any())
    return Error{Code::kInvalid, Str(Option("no-scale-target"), ": ", job.from,
                                     " has learned scaled numbers and goes on with them; leave out one of the two")};
  job.learning.model = earlier.model->config().kind;
  job.learning.loss = earlier.model->config().loss;
  return {};
}

// Opens the input and finds out, alone or with others, all that must be known before the first row is learned.
Result<std::unique_ptr<data::RowSource>> OpenAndSettle(const base::Env& env, Start& start, const Around& around,
                                                       Members* members) {
  Job& job = start.job;
  const bool own = members != nullptr && job.together.own(), fresh = start.earlier == nullptr;
  auto source = TRY(data::Open(env, job.input, start.description));
  if (own) TRY(CheckNames(env.files, job.input, start.description, *members));
  if (fresh) TRY(data::FindAllClasses(env, job.input, start.description));
  if (around.opened) around.opened(start.description);
  SettleDefaults(job, start.description, start.workers);
  if (job.together.MostWorkers(start.workers) > 1) TRY(CheckBelonging({job.together}, job.together.strategy.kind));
  const bool network = job.learning.IsNetwork();
  if (network && fresh) TRY(data::SettleView(env, job.input, *source, start.description));
  if (own && fresh) TRY(data::AgreeOnView(*members, start.description.view));
  if (!network && (job.input.crop > 0 || job.input.mirror || job.input.subtract_mean != "auto"))
    return Error{Code::kInvalid, Str(Option("crop"), ", ", Option("mirror"), " and ", Option("subtract-mean"),
                                     " are for networks; name one with ", Option("model"))};
  if (!fresh) {
    start.config = start.earlier->model->config();
    return source;
  }
  start.config = TRY(job.learning.Config(start.description, env.log));
  const auto model = TRY(model::Model::Make(start.config));
  TRY(data::SettleTarget(job.input, *source, model->WantsScaledLabels(), members, start.description));
  return source;
}

Result<void> RemoveCheckpoint(base::Files& files, const Job& job) {
  if (job.checkpoint.empty() || !job.fresh || !files.Exists(job.checkpoint)) return {};
  auto removed = files.Remove(job.checkpoint);
  if (!removed.ok() && files.Exists(job.checkpoint)) return removed;  // else another process was faster
  return {};
}

// Where a large model is to lie: better known before than by what is missing then.
Result<std::shared_ptr<optimize::ScratchMemory>> OpenScratch(base::Files& files, const std::string& directory) {
  TRY(base::CheckPlaceFor(files, Str(directory, "/parameters")));
  auto scratch = std::make_shared<optimize::ScratchMemory>(directory);
  constexpr std::size_t kLittle = 1 << 16;
  void* const at = scratch->Reserve(kLittle);
  const bool takes = at != nullptr && scratch->Commit(at, 0, kLittle);
  if (at != nullptr) scratch->Release(at, kLittle);
  if (!takes)
    return Error{Code::kIo, Str(Option("scratch"), ": ", directory,
                                " takes no files; name a directory on a disk with room for the model")};
  return scratch;
}

Result<Outcome> RunWith(const base::Env& env, optimize::Memory& memory, Job& job, Around& around, Members* members) {
  const int rank = members == nullptr ? 0 : members->fabric().rank();
  const bool comes = around.elastic && around.elastic->comes;
  const int workers = around.elastic
                          ? around.elastic->workers
                          : std::max(members == nullptr ? 1 : members->fabric().size(), job.together.workers);
  const bool own = members != nullptr && job.together.own();
  job.input.stop = around.stop;
  if (own) job.input.rank = rank;
  if (members != nullptr && job.together.workers > 0)
    return Error{Code::kInvalid, Str(Option("workers"), " ", job.together.workers, " inside one of ",
                                     members->fabric().size(), " processes; leave it out: each process is a worker")};
  TRY(Check(env.files, job, workers));
  if (members != nullptr && job.input.table != nullptr && !own)
    return Error{Code::kInvalid, Str("rows in memory are there for one process alone; ", Option("split"),
                                     " own says that each of the ", workers, " processes has its share of them")};
  for (const std::string& path : {job.checkpoint, job.cache, job.input.bad_rows_path})
    TRY(base::CheckPlaceFor(env.files, path));
  if (members != nullptr) TRY(CompareWorkers(env.files, job, *members));
  TRY(job.learning.ChooseTask(env.files, job.input));
  if (own) job.input.options.others = members;
  Start start{.job = job, .around = around, .workers = workers};
  std::optional<model::TrainedModel> earlier;
  if (job.together.strategy.large) start.scratch = TRY(OpenScratch(env.files, job.scratch));
  if (around.earlier != nullptr) TRY(BeginWith(*around.earlier, start));
  if (!job.from.empty()) {
    earlier = TRY(model::LoadModel(env.files, job.from, start.WholeIn(memory)));
    TRY(BeginWith(*earlier, start));
  }
  auto source = TRY(OpenAndSettle(env, start, around, members));
  start.batch = job.together.batch_per_worker ? job.batch * static_cast<std::uint64_t>(workers) : job.batch;
  if (const int most = job.together.MostWorkers(workers); around.elastic && start.batch < static_cast<unsigned>(most))
    return Error{Code::kInvalid, Str(Option("batch"), " ", start.batch, " has no row for some of the ", most,
                                     " workers that may come (", Option("elastic"), "); give at least ", most)};
  start.whole = job.together.Whole();
  start.fingerprint = Str(Fingerprint(job), "rows of an update = ", start.batch, "\n");
  if (around.elastic && !start.whole)
    start.fingerprint += Str("parts of the input = ", job.together.MostWorkers(workers), "\n");
  if (!job.checkpoint.empty() && !own) start.inputs = Account(env.files, job.input);
  if (members != nullptr) {
    TRY(AgreeOnSettings(*members, "what they begin with", CommonStart(start)));
    if (!start.whole && !own) source = nullptr;  // a worker opens its part of it
  }
  if (around.elastic)
    start.common = Str(CommonSettings(job), CommonStart(start), Contents(env.files, job.input.Resolved()));
  if (!comes) TRY(RemoveCheckpoint(env.files, job));
  std::unique_ptr<TrainTrace> trace;
  if (!job.trace.empty()) {
    const int number = comes ? 1 : rank;  // who comes begins no file
    trace = TRY(TrainTrace::Open(env.files, env.clock, job.trace, number, std::max(job.together.workers, 1)));
    start.trace = trace.get();
  }
  if (members != nullptr && around.met) around.met(TRY(members->Tell("cards", around.card)));
  if (members != nullptr) members->Begin();
  auto worked = around.elastic              ? WorkElastic(env, start, memory, members, std::move(source))
                : members != nullptr        ? WorkAsMember(env, start, memory, members->fabric(), std::move(source))
                : job.together.workers == 0 ? WorkAlone(env, start, memory, std::move(source))
                                            : WorkTogether(env, start, memory);
  if (trace != nullptr && trace->writes() && !worked.ok()) (void)trace->Write();  // as far as it went
  Outcome outcome = TRY(std::move(worked));
  outcome.memory = start.scratch;
  if (members != nullptr) members->Part();
  if (trace != nullptr && trace->writes()) TRY(trace->Write());
  outcome.trace = std::move(trace);
  const Report& report = outcome.report;
  if (outcome.rank == 0 && rank == 0 && ((report.rows == 0 && report.epochs == 0) || report.progressive.rows() == 0))
    return Error{Code::kBadInput, Str(job.input.Name(), ": no rows to learn from")};
  // For whoever repeats this run.
  if (outcome.topology.chosen == "measured" || outcome.topology.chosen == "simulated" || !outcome.topology.usual)
    job.together.algorithm_table = outcome.topology.table;
  if (outcome.choice) {
    job.together.strategy.kind = "allreduce";
    job.together.strategy.bucket_bytes = outcome.choice->bucket_bytes;
  }
  outcome.job = std::move(job);
  outcome.job.input.options.others = nullptr;
  return outcome;
}

}  // namespace

Result<Outcome> Run(const base::Env& env, optimize::Memory& memory, Job job, Around around) {
  if (around.fabric == nullptr || around.fabric->size() == 1) return RunWith(env, memory, job, around, nullptr);
  Members members(std::move(around.fabric));
  auto outcome = RunWith(env, memory, job, around, &members);
  if (outcome.ok()) return outcome;
  members.Leave(outcome.error());
  // Until training begins each stops by itself: who was told to stop misses those who were told so, too.
  const bool stopped = around.stop != nullptr && around.stop->load(std::memory_order_relaxed);
  if (outcome.error().code == Code::kPeerLost && !members.began() && stopped) return Error{Code::kStopped, "stopped"};
  return outcome;
}

Result<Evaluation> Evaluate(const base::Env& env, Outcome& outcome, const std::vector<std::string>& paths,
                            const std::atomic<bool>* stop) {
  model::TrainedModel& trained = outcome.trained;
  data::Input input;
  input.paths = paths;
  input.grow = false;
  input.labelled = outcome.job.input.labelled;
  input.max_bad_rows = outcome.job.input.max_bad_rows;
  input.stop = stop;
  const auto rows = TRY(data::Open(env, input, trained.description));
  const base::Span span(outcome.trace == nullptr ? nullptr : &outcome.trace->recorder(0), "evaluate",
                        base::Trace::kTraining);
  return Evaluate(env, *trained.model, trained.parameters, trained.description, *rows, stop);
}

Result<void> Save(base::Files& files, const Outcome& outcome, const std::string& path) {
  const model::TrainedModel& trained = outcome.trained;
  return model::SaveModel(files, path, *trained.model, trained.parameters, trained.description, trained.metadata,
                          trained.rated, trained.sums ? &*trained.sums : nullptr);
}

}  // namespace freshet::train
