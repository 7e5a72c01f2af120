#include "batch_job.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "base/toml.h"
#include "train/together.h"
#include "train_config.h"

namespace freshet::cli {
namespace {

constexpr std::string_view kInNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

// The lines of a table alone, at their places, so that what is wrong with them is found where it stands.
std::string LinesOf(const std::string& text, std::size_t first, std::size_t end) {
  std::string out;
  std::size_t number = 0;
  for (const std::string_view line : Split(text, '\n')) {
    ++number;
    if (number > first && number < end) out += line;
    out += '\n';
  }
  return out;
}

struct Tables {
  std::string job, train, spark;
};

Result<Tables> Divide(const std::string& text, const std::string& path) {
  toml::table parsed;
  try {  // the parser's own errors end here
    parsed = toml::parse(text, path);
  } catch (const toml::parse_error& problem) {
    const auto& at = problem.source().begin;
    return Error{Code::kInvalid, Str(path, ":", at.line, ":", at.column, ": ", problem.description())};
  }
  std::vector<std::pair<std::size_t, std::string>> begins;
  std::vector<std::string> mistakes;
  for (const auto& [key, node] : parsed) {
    const std::string name(key.str());
    const auto& at = node.source().begin;
    if (!node.is_table() || (name != "job" && name != "train" && name != "spark"))
      mistakes.push_back(Str(path, ":", at.line, ":", at.column, ": found ", Quoted(name),
                             ", expected a table [job], [train] or [spark]"));
    begins.emplace_back(at.line, name);
  }
  if (!mistakes.empty()) return Error{Code::kInvalid, Join(mistakes, "\n")};
  std::sort(begins.begin(), begins.end());
  Tables tables;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::size_t end = i + 1 < begins.size() ? begins[i + 1].first : std::string::npos;
    const std::string& name = begins[i].second;
    (name == "job" ? tables.job : name == "train" ? tables.train : tables.spark) = LinesOf(text, begins[i].first, end);
  }
  return tables;
}

std::optional<std::int64_t> Digits(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number >= 0 && number < 1'000'000 ? std::optional(number) : std::nullopt;
}

bool Controls(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// Not where it stands bare in a line of the script: a scheduler would take it for another word, or for more than itself.
constexpr std::string_view kNotBare = " '\"`$%\\#;&|<>()*?[]{}!";

// What would not be one word of a line that the scheduler reads.
void CheckWords(const BatchJob& job, const std::string& path, std::vector<std::string>& mistakes) {
  const std::pair<const char*, const std::string&> words[] = {
      {"queue", job.queue}, {"account", job.account}, {"directory", job.directory}};
  for (const auto& [name, text] : words) {
    const std::size_t at = text.find_first_of(kNotBare);
    if (Controls(text))
      mistakes.push_back(Str(path, ": ", name, ": found ", Quoted(text), ", which has a control character"));
    else if (at != std::string::npos)
      mistakes.push_back(Str(path, ": ", name, ": found ", Quoted(text), ", in which the scheduler would not take ",
                             Quoted(text.substr(at, 1)), " as it is; leave such characters out"));
  }
  for (const std::string& option : job.options)
    if (Controls(option))
      mistakes.push_back(Str(path, ": options: found ", Quoted(option), ", which has a control character"));
  const std::string_view size = job.memory;
  if (!size.empty() && (!Digits(size.substr(0, size.size() - 1)) || Digits(size.substr(0, size.size() - 1)) == 0 ||
                        std::string_view("KMGTkmgt").find(size.back()) == std::string_view::npos))
    mistakes.push_back(
        Str(path, ": memory: found ", Quoted(size), ", expected a whole number with K, M, G or T, as 16G"));
}

// How many may be there, and how many are started.
void CheckElastic(const BatchJob& job, const std::string& path, std::vector<std::string>& mistakes) {
  if (job.elastic.empty()) return;
  train::Together together;
  together.elastic = job.elastic;
  const auto bounds = together.ElasticBounds();
  if (!bounds.ok())
    mistakes.push_back(Str(path, ": elastic: found ", Quoted(job.elastic),
                           ", expected MIN:MAX, the numbers of workers between which it may go on, as 2:8"));
  else if (bounds.value().least > job.total())
    mistakes.push_back(Str(path, ": elastic: found ", Quoted(job.elastic), ", and ", job.nodes, " nodes of ",
                           job.workers, " workers are ", job.total(), ": they could never begin"));
}

}  // namespace

std::string BatchJob::Own(std::string_view file) const { return Str(directory, "/", file); }

void BatchJob::RegisterJob(base::Settings& settings) {
  settings.Add("name", &name, "of the job, for the scheduler and for people", {.value = "NAME"});
  settings.Add("engine", &engine, "who starts the workers", {.choices = {"freshet", "mpi", "spark"}});
  settings.Add("scheduler", &scheduler, "whose job it is; auto: the one whose commands are here",
               {.choices = {"auto", "slurm", "lsf", "pbs"}});
  settings.Add("nodes", &nodes, "nodes", {.value = "N", .least = 1, .most = 100'000});
  settings.Add("workers", &workers, "workers of a node", {.value = "N", .least = 1, .most = 4096});
  settings.Add("cores", &cores, "cores of a worker (0: what the scheduler gives)",
               {.value = "N", .least = 0, .most = 4096});
  settings.Add("time", &time, "at most, as [D-]HH:MM:SS", {.value = "TIME"});
  settings.Add("memory", &memory, "of a node, as 16G", {.value = "SIZE"});
  settings.Add("queue", &queue, "queue or partition", {.value = "NAME"});
  settings.Add("account", &account, "who pays", {.value = "NAME"});
  settings.Add("directory", &directory, "where script, log, checkpoint and model lie (else the job's name)",
               {.value = "DIR"});
  settings.Add("elastic", &elastic, "workers may come and go, as long as MIN are left", {.value = "MIN:MAX"});
  settings.Add("program", &program, "path of freshet on the nodes (else the one that submits)", {.value = "PATH"});
  settings.Add("options", &options, "more for the scheduler, as --constraint=avx2", {.value = "LIST"});
  settings.Add("setup", &setup, "lines of shell before anything is started, as module load gcc", {.value = "LIST"});
}

void BatchJob::RegisterSpark(base::Settings& settings) {
  settings.Add("home", &spark_home, "SPARK_HOME on the nodes (else that of the environment)", {.value = "DIR"});
  settings.Add("application", &application, "what spark-submit runs", {.value = "FILE"});
  settings.Add("arguments", &arguments, "of the application", {.value = "LIST"});
  settings.Add("conf", &conf, "properties of Spark, as spark.speculation=true", {.value = "LIST"});
  settings.Add("local", &local, "directory of each node for intermediate data (else its TMPDIR)", {.value = "DIR"});
  settings.Add("executor-memory", &executor_memory, "of an executor, as 4g", {.value = "SIZE"});
  settings.Add("port", &port, "where the master listens (0: one of the job's own)",
               {.value = "PORT", .least = 0, .most = 65'535});
}

Result<std::int64_t> ParseTimeLimit(std::string_view text) {
  const Error wrong{Code::kInvalid, Str("time: found ", Quoted(text), ", expected [D-]HH:MM:SS or HH:MM")};
  std::int64_t days = 0;
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    const auto number = Digits(text.substr(0, dash));
    if (!number) return wrong;
    days = *number;
    text.remove_prefix(dash + 1);
  }
  std::vector<std::int64_t> parts;
  for (const std::string_view part : Split(text, ':')) {
    const auto number = Digits(part);
    if (!number) return wrong;
    parts.push_back(*number);
  }
  if (parts.size() == 2) parts.push_back(0);
  if (parts.size() != 3 || parts[1] > 59 || parts[2] > 59) return wrong;
  const std::int64_t seconds = ((days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2];
  if (seconds == 0) return wrong;
  return seconds;
}

Result<BatchJob> ReadBatchJob(base::Files& files, const std::string& path) {
  const std::string text = TRY(base::ReadAll(files, path));
  const Tables tables = TRY(Divide(text, path));
  BatchJob job;
  base::Settings of_job, of_spark;
  job.RegisterJob(of_job);
  job.RegisterSpark(of_spark);
  std::vector<std::string> mistakes;
  const auto note = [&](const Result<void>& result) {
    if (!result.ok()) mistakes.push_back(result.error().text);
  };
  note(of_job.ParseToml(tables.job, path));
  note(of_spark.ParseToml(tables.spark, path));
  note(CheckTrainConfig({tables.train, path, job.total(), job.elastic, job.engine != "spark"}));
  if (const auto seconds = job.time.empty() ? Result<std::int64_t>(0) : ParseTimeLimit(job.time); seconds.ok())
    job.seconds = seconds.value();
  else
    mistakes.push_back(Str(path, ": ", seconds.error().text));
  const auto refuse = [&](bool wrong, std::string_view why) {
    if (wrong) mistakes.push_back(Str(path, ": ", why));
  };
  refuse(job.engine == "spark" && job.application.empty(), "engine spark runs an application: name it in [spark]");
  refuse(job.engine != "spark" && tables.spark.find_first_not_of(" \n") != std::string::npos,
         Str("[spark] goes with engine = \"spark\", not with ", job.engine));
  refuse(job.engine != "freshet" && !job.elastic.empty(),
         Str("elastic goes with engine = \"freshet\", not with ", job.engine));
  refuse(job.engine == "spark" && job.scheduler != "auto" && job.scheduler != "slurm",
         Str("engine spark starts Spark under Slurm, not under ", job.scheduler));
  refuse(!job.name.empty() && job.name.find_first_not_of(kInNames) != std::string::npos,
         Str("name: found ", Quoted(job.name), ", expected letters, digits, '.', '-' and '_'"));
  CheckWords(job, path, mistakes);
  CheckElastic(job, path, mistakes);
  if (!mistakes.empty()) return Error{Code::kInvalid, Join(mistakes, "\n")};
  job.train = tables.train;
  const std::filesystem::path file = std::filesystem::absolute(path).lexically_normal();
  job.place = file.parent_path();
  job.source = path;
  if (job.name.empty()) job.name = file.stem();
  for (char& c : job.name)
    if (kInNames.find(c) == std::string_view::npos) c = '-';
  job.directory = (file.parent_path() / (job.directory.empty() ? job.name : job.directory)).lexically_normal();
  if (const std::size_t at = job.directory.find_first_of(kNotBare); at != std::string::npos || Controls(job.directory))
    return Error{Code::kInvalid, Str(path, ": the job's files would lie in ", Quoted(job.directory),
                                     ", a path that the scheduler would not take as it is; give a directory without ",
                                     "spaces, quotes and the like")};
  return job;
}

Result<void> CheckFiles(base::Files& files, const BatchJob& job) {
  if (job.engine == "spark") return {};
  return CheckTrainFiles(files, {job.train, job.source, job.total(), job.elastic}, job.place);
}

}  // namespace freshet::cli
