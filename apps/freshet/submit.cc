// freshet submit: a batch job of a cluster's scheduler from one file, and what becomes of it.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "batch_script.h"
#include "launch_plan.h"
#include "launch_token.h"
#include "results.h"
#include "verb.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::vector<std::string> words;
  bool dry_run = false, wait = false, json = false;

  void Register(base::Settings& settings) {
    settings.Add("job", &words, "the file that describes the job, perhaps after status, logs or cancel",
                 {.value = "FILE", .positional = true});
    settings.Add("dry-run", &dry_run, "print the script (with --json in an object); submit nothing, write nothing");
    settings.Add("wait", &wait, "stay until the job has ended, and end as it did; Ctrl-C leaves the job alone");
    settings.Add("json", &json, "answers as one JSON object");
  }
};

std::string HelpOfFile() {
  BatchJob job;
  base::Settings of_job, of_spark;
  of_job.Group("[job]");
  job.RegisterJob(of_job);
  of_spark.Group("[spark]");
  job.RegisterSpark(of_spark);
  std::string text = Str("\nIn the file (name = value):\n", of_job.Help(), of_spark.Help());
  for (std::size_t at = 0; (at = text.find("      --", at)) != std::string::npos;) text.replace(at, 8, "  ");
  return Str(text, "\n[train]:\n  what freshet train takes, by the names of its flags\n");
}

// What a command prints. kIo when it cannot be run or says no.
Result<std::string> Ask(const std::string& command) {
  std::FILE* const pipe = popen(Str(command, " 2>&1").c_str(), "r");
  if (pipe == nullptr) return Error{Code::kIo, Str("cannot run ", command)};
  std::string said;
  char bytes[4096];
  for (std::size_t got = 0; (got = std::fread(bytes, 1, sizeof bytes, pipe)) > 0;) said.append(bytes, got);
  const int status = pclose(pipe);
  if (status == 0) return said;
  while (said.ends_with('\n')) said.pop_back();
  return Error{Code::kIo, Str(command, ": ", said.empty() ? "it failed" : said)};
}

bool IsHere(std::string_view program) {
  return std::system(Str("command -v ", program, " > /dev/null 2>&1").c_str()) == 0;
}

Result<const Scheduler*> SchedulerOf(const BatchJob& job) {
  if (job.scheduler != "auto") return FindScheduler(job.scheduler);
  for (const std::string& name : SchedulerNames())
    if (IsHere(FindScheduler(name)->program) && (job.engine != "spark" || name == "slurm")) return FindScheduler(name);
  return Error{Code::kInvalid, Str("no scheduler is here (sbatch, bsub, qsub): run this where jobs are submitted, or "
                                   "name one in [job]: scheduler = \"slurm\"")};
}

// For whoever owns the file alone.
Result<void> WriteSecret(const std::string& path, const Token& token) {
  const base::Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.open() || fchmod(file.get(), 0600) != 0 ||
      write(file.get(), token.data(), token.size()) != static_cast<ssize_t>(token.size()))
    return Error{Code::kIo, Str(path, ": cannot be written")};
  return {};
}

Result<void> WriteText(base::Files& files, const std::string& path, const std::string& text) {
  return base::WriteAtomic(files, path, [&](base::OutputFile& file) { return file.Write(text); });
}

// A job that was submitted from here.
struct Submitted {
  BatchJob job;
  const Scheduler* scheduler = nullptr;
  std::string number;

  std::string State() const;
  // Of what ran last; none when nothing has ended yet.
  std::optional<int> ExitCode() const {
    std::ifstream file(job.Own("ended"));
    int code = 0;
    return file >> code ? std::optional(code) : std::nullopt;
  }
};

// "waiting", "running", "ended", "failed", or "gone": it is neither with the scheduler, nor has it said how it ended.
std::string Submitted::State() const {
  const auto said = Ask(Str(scheduler->status, " ", number));
  std::string state = said.ok() ? StateIn(*scheduler, said.value()) : "";
  if (!state.empty()) return state;
  const auto code = ExitCode();
  return !code ? "gone" : *code == 0 ? "ended" : "failed";
}

Result<Submitted> Find(base::Files& files, const std::string& path) {
  Submitted found;
  found.job = TRY(ReadBatchJob(files, path));
  const std::string remembered = found.job.Own("state.json");
  if (!files.Exists(remembered))
    return Error{Code::kNotFound, Str("job ", found.job.name, " was not submitted: there is no ", remembered)};
  const Json state = Json::parse(TRY(base::ReadAll(files, remembered)), nullptr, false);
  const bool whole = state.is_object() && state.contains("scheduler") && state.contains("number");
  found.scheduler = whole ? FindScheduler(state["scheduler"].get<std::string>()) : nullptr;
  if (found.scheduler == nullptr) return Error{Code::kCorrupt, Str(remembered, " is damaged: submit the job again")};
  found.number = state["number"].get<std::string>();
  return found;
}

Result<void> ShowState(Door& door, const Flags& flags, const Submitted& of) {
  const std::string state = of.State();
  const auto code = state == "ended" || state == "failed" ? of.ExitCode() : std::nullopt;
  if (flags.json) {
    Json json = {{"schema", 1},         {"name", of.job.name}, {"scheduler", of.scheduler->name},
                 {"number", of.number}, {"state", state},      {"log", of.job.Own("log")}};
    if (code) json["exit_code"] = *code;
    return Print(door.files, JsonLine(json));
  }
  return Print(door.files,
               Str("job ", of.job.name, ", ", of.number, " of ", of.scheduler->name, ": ", state,
                   code && *code != 0 ? Str(", exit code ", *code) : "", "; log ", of.job.Own("log"), "\n"));
}

