// What each kind of record does to a deployment. The same code runs when a record has just been written and when the
// log is replayed, so that both end in the same model.

#include <algorithm>
#include <cmath>

#include "data/row_cells.h"
#include "deploy/control_records.h"
#include "deploy/deployment.h"

namespace freshet::deploy {

namespace {

// Records that brought names were lost: others take their places, so that the names after them keep their numbers.
void AddLostNames(data::Dictionary& dictionary, std::uint32_t size) {
  while (dictionary.size() < size) dictionary.Add(Str("(lost ", dictionary.size(), ")"));
}

}  // namespace

Result<void> Deployment::ApplyRows(data::Rows& rows, std::span<Slip> slips) {
  if (rows.size() == 0) return {};
  if (recommends() && !recovering_) seen_.Add(rows.batch());
  const bool counts = !recovering_ || applied_ > metrics_from_;
  const std::uint64_t aside = models_->state().set_aside;
  const double loss = TRY(learns() ? models_->Update(rows, scores_) : models_->Foresee(rows, scores_));
  if (learns()) model_rows_ += rows.size();
  if (const std::uint64_t more = models_->state().set_aside - aside; more > 0) {
    env_.log.Warn("rows set aside", "directory", options_.directory, "rows", more, "before", applied_, "reason",
                  "their loss is beyond all bounds");
    const base::Lock lock(stats_mutex_);
    stats_.set_aside += more;
  }
  if (!std::isfinite(loss) && !diverged_) {
    diverged_ = true;
    env_.log.Error("diverged", "sequence", applied_, "advice", "roll back to an earlier version and discard the cause");
  }
  if (!counts) return {};
  const std::size_t k = model_->scores();
  std::vector<float> deltas(k);
  base::Lock judging(appraisal_.mutex());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const bool foretold = slips[r].scores.size() == k;
    std::span<float> scores = foretold ? std::span(slips[r].scores) : std::span(scores_).subspan(r * k, k);
    if (options_.clip)
      scores[0] =
          std::clamp(scores[0], static_cast<float>(options_.clip->first), static_cast<float>(options_.clip->second));
    const double error = ErrorOf(task_, scores, rows.labels[r]);
    quality_.Add(error);
    if (drift_->Add(error) == Drift::kDrift) {
      drift_found_ = true;
      drift_from_ = data_->ObservationBefore(drift_->since());
    }
    const bool judged = task_ != data::Labels::Kind::kAuto;
    const double row_loss = judged ? model_->loss().Evaluate(scores, rows.labels[r], deltas) : 0;
    data_->Observe(row_loss);
    appraisal_.Judge(scores, rows.labels[r], deltas, row_loss);
  }
  judging.unlock();
  tally_.Add(rows.size(), learns());
  if (recovering_) Remember(appraisal_.Plausible(slips.back().time, Now()));
  return {};
}

// A name that came with a row of the log, in a replay. Its entry holds the feature it was then, which stays right also
// when records that brought others are lost.
void Deployment::EnterName(const data::NewName& name, data::Rows& rows) {
  data::Description& description = models_->description();
  data::Dictionary& dictionary = description.dictionaries[description.format == "ratings" ? name.space : 0];
  const auto next = [&] { return data::FeatureOf(description, name.space, dictionary.size()); };
  while (next() < rows.indices[name.entry]) AddLostNames(dictionary, dictionary.size() + 1);
  if (next() == rows.indices[name.entry]) data::AddNames({&name, 1}, description, rows);
}

Result<void> Deployment::ApplyNames(const Record& record) {
  for (const data::NewName& name : TRY(UnpackNames(record.payload))) {
    auto& dictionaries = models_->description().dictionaries;
    if (name.space >= dictionaries.size()) return Error{Code::kCorrupt, "a name of a dictionary that is not there"};
    AddLostNames(dictionaries[name.space], name.entry);
    if (name.entry == 0 || name.entry == dictionaries[name.space].size()) dictionaries[name.space].Add(name.name);
  }
  return {};
}

// Control records; observations come by ApplyRows.
Result<void> Deployment::ApplyRecord(const Record& record) {
  const std::string json(record.payload);
  try {
    switch (record.kind) {
      case RecordKind::kIterationStart:
        return ApplyStart(record.sequence, json);
      case RecordKind::kIterationEnd:
        return ApplyEnd(record.sequence, json);
      case RecordKind::kVersion:
        return ApplyVersion(record.sequence, json);
      case RecordKind::kRollBack:
        return ApplyRollBack(record.sequence, json);
      case RecordKind::kPin:
        return ApplyPin(json);
      case RecordKind::kDataset:
        return ApplyDataset(json);
      case RecordKind::kDrift:
        ApplyDrift(json);
        return {};
      case RecordKind::kNames:
        return ApplyNames(record);
      case RecordKind::kClass:
        return ApplyClass(json);
      case RecordKind::kDeploy:
        return ApplyDeploy(record.sequence, json);
      case RecordKind::kPrediction:
      case RecordKind::kObservation:
        return {};
    }
  } catch (const Json::exception& problem) {
    return Error{Code::kCorrupt, Str("record ", record.sequence, " (", Name(record.kind), "): ", problem.what())};
  }
  return {};
}

