// Iterations, versions and data sets: what takes long runs in the background and comes back to the writer.

#include <algorithm>

#include "base/executor.h"
#include "data/drive.h"
#include "data/reader.h"
#include "deploy/control_records.h"
#include "deploy/deployment.h"

namespace freshet::deploy {
namespace {

// What people and file systems wrote may not be UTF-8.
std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

// An iteration or a version begins with a copy of the state, taken a piece a turn so that observations go on being
// learned in between; the record that says so is written when the copy is complete.
void Deployment::StartIteration(Reason reason) {
  if (!starting_) starting_ = {{reason, ""}};
}

void Deployment::StartVersion(std::string_view origin) {
  if (!starting_) starting_ = {{Reason::kNone, std::string(origin)}};
}

// True when that was some work. What the log cannot take is tried again at the next turn.
bool Deployment::GoOnStarting() {
  if (!starting_) return false;
  const bool retrain = starting_->origin.empty() && options_.method == Method::kVelox;
  if (!retrain) {  // a retraining begins with nothing
    constexpr std::uint64_t kBytesATurn = 512 << 10;
    const auto began = env_.clock.Now();
    auto complete = models_->CopySome(kBytesATurn);
    {
      const double took = base::Seconds(env_.clock.Now() - began);
      const base::Lock lock(stats_mutex_);
      stats_.copy_seconds = std::max(stats_.copy_seconds, took);
    }
    if (!complete.ok()) Problem(complete.error());
    if (complete.ok() && !complete.value()) return true;
  }
  if (!starting_->origin.empty()) {
    const std::string json = Json({{"origin", starting_->origin}}).dump();
    auto logged = Log(RecordKind::kVersion, json);
    if (!logged.ok()) return Problem(logged.error()), false;
    starting_.reset();
    if (auto applied = ApplyVersion(logged.value(), json); !applied.ok()) Problem(applied.error());
    return true;
  }
  const bool keep = versions_ != nullptr && env_.clock.Now() - last_version_ >= VersionGap();
  const Reason why = starting_->reason;
  const bool quiet = why == Reason::kAsked || why == Reason::kPeriod || why == Reason::kIdle;
  const Take take = data_->Plan(base::Hash64(options_.seed ^ (log_->next_sequence() << 20)), log_->first(),
                                quiet ? Pace::kQuiet : Pace::kArrivals);
  const std::string plan = Json({{"kind", retrain ? "retrain" : "iterate"},
                                 {"reason", Text(why)},
                                 {"seed", take.seed},
                                 {"rate", take.rate},
                                 {"per_arrival", take.per_arrival},
                                 {"buffer_share", take.buffer_share},
                                 {"most_sample", take.most_sample},
                                 {"least_sample", take.least_sample},
                                 {"sets", take.sets},
                                 {"scale", retrain ? 1.0 : options_.iteration_scale},
                                 {"passes", retrain ? options_.retrain_epochs : 1},
                                 {"first", take.first},
                                 {"keep", keep}})
                               .dump();
  auto logged = Log(RecordKind::kIterationStart, plan);
  if (!logged.ok()) return Problem(logged.error()), false;
  starting_.reset();
  if (keep) last_version_ = env_.clock.Now();
  if (auto applied = ApplyStart(logged.value(), plan); !applied.ok()) Problem(applied.error());
  return true;
}

// Versions of large models take long to write: no more than a tenth of the time goes into it.
base::Clock::Duration Deployment::VersionGap() const {
  return std::max(options_.version_gap, base::Clock::Duration(10 * saving_.load(std::memory_order_relaxed)));
}

void Deployment::PostJob() {
  background_.Post([this, job = job_] {
    RunJob(*job);
    doors_.writer->Ring();
  });
}

// Trains the copy, keeps it as a version if it is to be, and lets it learn what has come meanwhile.
void Deployment::RunJob(Iteration& job) {
  const auto work = [&]() -> Result<void> {
    const auto started = env_.clock.Now();
    job.report = TRY(job.Train(runtime_, *log_));
    job.seconds = base::Seconds(env_.clock.Now() - started);
    job.named = versions_ != nullptr && !runtime_.repeats();
    if ((job.keep || job.named) && !versions_->Find(job.start)) {
      const auto saving = env_.clock.Now();
      auto saved = versions_->Save(job.info, *job.model, *job.state, job.description);
      if (job.named) TRY(saved);                // it cannot take over without
      if (!saved.ok()) Problem(saved.error());  // it can
      job.keep = saved.ok();
      saving_.store((env_.clock.Now() - saving).count(), std::memory_order_relaxed);
    }
    if (recovering_) return {};
    constexpr std::uint64_t kFew = 256;
    for (int round = 0; learns() && round < 20 && log_->end_sequence() > job.applied + kFew; ++round)
      TRY(job.CatchUp(*log_, log_->end_sequence(), nullptr));
    job.editions = TRY(models_->Editions(*job.model, *job.state, job.description));
    return {};
  };
  if (auto result = work(); !result.ok()) job.error = std::move(result).error();
  job.done.store(true, std::memory_order_release);
}

// The trained copy comes back: it takes over, or it is given up. False when that must be tried again.
bool Deployment::FinishJob() {
  Json json = {{"start", job_->start}, {"published", !job_->error.has_value()}};
  if (job_->error)
    json["reason"] = job_->error->text, json["stopped"] = job_->error->code == Code::kStopped;
  else
    json["rows"] = job_->report.rows, json["loss"] = job_->report.loss, json["seconds"] = job_->seconds;
  if (job_->named && !job_->error) json["version"] = job_->start;
  const std::string text = Dump(json);
  auto logged = Log(RecordKind::kIterationEnd, text);
  if (!logged.ok()) {
    Problem(logged.error());
    return false;
  }
  if (job_->error) env_.log.Warn("iteration given up", "start", job_->start, "reason", job_->error->text);
  if (auto applied = ApplyEnd(logged.value(), text); !applied.ok()) {
    Problem(applied.error());
    DropJob();
  }
  return true;
}

void Deployment::DropJob() {
  if (job_ == nullptr) return;
  job_->stop.store(true, std::memory_order_relaxed);
  job_ = nullptr;
  TellScheduler(std::numeric_limits<double>::quiet_NaN(), 0);
}

void Deployment::TellScheduler(double loss, std::uint64_t rows) {
  (void)scheduler_.Decide(SituationNow());  // so that it knows of the data also in a replay
  scheduler_.OnFinish(env_.clock.Now(), loss, rows);
}

// What is kept of a replay is kept at once: later records may need it.
void Deployment::InBackground(std::function<void()> task) {
  if (recovering_)
    task();
  else
    background_.Post(std::move(task));
}

// Completes a version; others may go then, and records that only they needed.
Result<void> Deployment::KeepVitals(const VersionInfo& info, const std::string& vitals) {
  TRY(journal_->Sync());  // no version knows more than the journal
  TRY(versions_->SaveVitals(info, vitals));
  TRY(versions_->Prune(options_.versions_kept));
  if (!recovering_) TRY(journal_->Retain(versions_->NeededFrom(info.applied), Now()));
  return {};
}

void Deployment::PostIterate(Done done) {
  inbox_.Post([this, done = std::move(done)] {
    if (options_.method == Method::kContinuous) {
      scheduler_.Ask();
    } else if (options_.method == Method::kVelox) {
      if (data_->end() == 0) return done(Error{Code::kInvalid, "there are no observations yet to retrain on"});
      if (job_ == nullptr) StartIteration(Reason::kAsked);
    } else {
      return done(Error{Code::kInvalid, Str("method ", Name(options_.method), " runs no iterations")});
    }
    done(Json({{"iterations", tally_.iterations}, {"asked", true}}).dump());
  });
}

void Deployment::PostPin(std::uint64_t version, bool pinned, Done done) {
  inbox_.Post([this, version, pinned, done = std::move(done)] {
    if (versions_ == nullptr || !versions_->Find(version))
      return done(
          Error{Code::kNotFound, Str("version ", version, " is not kept; GET …/versions lists those that are")});
    const Json json = {{"version", version}, {"pinned", pinned}};
    auto logged = Log(RecordKind::kPin, json.dump());
    if (!logged.ok()) return done(logged.error());
    if (auto applied = ApplyPin(json.dump()); !applied.ok()) return done(applied.error());
    done(Json({{"version", Str(version)}, {"pinned", pinned}}).dump());
  });
}

void Deployment::PostDataset(std::vector<std::string> paths, Done done, Met met) {
  inbox_.Post([this, paths = std::move(paths), done = std::move(done), met]() mutable {
    if (journal_ == nullptr) return done(Error{Code::kInvalid, "data sets need a directory to keep them in"});
    Import(std::move(paths), met, std::move(done));
  });
}

// Reads a data set in the background with a copy of the description. Names it is the first to bring get numbers in that
// copy; they hold if nobody brought others meanwhile. If somebody did, the names are entered first and it is read
// again, which then finds them all. What does not join leaves no file behind.
void Deployment::Import(std::vector<std::string> paths, Met met, Done done) {
  struct Reading {
    data::Description description;
    std::vector<std::uint32_t> sizes;  // of its dictionaries, before
    std::string file;
    std::uint64_t rows = 0;
  };
  auto reading = std::make_shared<Reading>();
  reading->description = models_->description();
  for (const auto& dictionary : reading->description.dictionaries) reading->sizes.push_back(dictionary.size());
  reading->file = Str("set-", log_->next_sequence(), "-", ++imports_, ".rows");
  const std::string copy = Str(options_.directory, "/datasets/", reading->file);
  const auto refuse = [this, copy, done](const Error& why) {
    DatasetWriter::Remove(env_.files, copy);
    done(why);
  };
  const auto read = [this, reading, paths, copy]() -> Result<void> {
    TRY(env_.files.MakeDirectory(options_.directory + "/datasets"));
    base::InlineExecutor executor;
    const base::Env env{env_.files, env_.clock, env_.log, executor, env_.faults};
    data::ReaderOptions options;
    options.paths = paths;
    const auto source = TRY(data::Reader::Open(env, options, {}, reading->description));
    const auto writer = TRY(DatasetWriter::Create(env_.files, copy));
    TRY(data::DriveInOrder(executor, *source, [&](data::Rows& rows) { return writer->Append(rows.batch()); }));
    reading->rows = TRY(writer->Close());
    if (reading->rows == 0)
      return Error{Code::kBadInput, Str(Join(paths, ", "), ": found no rows, expected one or more")};
    return {};
  };
  const auto adopt = [this, reading, paths, copy, met, done, refuse]() -> void {
    bool alone = true;
    std::vector<data::NewName> names;
    for (std::size_t d = 0; d < reading->sizes.size(); ++d) {
      const data::Dictionary& dictionary = reading->description.dictionaries[d];
      alone = alone && models_->description().dictionaries[d].size() == reading->sizes[d];
      for (std::uint32_t n = reading->sizes[d]; n < dictionary.size(); ++n)
        names.push_back({0, static_cast<std::uint32_t>(d), std::string(dictionary.Name(n))});
    }
    if (!names.empty()) {
      std::string payload;
      PackNames(names, payload);
      auto logged = Log(RecordKind::kNames, payload);
      if (!logged.ok()) return refuse(logged.error());
      if (auto applied = ApplyNames({logged.value(), RecordKind::kNames, payload}); !applied.ok())
        return refuse(applied.error());
      NamesAreLogged();
      if (!alone) {
        DatasetWriter::Remove(env_.files, copy);
        return Import(paths, met, done);
      }
    }
    Json json{
        {"file", reading->file}, {"first", log_->next_number()}, {"rows", reading->rows}, {"path", Join(paths, ", ")}};
    if (met == Met::kKnown) json["known"] = true;
    const std::string text = Dump(json);
    auto logged = Log(RecordKind::kDataset, text);
    if (!logged.ok()) return refuse(logged.error());
    if (auto applied = ApplyDataset(text); !applied.ok()) return done(applied.error());
    env_.log.Info("data set joined", "path", Join(paths, ", "), "rows", reading->rows);
    done(Json({{"rows", reading->rows}, {"history", data_->end()}}).dump());
  };
  background_.Post([this, read, adopt, refuse] {
    if (auto result = read(); !result.ok()) return refuse(result.error());
    inbox_.Post(adopt);
  });
}

}  // namespace freshet::deploy