Result<void> ShowLog(Door& door, const Submitted& of) {
  const std::string log = of.job.Own("log");
  if (!door.files.Exists(log))
    return Error{Code::kNotFound, Str("job ", of.job.name, " has written nothing yet: ", log)};
  return Print(door.files, TRY(base::ReadAll(door.files, log)));
}

// Shows what the job writes as it comes.
Result<void> Wait(Door& door, const Flags& flags, const Submitted& of) {
  std::size_t shown = 0;
  std::string state;
  auto patience = std::chrono::milliseconds(250);  // so that short jobs end at once, and long ones disturb nobody
  while (true) {
    const bool over = !state.empty() && state != "waiting" && state != "running";
    if (door.files.Exists(of.job.Own("log")) && !flags.json) {
      const std::string log = TRY(base::ReadAll(door.files, of.job.Own("log")));
      if (log.size() > shown) TRY(Print(door.files, std::string_view(log).substr(shown)));
      shown = std::max(shown, log.size());
    }
    if (over) break;
    TRY(door.GoOn());
    if (!state.empty()) door.clock.Sleep(patience);
    patience = std::min(patience * 5 / 4, std::chrono::milliseconds(5000));
    state = of.State();
  }
  door.exit_code = state == "ended" ? 0 : of.ExitCode().value_or(1);
  return ShowState(door, flags, of);
}

Result<void> Submit(Door& door, const Flags& flags, const std::string& path) {
  BatchJob job = TRY(ReadBatchJob(door.files, path));
  if (job.program.empty()) job.program = std::filesystem::read_symlink("/proc/self/exe");
  const Scheduler& scheduler = *TRY(SchedulerOf(job));
  TRY(CheckFiles(door.files, job));
  const std::string script = BatchScript(job, scheduler);
  if (flags.dry_run) return Print(door.files, flags.json ? JsonLine(Json{{"schema", 1}, {"script", script}}) : script);
  if (door.files.Exists(job.Own("state.json"))) {
    const Submitted before = TRY(Find(door.files, path));
    const std::string state = before.State();
    if (state == "waiting" || state == "running")
      return Error{Code::kInvalid, Str("job ", job.name, " is ", state, " as ", before.number,
                                       ": freshet submit cancel ", path, " ends it")};
  }
  TRY(door.files.MakeDirectory(job.directory));
  TRY(WriteText(door.files, job.Own("job.sh"), script));
  if (job.engine != "spark") TRY(WriteText(door.files, job.Own("train.toml"), TrainConfigOf(job)));
  TRY(WriteSecret(job.Own("token"), TRY(MakeToken())));
  for (const char* const old : {"log", "ended"})
    if (door.files.Exists(job.Own(old))) TRY(door.files.Remove(job.Own(old)));
  const std::string said = TRY(Ask(Str(scheduler.submit, " ", ShellQuoted(job.Own("job.sh")))));
  const Submitted made{.job = job, .scheduler = &scheduler, .number = JobNumber(scheduler, said)};
  if (made.number.empty()) return Error{Code::kIo, Str(scheduler.submit, " gave no number of a job, but: ", said)};
  const Json state = {{"scheduler", scheduler.name}, {"number", made.number}};
  TRY(WriteText(door.files, job.Own("state.json"), state.dump() + "\n"));
  if (flags.wait) return Wait(door, flags, made);
  if (flags.json) return ShowState(door, flags, made);
  return Print(door.files, Str("job ", job.name, " is ", made.number, " of ", scheduler.name, "; log ", job.Own("log"),
                               "; freshet submit status ", path, " says how it goes\n"));
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  Flags flags;
  base::Settings settings;
  flags.Register(settings);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return Print(door.files, HelpOfFile());
  const bool asks = flags.words.size() == 2;
  if (flags.words.size() != 1 && !asks)
    return Error{Code::kInvalid, "say which file describes the job: freshet submit job.toml"};
  if (!asks) return Submit(door, flags, flags.words[0]);
  const std::string& what = flags.words[0];
  if (what != "status" && what != "logs" && what != "cancel")
    return Error{Code::kInvalid, Str("found ", Quoted(what), ", expected status, logs or cancel")};
  const Submitted found = TRY(Find(door.files, flags.words[1]));
  if (what == "status") return flags.wait ? Wait(door, flags, found) : ShowState(door, flags, found);
  if (what == "logs") return ShowLog(door, found);
  TRY(Ask(Str(found.scheduler->cancel, " ", found.number)));
  return ShowState(door, flags, found);
}

}  // namespace

extern const Verb kSubmit = {"submit", "give a job to a cluster's scheduler (Slurm, LSF, PBS)",
                             "[status|logs|cancel] FILE [FLAGS]",
                             "  freshet submit job.toml --dry-run             the script that would run\n"
                             "  freshet submit job.toml --wait                submits it, and shows what it writes\n"
                             "  freshet submit status job.toml\n"
                             "  freshet submit cancel job.toml\n"
                             "\n  # job.toml\n"
                             "  [job]\n"
                             "  nodes = 4\n"
                             "  workers = 2\n"
                             "  time = \"2:00:00\"\n"
                             "  [train]\n"
                             "  data = [\"big.svm\"]\n"
                             "  epochs = 10\n",
                             Run};

}  // namespace freshet::cli