Result<void> Deployment::ApplyStart(std::uint64_t sequence, const std::string& text) {
  const Json json = Json::parse(text);
  DropJob();
  auto job = std::make_shared<Iteration>();
  job->start = sequence;
  job->applied = sequence + 1;
  job->retrain = json.at("kind") == "retrain";
  job->keep = json.at("keep");
  job->passes = json.at("passes");
  job->scale = json.at("scale");
  job->seed = json.at("seed");
  const Take take{job->seed,
                  json.at("first"),
                  json.at("rate"),
                  json.at("per_arrival"),
                  json.at("buffer_share"),
                  json.at("most_sample"),
                  json.value("least_sample", std::uint64_t{0}),
                  json.value("sets", false)};
  if (job->retrain || take.sets) job->sets_end = data_->end();
  if (!job->retrain && take.sets) job->unvisited = data_->TakeUnvisited(take);
  job->numbers = job->retrain ? data_->TakeEverything(take.seed, take.first) : data_->TakeIteration(take);
  if (job->retrain) {
    job->state = TRY(models_->NewState());
    job->state->moments = models_->state().moments;
    job->state->target = models_->state().target;
  } else {
    job->state = TRY(models_->Copy());
  }
  job->model = model_;
  job->description = models_->description();
  job->info = {sequence, job->retrain ? "retraining" : "iteration", sequence + 1, model_rows_, quality_.recent, Now(),
               false};
  (void)scheduler_.Decide(SituationNow());  // so that it knows of the data also in a replay
  scheduler_.OnStart(env_.clock.Now());
  drift_waits_ = false;
  job_ = std::move(job);
  if (!recovering_) PostJob();
  return {};
}

Result<void> Deployment::ApplyEnd(std::uint64_t sequence, const std::string& text) {
  const Json json = Json::parse(text);
  if (job_ == nullptr || job_->start != json.at("start").get<std::uint64_t>()) return {};
  const bool published = json.at("published");
  if (published || !json.value("stopped", false)) data_->Visited(job_->sets_end);  // what failed would fail again
  if (!published) {
    DropJob();
    const base::Lock lock(stats_mutex_);
    ++stats_.given_up;
    return {};
  }
  if (json.contains("version")) versions_->Hold(job_->start, sequence);
  if (!job_->done.load(std::memory_order_acquire)) {  // in a replay
    if (!json.contains("version") || !TRY(LoadMade(*job_, json.at("rows"), json.value("loss", 0.0)))) RunJob(*job_);
  }
  Iteration& job = *job_;
  if (job.error)
    return Error{job.error->code,
                 Str("iteration ", job.start, " ended well before and fails in the replay: ", job.error->text)};
  optimize::RowSets touched(models_->state().parameters.blocks());
  if (learns()) TRY(job.CatchUp(*log_, sequence, &touched));
  TRY(models_->TakeOver(std::move(job.state), std::move(job.editions), touched));
  data_->rate().OnIteration();
  ++tally_.iterations;
  if (job.retrain) {
    tally_.since_retraining = 0;
    tally_.error_after_retraining = quality_.recent;
  }
  TellScheduler(job.report.loss, job.report.rows);
  {
    const base::Lock lock(stats_mutex_);
    stats_.iteration_rows += job.report.rows;
    stats_.iteration_seconds += job.seconds;
    stats_.longest_iteration = std::max(stats_.longest_iteration, job.seconds);
    stats_.last_loss = job.report.loss;
  }
  const auto finished = std::move(job_);
  if (!finished->keep || versions_->Find(finished->start)) return {};
  InBackground([this, info = finished->info, vitals = SaveVitals()] {
    if (auto kept = KeepVitals(info, vitals); !kept.ok()) Problem(kept.error());
  });
  return {};
}

// What an iteration made whose work cannot be repeated. False when that is damaged or gone.
Result<bool> Deployment::LoadMade(Iteration& job, std::uint64_t rows, double loss) {
  auto loaded = LoadVersion(job.start);
  if (!loaded.ok()) {
    const Code code = loaded.error().code;
    if (code != Code::kCorrupt && code != Code::kNotFound) return std::move(loaded).error();
    versions_->Forget(job.start, loaded.error());
    Problem({code, Str("iteration ", job.start, ": what it made is damaged (", loaded.error().text,
                       "); it is trained again, and the model is not quite the one that served")});
    return false;
  }
  job.state = std::move(loaded.value().state);
  job.report = {rows, loss};
  job.keep = job.named = true;
  job.done.store(true, std::memory_order_release);
  return true;
}

