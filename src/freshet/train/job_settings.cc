#include <algorithm>

#include "base/option.h"
#include "base/version.h"
#include "data/cache.h"
#include "strategy/neighbours.h"
#include "train/belonging.h"
#include "train/job_parts.h"

namespace freshet::train {
namespace {

using Names = std::set<std::string_view>;

// The lines of `settings` but those of `left_out`.
std::string Without(const Names& left_out, std::string_view settings) {
  std::string kept;
  for (const std::string_view line : Split(settings, '\n'))
    if (!line.empty() && !left_out.contains(line.substr(0, line.find(' ')))) kept += Str(line, "\n");
  return kept;
}

std::string LineOf(std::string_view name, const std::string& settings) {
  for (const std::string_view line : Split(settings, '\n'))
    if (line.substr(0, line.find(' ')) == name) return std::string(line);
  CHECK(false);  // Said is asked for an option that there is not
}

// A model that a ring spreads by columns; what is left open may turn out to be one, too (strategy/ring/ring.cc).
bool SaysColumns(const std::string& model) { return model == "linear" || model == "fm" || model == "kmeans"; }

// What workers that come and go cannot do, beside what all cannot.
Result<void> CheckElastic(const Job& job) {
  const Together& together = job.together;
  const Together::Bounds bounds = TRY(together.ElasticBounds());
  const auto refuse = [](std::string_view option, std::string_view why) {
    return Error{Code::kInvalid, Str(Option("elastic"), " does not go with ", Option(option), why)};
  };
  if (together.workers > 0) return refuse("workers", ": those are threads of one process; use freshet launch -n N");
  if (job.learning.optimizer == "lbfgs")
    return refuse("optimizer", " lbfgs, each of whose steps needs the rows of all; leave one out");
  if (together.evict > 0 && together.evict <= 1)
    return refuse("evict", Str(" ", together.evict, "; give more than 1, as 3"));
  const std::string& kind = together.strategy.kind;
  if (kind == "scheduled") return refuse("strategy", " scheduled, of which each worker has some coordinates");
  if (kind == "slices" || kind == "hybrid" || kind == "modules")
    return refuse("strategy",
                  Str(" ", kind, ", where each worker alone has a part of the model; use allreduce or ring"));
  if (kind == "ring") {
    if (together.evict > 0) return refuse("evict", Str(" and ", Option("strategy"), " ring, which all rows pass"));
    if (together.copy_every == 0)
      return refuse("copy-every",
                    Str(" 0 and ", Option("strategy"), " ring: what a lost worker had is in a copy; give at least 1"));
    if (together.strategy.pipeline == "stash")
      return refuse("pipeline", " stash, of which micro-batches are always under way; use 1f1b");
    if (together.strategy.large)
      return refuse("large-model",
                    Str(" and ", Option("strategy"), " ring: what is lost is brought together in memory"));
    if (!together.Whole())
      return refuse("split", Str(" ", together.split, " and ", Option("strategy"),
                                 " ring: nobody else has the rows of who is lost; use ", Option("split"), " rows"));
    if (together.strategy.balance && SaysColumns(job.learning.model))
      return refuse("balance", " of columns: of which ones a copy is would change; leave one out");
    if (job.learning.model == "factorization")
      return refuse("strategy", " ring of ratings, past which items walk; use allreduce");
  }
  if (kind == "server" || kind == "gossip") {
    if (!together.Whole())
      return refuse("split", Str(" ", together.split, ", and ", Option("strategy"), " ", kind, "; use ",
                                 Option("split"), " rows"));
    if (together.evict > 0)
      return refuse("evict", kind == "gossip"
                                 ? Str(" and ", Option("strategy"), " gossip, where nobody is waited for")
                                 : Str(" and ", Option("strategy"), " server; who is slow is not waited for with ",
                                       Option("synchrony"), " ssp:3, asp:0.01 or bap"));
  }
  if (kind == "gossip") {
    if (together.strategy.lossy) return refuse("lossy", " and gossip, which does again only what nobody had heard of");
    TRY(strategy::Neighbours(together.strategy.neighbours, bounds.most));  // a graph is of all that there may be
  }
  if (together.own()) return refuse("split", " own: nobody else has the rows of who is lost");
  if (!together.Whole() && together.strategy.exact)
    return refuse("exact",
                  Str(" where each reads parts (", Option("split"), " bytes); use ", Option("split"), " rows"));
  if (!together.Whole() && together.strategy.backup > 0)
    return refuse("backup",
                  Str(" where each reads parts (", Option("split"), " bytes); use ", Option("split"), " rows"));
  if (!job.cache.empty()) return refuse("cache", ": workers have no numbers of their own to name its files by");
  if (job.together.batch_per_worker) return refuse("batch-per-worker", ": an update has as many rows whoever is there");
  return {};
}

// What several workers cannot do by L-BFGS, whose steps are made from the sum over all rows, as it is.
Result<void> CheckLbfgs(const Job& job) {
  const Together& together = job.together;
  const strategy::StrategyOptions& how = together.strategy;
  const auto refuse = [](std::string_view option, std::string_view why) {
    return Error{Code::kInvalid, Str(Option("optimizer"), " lbfgs does not go with ", Option(option), why)};
  };
  if (how.kind != "allreduce" && how.kind != "server")
    return refuse("strategy", Str(" ", how.kind,
                                  ": a step is made from the rows of all workers together; use allreduce, "
                                  "or server to divide its history among them"));
  if (how.codec != "none")
    return refuse("codec", Str(" ", how.codec, ": what it loses would be taken for curvature; leave it out"));
  if (how.factors) return refuse("layer-factors", ", which are of networks; leave it out");
  if (how.exact) return refuse("exact", ": its sums are made in another way; leave one out");
  if (how.backup > 0) return refuse("backup", ": all rows count in every step, whoever is slow; leave one out");
  if (how.kind == "server" && !how.synchrony.empty() && how.synchrony != "bsp")
    return refuse("synchrony", Str(" ", how.synchrony, ": a step needs the gradients of all; use bsp"));
  if (how.kind == "server" && how.servers > 0)
    return refuse("servers", Str(" ", how.servers,
                                 ", which read no rows: every worker holds a range of the vectors; "
                                 "leave it out"));
  if (!job.cache.empty() && together.Whole())
    return refuse("cache", Str(" where all read all rows, since each keeps those of its share; use ", Option("split"),
                               " bytes, or leave it out"));
  return {};
}

// What a descent by coordinates cannot do, which takes all rows at once. What depends on the model is refused when that is
// known (coordinate_trainer.cc).
Result<void> CheckScheduled(const Job& job) {
  const Together& together = job.together;
  const strategy::StrategyOptions& how = together.strategy;
  const auto refuse = [](std::string_view option, std::string_view why) {
    return Error{Code::kInvalid, Str(Option("strategy"), " scheduled does not go with ", Option(option), why)};
  };
  const std::string& rule = job.learning.optimizer;
  if (rule != "auto" && rule != "coordinates")
    return refuse("optimizer", Str(" ", rule, ": weights are set to where the objective is least; leave it out"));
  const std::string& model = job.learning.model;
  if (model != "auto" && model != "linear" && model != "factorization")
    return refuse("model",
                  Str(" ", model, ": it is for factorization and for linear models of squared or logistic loss"));
  const std::string& loss = job.learning.loss;
  if (loss != "auto" && loss != "squared" && loss != "logistic")
    return refuse("loss", Str(" ", loss, "; use squared or logistic"));
  if (!together.Whole())
    return refuse("split", Str(" ", together.split, ": each worker has some columns, of all rows; use rows"));
  if (job.batch > 1 || together.batch_per_worker) return refuse("batch", ": it takes all rows at once; leave it out");
  if (job.shuffle) return refuse("shuffle", ": it takes all rows at once; leave it out");
  if (how.accumulate > 1) return refuse("accumulate", ": it takes all rows at once; leave it out");
  if (!job.checkpoint.empty()) return refuse("checkpoint", Str("; go on from a model file (", Option("from"), ")"));
  if (job.keep_optimizer) return refuse("keep-optimizer", ": it sums up nothing that could be gone on with");
  if (!job.cache.empty()) return refuse("cache", ": rows are read once, and kept in memory; leave it out");
  if (how.codec != "none") return refuse("codec", Str(" ", how.codec, ": no gradients travel; leave it out"));
  if (how.factors) return refuse("layer-factors", ", which are of networks; leave it out");
  if (how.exact) return refuse("exact", ": its sums are the same bits for any number of workers; leave it out");
  if (how.backup > 0) return refuse("backup", ": all coordinates count, whoever is slow; leave it out");
  return {};
}

// Before it is known what is learned: workers of whom nothing is said may take the mean (SettleDefaults).
Result<void> CheckForeign(const Job& job) {
  std::vector<Together> ways = {job.together};
  if (job.together.strategy.kind == "allreduce" && !job.Said("strategy"))
    ways.emplace_back(job.together).strategy.kind = "average";
  return CheckBelonging(ways, job.together.strategy.kind);
}

// Those who are not waited for are fewer than those who make updates.
Result<void> CheckBackup(const Job& job, int workers) {
  const strategy::StrategyOptions& how = job.together.strategy;
  const int most = job.together.MostWorkers(workers), makers = how.kind == "server" ? most - how.servers : most;
  if (how.backup == 0 || how.backup < makers || makers < 1) return {};
  return Error{Code::kInvalid,
               makers == 1 ? Str(Option("backup"), " ", how.backup, " of one worker that makes updates; leave it out")
                           : Str(Option("backup"), " ", how.backup, " of ", makers,
                                 " workers that make updates leaves none; give at most ", makers - 1)};
}

// What several workers cannot do.
Result<void> CheckTogether(base::Files& files, const Job& job) {
  if (job.learning.optimizer == "lbfgs") TRY(CheckLbfgs(job));
  const Together& together = job.together;
  const std::string once = job.input.Once(files);
  if (together.own() && together.workers > 0)
    return Error{Code::kInvalid, Str(Option("split"), " own is for processes, each with an input of its own, and ",
                                     Option("workers"), " ", together.workers,
                                     " are one process; start them with freshet launch -n ", together.workers, " --")};
  if (!once.empty() && !together.own())
    return Error{Code::kInvalid,
                 Str("workers need files that each can open, and ", once, " can be read only once; with ",
                     Option("split"), " own each process has an input of its own")};
  if (together.strategy.large) {
    const auto refuse = [](std::string_view what) {
      return Error{Code::kInvalid, Str(Option("large-model"), " ", what)};
    };
    if (job.learning.optimizer == "lbfgs")
      return refuse(Str("does not go with ", Option("optimizer"), " lbfgs, whose steps need all parameters"));
    if (job.patience > 0)
      return refuse(Str("does not go with ", Option("patience"), ", which keeps the best model so far in memory"));
  }
  if (together.Whole()) return {};
  const std::string& model = job.learning.model;
  const bool handed_on = together.strategy.kind == "ring" && (model == "auto" || SaysColumns(model));
  if ((together.strategy.kind == "ring" && !handed_on) || together.strategy.kind == "modules")
    return Error{Code::kInvalid,
                 Str(Option("strategy"), " ", together.strategy.kind, " does not go with ", Option("split"), " ",
                     together.split, " and ", Option("model"), " ", model,
                     ": a row passes all workers, who must all have it; use ", Option("split"), " rows")};
  if (together.strategy.kind == "slices" || together.strategy.kind == "hybrid")
    return Error{
        Code::kInvalid,
        Str(Option("strategy"), " ", together.strategy.kind, " does not go with ", Option("split"), " ", together.split,
            ": all must know how many rows each has in an update; use ", Option("split"), " rows")};
  if (together.strategy.kind == "server" && together.strategy.servers > 0)
    return Error{Code::kInvalid, Str(Option("servers"), " ", together.strategy.servers, " read no rows, and with ",
                                     Option("split"), " ", together.split, " theirs would be lost; use ",
                                     Option("split"), " rows, or ", Option("servers"), " 0")};
  if (together.split == "bytes" && !job.input.part.empty())
    return Error{Code::kInvalid, Str(Option("part"), " and ", Option("split"),
                                     " bytes both say which part a worker reads; leave one out")};
  for (const std::string& path : job.input.Resolved())
    if (data::CacheReader::Is(files, path))
      return Error{Code::kInvalid, Str(Option("split"), " ", together.split, ": ", path,
                                       " holds rows that were parsed before, which are read as a whole; use ",
                                       Option("split"), " rows, or the files it was made from")};
  return {};
}

}  // namespace

void Job::Register(base::Settings& settings) {
  input.Register(settings, data::Input::Use::kTraining);
  settings.Group("Model");
  learning.RegisterModel(settings);
  settings.Add("from", &from, "start from this model file", {.letter = 'i', .value = "FILE"});
  settings.Group("Learning");
  settings.Add("epochs", &epochs, "passes over the data (0: 1, factorization 20, lbfgs 50, networks 10)",
               {.letter = 'e', .value = "N", .least = 0});
  learning.RegisterLearning(settings);
  settings.Add(
      "batch", &batch,
      "rows per update (0: 1, networks 32; with several workers that exchange gradients 16 of each, kmeans 256)",
      {.value = "N", .least = 0, .most = 1 << 20});
  settings.Add("shuffle", &shuffle,
               "mix rows within 16 MB (networks: 64 MB, and by default), and blocks from the second epoch on");
  settings.Add("prefetch", &prefetch, "blocks of rows read ahead of need (networks)",
               {.value = "N", .least = 1, .most = 1024});
  settings.Add(
      "deterministic", &deterministic,
      Str("the same result for any number of threads (but for LSTM and GRU layers); ", Option("no-deterministic"),
          " lets them update a sparse model at once, and workers measure how sums travel best"));
  settings.Group("Workers");
  together.Register(settings);
  settings.Group("Validation");
  settings.Add("holdout", &holdout, "share of rows kept back to test on", {.value = "X", .least = 0, .most = 0.9});
  settings.Add("holdout-after", &holdout_after, "keep back rows from this time on (seconds since 1970)",
               {.value = "T", .least = 0});
  settings.Add("patience", &patience, "stop after so many epochs without a better held-out loss",
               {.value = "N", .least = 0});
  settings.Group("Going on");
  settings.Add("checkpoint", &checkpoint, "save the run here; the same command again resumes it", {.value = "FILE"});
  settings.Add("checkpoint-seconds", &checkpoint_seconds, "time between checkpoints", {.value = "S", .least = 0});
  settings.Add("fresh", &fresh, "start over though there is a checkpoint");
  settings.Add("keep-optimizer", &keep_optimizer,
               Str("the model file also holds what the update rule has summed up, so that serve and ", Option("from"),
                   " go on as this run would have"));
  settings.Add("cache", &cache, "keep parsed rows here", {.letter = 'c', .value = "FILE"});
  settings.Add("scratch", &scratch, "where temporary files go", {.value = "DIR"});
}

std::string Job::Lines() const {
  Job copy = *this;
  base::Settings settings;
  copy.Register(settings);
  return settings.Effective();
}

bool Job::Said(std::string_view name) const {
  return said.contains(name) || LineOf(name, Lines()) != LineOf(name, Job().Lines());
}

Result<void> Check(base::Files& files, const Job& job, int workers) {
  Job copy = job;
  base::Settings settings;
  copy.Register(settings);
  TRY(settings.Check());
  TRY(job.together.Collectives());
  if (!job.together.elastic.empty()) TRY(CheckElastic(job));
  if (job.together.strategy.kind == "scheduled")
    TRY(CheckScheduled(job));
  else if (job.learning.optimizer == "coordinates")
    return Error{Code::kInvalid, Str(Option("optimizer"), " coordinates is for ", Option("strategy"),
                                     " scheduled, not ", job.together.strategy.kind)};
  if (job.keep_optimizer && job.learning.optimizer == "lbfgs")
    return Error{Code::kInvalid,
                 Str(Option("keep-optimizer"), ": lbfgs sums up nothing that could be gone on with; leave one out")};
  if (const std::string& kind = job.together.strategy.kind;
      job.together.strategy.large && kind != "server" && kind != "ring" && kind != "modules")
    return Error{Code::kInvalid,
                 Str(Option("large-model"), " is for ", Option("strategy"),
                     " server, ring and modules, whose members each have a part of the model, not for ", kind)};
  TRY(CheckForeign(job));
  TRY(CheckBackup(job, workers));
  return workers == 1 ? Result<void>() : CheckTogether(files, job);
}

std::string Fingerprint(const Job& job) {
  // Workers with inputs of their own each name another.
  Names free = {
      "checkpoint", "checkpoint-seconds", "fresh",   "scratch",      "bad-rows", "cache",       "max-bad-rows",
      "workers",    "keep-optimizer",     "elastic", "elastic-wait", "evict",    "evict-after", "copy-every"};
  if (job.together.own()) free.insert({"data", "label-file"});
  return Without(free, job.Lines());
}

std::string CommonSettings(const Job& job) {
  Names elsewhere = {"data", "label-file", "from", "split"};
  if (job.learning.model.ends_with(".toml")) elsewhere.insert("model");
  const auto given = [](bool is) { return is ? "given" : "not given"; };
  return Str(Without(elsewhere, Fingerprint(job)), "fresh = ", job.fresh,
             "\ncheckpoint = ", given(!job.checkpoint.empty()), "\ntrace = ", given(!job.trace.empty()),
             "\nversion = ", Version(), "\n");
}

}  // namespace freshet::train
