#include "batch_script.h"

#include <algorithm>

#include "base/str.h"
#include "base/toml.h"
#include "batch_spark.h"
#include "launch_plan.h"

namespace freshet::cli {
namespace {

std::string Padded(std::int64_t number) { return Str(number < 10 ? "0" : "", number); }
std::string Clock(std::int64_t seconds) {
  return Str(Padded(seconds / 3600), ":", Padded(seconds / 60 % 60), ":", Padded(seconds % 60));
}

// The cores of all workers of a node.
int Cores(const BatchJob& job) { return std::max(job.cores, 1) * job.workers; }

std::string Lines(std::string_view mark, const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += Str(mark, " ", word, "\n");
  return out;
}

// Who is told to end a minute before the limit has time for a checkpoint.
std::string OfSlurm(const BatchJob& job) {
  std::vector<std::string> words = {Str("--job-name=", job.name),
                                    Str("--nodes=", job.nodes),
                                    Str("--ntasks-per-node=", job.workers),
                                    Str("--output=", job.Own("log")),
                                    "--open-mode=append",
                                    "--requeue",
                                    "--signal=TERM@60"};
  if (job.cores > 0) words.push_back(Str("--cpus-per-task=", job.cores));
  if (job.seconds > 0) words.push_back(Str("--time=", Clock(job.seconds)));
  if (!job.memory.empty()) words.push_back(Str("--mem=", job.memory));
  if (!job.queue.empty()) words.push_back(Str("--partition=", job.queue));
  if (!job.account.empty()) words.push_back(Str("--account=", job.account));
  if (!job.elastic.empty()) words.emplace_back("--no-kill");
  words.insert(words.end(), job.options.begin(), job.options.end());
  return Lines("#SBATCH", words);
}

std::string OfLsf(const BatchJob& job) {
  std::vector<std::string> words = {Str("-J ", job.name), Str("-n ", job.total()),
                                    Str("-R \"span[ptile=", job.workers, "]\""), Str("-o ", job.Own("log")), "-r"};
  if (job.cores > 1) words.push_back(Str("-R \"affinity[core(", job.cores, ")]\""));
  if (job.seconds > 0) {
    const std::int64_t minutes = (job.seconds + 59) / 60;
    words.push_back(Str("-W ", Padded(minutes / 60), ":", Padded(minutes % 60)));
  }
  if (!job.memory.empty()) words.push_back(Str("-M ", job.memory));
  if (!job.queue.empty()) words.push_back(Str("-q ", job.queue));
  if (!job.account.empty()) words.push_back(Str("-P ", job.account));
  words.insert(words.end(), job.options.begin(), job.options.end());
  return Lines("#BSUB", words);
}

std::string OfPbs(const BatchJob& job) {
  std::string select = Str("-l select=", job.nodes, ":ncpus=", Cores(job), ":mpiprocs=", job.workers);
  if (!job.memory.empty()) select += Str(":mem=", job.memory, "b");
  std::vector<std::string> words = {Str("-N ", job.name), select, Str("-o ", job.Own("log")), "-j oe", "-r y"};
  if (job.seconds > 0) words.push_back(Str("-l walltime=", Clock(job.seconds)));
  if (!job.queue.empty()) words.push_back(Str("-q ", job.queue));
  if (!job.account.empty()) words.push_back(Str("-A ", job.account));
  words.insert(words.end(), job.options.begin(), job.options.end());
  return Lines("#PBS", words);
}

constexpr Scheduler kSchedulers[] = {
    {.name = "slurm",
     .submit = "sbatch --parsable",
     .program = "sbatch",
     .directives = OfSlurm,
     .hosts = "",
     .reach = "",
     .status = "squeue --noheader --format=%T --jobs",
     .cancel = "scancel"},
    {.name = "lsf",
     .submit = "bsub <",
     .program = "bsub",
     .directives = OfLsf,
     .hosts = "$(set -- $LSB_MCPU_HOSTS; while [ $# -gt 1 ]; do printf '%s:%s ' \"$1\" \"$2\"; shift 2; done | "
              "sed 's/ $//; s/ /,/g')",
     .reach = "blaunch",
     .status = "bjobs -noheader -o stat",
     .cancel = "bkill"},
    {.name = "pbs",
     .submit = "qsub",
     .program = "qsub",
     .directives = OfPbs,
     .hosts = "$(uniq -c \"$PBS_NODEFILE\" | awk '{ printf \"%s%s:%s\", (NR > 1 ? \",\" : \"\"), $2, $1 }')",
     .reach = "pbs_tmrsh",
     .status = "qstat -f",
     .cancel = "qdel"},
};

std::string TomlText(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' || c == '\\' ? Str('\\', c) : Str(c);
  return out + "\"";
}

std::string Flags(const BatchJob& job) {
  std::string flags = Str(" --config ", ShellQuoted(job.Own("train.toml")));
  if (job.engine == "mpi") return Str(flags, " --fabric mpi");
  return Str(flags, " --job ", ShellQuoted(job.name), " --token-file ", ShellQuoted(job.Own("token")));
}

// One line that trains.
std::string Training(const BatchJob& job, const Scheduler& scheduler) {
  const std::string program = ShellQuoted(job.program), train = Str("train", Flags(job));
  if (job.engine == "mpi") return Str("mpirun -n ", job.total(), " ", program, " ", train, "\n");
  if (scheduler.name == "slurm") {
    if (job.elastic.empty()) return Str("srun --kill-on-bad-exit=0 ", program, " ", train, "\n");
    return Str("srun --no-kill --kill-on-bad-exit=0 ", program, " agent -- ", train, " --elastic ", job.elastic, "\n");
  }
  return Str(program, " launch --hosts \"", scheduler.hosts, "\" --ssh ", scheduler.reach,
             job.elastic.empty() ? "" : Str(" --elastic ", job.elastic), " --job ", ShellQuoted(job.name),
             " --token-file ", ShellQuoted(job.Own("token")), " -- train --config ", ShellQuoted(job.Own("train.toml")),
             "\n");
}

}  // namespace

const Scheduler* FindScheduler(std::string_view name) {
  for (const Scheduler& scheduler : kSchedulers)
    if (scheduler.name == name) return &scheduler;
  return nullptr;
}

std::vector<std::string> SchedulerNames() {
  std::vector<std::string> names;
  for (const Scheduler& scheduler : kSchedulers) names.emplace_back(scheduler.name);
  return names;
}

std::string BatchScript(const BatchJob& job, const Scheduler& scheduler) {
  std::string out = Str("#!/bin/bash\n# Made by freshet submit: change the file that describes the job, not this.\n",
                        scheduler.directives(job), "set -u\ncd ", ShellQuoted(job.place), " || exit 1\nrm -f ",
                        ShellQuoted(job.Own("ended")), "\n");
  for (const std::string& line : job.setup) out += line + "\n";
  if (job.engine != "spark" && job.cores > 0) out += Str("export OMP_NUM_THREADS=", job.cores, "\n");
  const std::string workers = job.engine == "spark" ? "Spark" : Str(job.total(), " workers");
  out += Str("echo ", ShellQuoted(Str("job ", job.name, ": ", workers, " on ", job.nodes, " nodes")), "\n");
  out += job.engine == "spark" ? SparkScript(job) : Training(job, scheduler);
  return out + Str("code=$?\necho $code > ", ShellQuoted(job.Own("ended")), "\nexit $code\n");
}

std::string TrainConfigOf(const BatchJob& job) {
  const toml::table given = toml::parse(job.train);
  std::string out;
  if (!given.contains("out")) out += Str("out = ", TomlText(job.Own("model")), "\n");
  if (!given.contains("checkpoint")) out += Str("checkpoint = ", TomlText(job.Own("checkpoint")), "\n");
  if (!given.contains("quiet")) out += "quiet = true\n";
  const std::size_t text = job.train.find_first_not_of('\n');
  return text == std::string::npos ? out : out + job.train.substr(text);
}

// "17", "17;cluster", "Job <17> is submitted to queue <main>.", "17.server".
std::string JobNumber(const Scheduler& scheduler, std::string_view answer) {
  const std::size_t first = answer.find_first_of("0123456789");
  if (first == std::string_view::npos) return "";
  const std::string_view ends = scheduler.name == "pbs" ? " \n" : ";>. \n";
  return std::string(answer.substr(first, answer.find_first_of(ends, first) - first));
}

std::string StateIn(const Scheduler& scheduler, std::string_view answer) {
  const auto says = [&](std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return answer.find(word) != std::string_view::npos; });
  };
  if (scheduler.name == "pbs")
    return says({"job_state = R"}) ? "running" : says({"job_state = Q", "job_state = H"}) ? "waiting" : "";
  if (says({"RUNNING", "COMPLETING", "RUN\n"})) return "running";
  return says({"PENDING", "CONFIGURING", "REQUEUE", "PEND", "SUSP"}) ? "waiting" : "";
}

}  // namespace freshet::cli
