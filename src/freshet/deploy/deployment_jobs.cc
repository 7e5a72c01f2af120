// Iterations, versions and data sets: what takes long runs in the background and comes back to the writer.

#include <algorithm>

#include "base/executor.h"
#include "data/drive.h"
#include "data/reader.h"
#include "deploy/deployment_parts.h"

namespace freshet::deploy {

// An iteration or a version begins with a copy of the state, taken a piece a turn so that observations go on being learned
// in between; the record that says so is written when the copy is complete.
void Deployment::StartIteration(Reason reason) {
  if (!starting_) starting_ = {{reason, ""}};
}

void Deployment::StartVersion(std::string_view origin) {
  if (!starting_) starting_ = {{Reason::kNone, std::string(origin)}};
}

bool Deployment::GoOnStarting() {
  if (!starting_) return false;
  const bool retrain = starting_->origin.empty() && options_.method == Method::kVelox;
  if (!retrain) {  // a retraining begins with nothing
    constexpr std::uint64_t kBytesATurn = 2 << 20;
    const auto began = env_.clock.Now();
    auto complete = models_->CopySome(kBytesATurn);
    {
      const double took = base::Seconds(env_.clock.Now() - began);
      const std::lock_guard lock(stats_mutex_);
      stats_.copy_seconds = std::max(stats_.copy_seconds, took);
    }
    if (!complete.ok()) Problem(complete.error());
    if (complete.ok() && !complete.value()) return true;
  }
  const Starting starting = *std::exchange(starting_, std::nullopt);
  if (!starting.origin.empty()) {
    const std::string json = Json({{"origin", starting.origin}}).dump();
    auto logged = Log(RecordKind::kVersion, json);
    if (!logged.ok()) return Problem(logged.error()), true;
    if (auto applied = ApplyVersion(logged.value(), json); !applied.ok()) Problem(applied.error());
    return true;
  }
  const bool keep = versions_ != nullptr && env_.clock.Now() - last_version_ >= VersionGap();
  const std::string plan = Json({{"kind", retrain ? "retrain" : "iterate"},
                                 {"reason", Text(starting.reason)},
                                 {"seed", base::Hash64(options_.seed ^ (log_->next_sequence() << 20))},
                                 {"rate", data_->rate().value()},
                                 {"scale", retrain ? 1.0 : options_.iteration_scale},
                                 {"passes", retrain ? options_.retrain_epochs : 1},
                                 {"first", log_->first()},
                                 {"keep", keep}})
                               .dump();
  auto logged = Log(RecordKind::kIterationStart, plan);
  if (!logged.ok()) return Problem(logged.error()), true;
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
void Deployment::RunJob(Job& job) {
  const auto work = [&]() -> Result<void> {
    const auto started = env_.clock.Now();
    job.report =
        TRY(runtime_.Run(*model_, *job.state, *log_, {job.numbers, job.passes, job.scale, job.seed, &job.stop}));
    job.seconds = base::Seconds(env_.clock.Now() - started);
    if (job.keep && versions_ != nullptr && !versions_->Find(job.start)) {
      const auto saving = env_.clock.Now();
      TRY(versions_->Save(job.info, *model_, *job.state, job.description));
      saving_.store((env_.clock.Now() - saving).count(), std::memory_order_relaxed);
    }
    if (recovering_) return {};
    constexpr std::uint64_t kFew = 256;
    for (int round = 0; round < 20 && log_->end_sequence() > job.applied + kFew; ++round)
      TRY(CatchUp(job, log_->end_sequence(), nullptr));
    job.editions = TRY(models_->Editions(*job.state, job.description));
    return {};
  };
  if (auto result = work(); !result.ok()) job.error = std::move(result).error();
  job.done.store(true, std::memory_order_release);
}

// Lets the copy learn the observations of the log from where it is up to `to`.
Result<void> Deployment::CatchUp(Job& job, std::uint64_t to, optimize::RowSets* touched) {
  if (job.applied >= to || !learns()) return {};
  constexpr std::size_t kBlock = 256;
  data::Rows rows;
  rows.width = model_->config().dense ? model_->config().features : 0;
  rows.ClearRows();
  std::vector<float> scores;
  Note note;
  const auto learn = [&]() -> Result<void> {
    if (rows.size() == 0) return {};
    TRY(job.state->Learn(*model_, rows, scores));
    if (touched != nullptr) model_->Touch(job.state->parameters, rows.batch(), *touched);
    rows.ClearRows();
    return {};
  };
  TRY(log_->Scan(job.applied, [&](const Record& record) -> Result<void> {
    if (record.kind != RecordKind::kObservation || record.sequence >= to) return {};
    TRY(UnpackRow(record.payload, rows, note));
    return rows.size() >= kBlock ? learn() : Result<void>();
  }));
  TRY(learn());
  job.applied = to;
  return {};
}

// The trained copy comes back: it takes over, or it is given up.
void Deployment::FinishJob() {
  Json json = {{"start", job_->start}, {"published", !job_->error.has_value()}};
  if (job_->error)
    json["reason"] = job_->error->text;
  else
    json["rows"] = job_->report.rows, json["loss"] = job_->report.loss, json["seconds"] = job_->seconds;
  auto logged = Log(RecordKind::kIterationEnd, json.dump());
  if (!logged.ok()) return Problem(logged.error());  // it stays, and is tried again at the next turn
  if (job_->error) env_.log.Warn("iteration given up", "start", job_->start, "reason", job_->error->text);
  if (auto applied = ApplyEnd(logged.value(), json.dump()); !applied.ok()) Problem(applied.error());
}

void Deployment::DropJob() {
  if (job_ == nullptr) return;
  job_->stop.store(true, std::memory_order_relaxed);
  job_ = nullptr;
  scheduler_.OnFinish(env_.clock.Now(), std::numeric_limits<double>::quiet_NaN());
}

void Deployment::KeepVitals(const VersionInfo& info) {
  background_.Post([this, info, vitals = SaveVitals(), needed = info.applied, now = Now()] {
    auto saved = versions_->SaveVitals(info, vitals);
    if (saved.ok()) saved = versions_->Prune(options_.versions_kept);
    if (!saved.ok()) return Problem(saved.error());
    if (journal_ == nullptr) return;
    if (auto dropped = journal_->Retain(needed, now); !dropped.ok()) Problem(dropped.error());
  });
}

void Deployment::PostCommand(Command command) {
  {
    const std::lock_guard lock(inbox_mutex_);
    commands_.push_back(std::move(command));
  }
  doors_.writer->Ring();
}

void Deployment::PostIterate(Done done) {
  PostCommand([this, done = std::move(done)] {
    if (options_.method == Method::kContinuous) {
      scheduler_.Ask();
    } else if (options_.method == Method::kVelox) {
      if (job_ == nullptr) StartIteration(Reason::kAsked);
    } else {
      return done(Error{Code::kInvalid, Str("method ", Name(options_.method), " runs no iterations")});
    }
    done(Json({{"iterations", iterations_}, {"asked", true}}).dump());
  });
}

void Deployment::PostRollBack(std::uint64_t version, std::optional<std::pair<std::uint64_t, std::uint64_t>> discard,
                              bool relearn, Done done) {
  PostCommand([this, version, discard, relearn, done = std::move(done)] {
    if (versions_ == nullptr || !versions_->Find(version))
      return done(
          Error{Code::kNotFound, Str("version ", version, " is not kept; GET …/versions lists those that are")});
    Json json = {{"version", version}, {"relearn", relearn}};
    if (discard) json["discard"] = {discard->first, discard->second};
    auto logged = Log(RecordKind::kRollBack, json.dump());
    if (!logged.ok()) return done(logged.error());
    if (auto applied = ApplyRollBack(logged.value(), json.dump()); !applied.ok()) {
      Problem(applied.error());
      return done(applied.error());
    }
    StartVersion("roll-back");
    done(Json({{"version", Str(version)}, {"sequence", logged.value()}}).dump());
  });
}

void Deployment::PostPin(std::uint64_t version, bool pinned, Done done) {
  PostCommand([this, version, pinned, done = std::move(done)] {
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

void Deployment::PostDataset(std::string path, Done done) {
  PostCommand([this, path = std::move(path), done = std::move(done)]() mutable {
    if (journal_ == nullptr) return done(Error{Code::kInvalid, "data sets need a directory to keep them in"});
    Import(std::move(path), std::move(done));
  });
}

// Reads a data set in the background with a copy of the description. Names it is the first to bring get numbers in that
// copy; they hold if nobody brought others meanwhile. If somebody did, the names are entered first and it is read
// again, which then finds them all.
void Deployment::Import(std::string path, Done done) {
  struct Reading {
    data::Description description;
    std::vector<std::uint32_t> sizes;  // of its dictionaries, before
    std::string file;
    std::uint64_t rows = 0;
  };
  auto reading = std::make_shared<Reading>();
  reading->description = models_->description();
  for (const auto& dictionary : reading->description.dictionaries) reading->sizes.push_back(dictionary.size());
  reading->file = Str("set-", log_->next_sequence(), ".rows");
  const auto read = [this, reading, path]() -> Result<void> {
    const std::string directory = options_.directory + "/datasets";
    TRY(env_.files.MakeDirectory(directory));
    base::InlineExecutor executor;
    const base::Env env{env_.files, env_.clock, env_.log, executor, env_.faults};
    data::ReaderOptions options;
    options.paths = {path};
    const auto source = TRY(data::Reader::Open(env, options, {}, reading->description));
    const auto writer = TRY(DatasetWriter::Create(env_.files, Str(directory, "/", reading->file)));
    TRY(data::DriveInOrder(executor, *source, [&](data::Rows& rows) { return writer->Append(rows.batch()); }));
    reading->rows = TRY(writer->Close());
    return {};
  };
  const auto adopt = [this, reading, path, done]() -> void {
    bool brings = false, alone = true;
    std::vector<data::NewName> names;
    for (std::size_t d = 0; d < reading->sizes.size(); ++d) {
      const data::Dictionary& dictionary = reading->description.dictionaries[d];
      alone = alone && models_->description().dictionaries[d].size() == reading->sizes[d];
      brings = brings || dictionary.size() > reading->sizes[d];
      for (std::uint32_t n = reading->sizes[d]; n < dictionary.size(); ++n)
        names.push_back({0, static_cast<std::uint32_t>(d), std::string(dictionary.Name(n))});
    }
    if (brings) {
      payload_.clear();
      PackNames(names, payload_);
      auto logged = Log(RecordKind::kNames, payload_);
      if (!logged.ok()) return done(logged.error());
      if (auto applied = ApplyNames({logged.value(), RecordKind::kNames, payload_}); !applied.ok())
        return done(applied.error());
      NamesAreLogged();
      if (!alone) return Import(path, done);
    }
    const Json json = {
        {"file", reading->file}, {"first", log_->next_number()}, {"rows", reading->rows}, {"path", path}};
    auto logged = Log(RecordKind::kDataset, json.dump());
    if (!logged.ok()) return done(logged.error());
    if (auto applied = ApplyDataset(json.dump()); !applied.ok()) return done(applied.error());
    env_.log.Info("data set joined", "path", path, "rows", reading->rows);
    done(Json({{"rows", reading->rows}, {"history", data_->end()}}).dump());
  };
  background_.Post([this, read, adopt, done] {
    if (auto result = read(); !result.ok()) return done(result.error());
    PostCommand(adopt);
  });
}

}  // namespace freshet::deploy