Result<void> Deployment::ApplyVersion(std::uint64_t sequence, const std::string& text) {
  const Json json = Json::parse(text);
  tally_.since_version = 0;
  (void)scheduler_.Decide(SituationNow());  // so that it knows of the data also in a replay
  if (versions_ == nullptr || versions_->Find(sequence)) return {};
  const VersionInfo info{sequence, json.at("origin"), sequence + 1, model_rows_, quality_.recent, Now(), false};
  std::shared_ptr<State> state = TRY(models_->Copy());
  InBackground([this, info, model = model_, state, description = models_->description(), vitals = SaveVitals()] {
    auto kept = versions_->Save(info, *model, *state, description);
    if (kept.ok()) kept = KeepVitals(info, vitals);
    if (!kept.ok()) Problem(kept.error());
  });
  return {};
}

Result<void> Deployment::ApplyRollBack(std::uint64_t sequence, const std::string& text) {
  const Json json = Json::parse(text);
  const std::uint64_t id = json.at("version");
  Ranges discard(json.value("discards", std::vector<Ranges::Range>()));
  if (json.contains("discard")) discard.Add(json.at("discard").at(0), json.at("discard").at(1));  // by one of old
  return RollBack(TRY(RolledBack(id, discard, json.at("relearn"), sequence)), discard);
}

// A version as it was, or with all that was observed since and before `sequence` but what is discarded.
Result<Deployment::Earlier> Deployment::RolledBack(std::uint64_t id, const Ranges& discard, bool relearn,
                                                   std::uint64_t sequence) {
  if (versions_ == nullptr) return Error{Code::kInvalid, "nothing is kept to roll back to"};
  const auto info = versions_->Find(id);
  if (!info) return Error{Code::kNotFound, Str("version ", id, " is not kept any more")};
  auto loaded = LoadVersion(id);
  if (!loaded.ok()) {
    const Code code = loaded.error().code;
    if (code != Code::kCorrupt && code != Code::kNotFound) return std::move(loaded).error();
    versions_->Forget(id, loaded.error());
    return Error{code, Str("version ", id, " is damaged; GET …/versions lists those that are left")};
  }
  std::unique_ptr<State> state = std::move(loaded.value().state);
  std::uint64_t learned = info->learned;
  if (!relearn) return Earlier{std::move(state), learned};
  if (info->applied < journal_->first_sequence() && !recovering_)
    return Error{Code::kInvalid, Str("version ", id,
                                     ": what was observed since is no longer in the journal, which begins "
                                     "with record ",
                                     journal_->first_sequence())};
  learned += TRY(Relearn(*state, info->applied, sequence, discard));
  return Earlier{std::move(state), learned};
}

// What was observed from one sequence up to another and is not discarded; returns how many rows that were.
Result<std::uint64_t> Deployment::Relearn(State& state, std::uint64_t from, std::uint64_t to,
                                          const Ranges& discard) const {
  data::Rows rows;
  rows.width = model_->config().dense ? model_->config().features : 0;
  std::vector<float> scores;
  Slip slip;
  std::uint64_t learned = 0;
  TRY(log_->Scan(from, [&](const Record& record) -> Result<void> {
    const bool gone = discard.Holds(record.sequence) || discards_.Holds(record.sequence);
    if (record.sequence >= to || record.kind != RecordKind::kObservation || gone) return {};
    rows.ClearRows();
    TRY(UnpackRow(record.payload, rows, slip));
    TRY(state.Learn(*model_, rows, scores));
    ++learned;
    return {};
  }));
  return learned;
}

Result<void> Deployment::RollBack(Earlier earlier, const Ranges& discard) {
  DropJob();
  starting_.reset();
  for (const auto& [first, last] : discard.list()) log_->Discard(first, last);
  discards_.Add(discard);
  TRY(models_->TakeOver(std::move(earlier.state), {}, optimize::RowSets(models_->state().parameters.blocks())));
  model_rows_ = earlier.learned;
  diverged_ = false;
  const base::Lock lock(stats_mutex_);
  ++stats_.roll_backs;
  return {};
}

Result<void> Deployment::ApplyPin(const std::string& text) {
  const Json json = Json::parse(text);
  if (versions_ != nullptr) versions_->Pin(json.at("version"), json.at("pinned"));
  return {};
}

Result<void> Deployment::ApplyDataset(const std::string& text) {
  const Json json = Json::parse(text);
  datasets_.push_back(text);
  const std::uint64_t rows = json.at("rows");
  const std::string file = json.at("file");
  if (recovering_)
    TRY(AdoptAgain(file, json.at("first"), rows));
  else
    TRY(log_->Adopt(Str(options_.directory, "/datasets/", file), json.at("first"), rows));
  data_->Join(json.at("first"), rows, json.value("known", false));
  return {};
}

void Deployment::ApplyDrift(const std::string& text) {
  const Json json = Json::parse(text);
  models_->Fade(json.value("keep", 1.0));
  data_->Forget(json.value("from", std::uint64_t{0}));
  drift_found_ = false;
  drift_waits_ = true;
  data_->rate().OnDrift();
  const base::Lock lock(stats_mutex_);
  ++stats_.drifts;
}

}  // namespace freshet::deploy
