// Starting a deployment: anew, or where its log ends.

#include "base/check.h"
#include "base/option.h"
#include "deploy/control_records.h"
#include "deploy/deployment.h"
#include "deploy/log/directory.h"
#include "deploy/takeover.h"
#include "train/evaluation.h"

namespace freshet::deploy {

Deployment::Deployment(const base::Env& env, DeploymentOptions options, Runtime& runtime, optimize::Memory& memory,
                       Doors doors)
    : env_(env),
      options_(std::move(options)),
      runtime_(runtime),
      memory_(memory),
      doors_{doors.readers, std::move(doors.companion), doors.writer != nullptr ? doors.writer : &own_bell_,
             doors.trainer != nullptr ? doors.trainer : &own_bell_},
      own_bell_(env.clock),
      background_(*doors_.trainer),
      scheduler_(options_.schedule),
      inbox_(options_.most_waiting, *doors_.writer) {}

Deployment::~Deployment() = default;

Result<std::unique_ptr<Deployment>> Deployment::Open(const base::Env& env, DeploymentOptions options, Runtime& runtime,
                                                     optimize::Memory& memory, model::TrainedModel start, Doors doors) {
  TRY(options.schedule.Validate());
  std::unique_ptr<Deployment> deployment(new Deployment(env, std::move(options), runtime, memory, std::move(doors)));
  TRY(deployment->Begin(std::move(start)));
  return deployment;
}

Result<void> Deployment::Begin(model::TrainedModel start) {
  TRY(UseModel(std::move(start.model)));
  task_ = train::TaskOf(*model_, start.description);
  drift_ = TRY(DriftDetector::Make(options_.drift));
  const bool classifies = task_ == data::Labels::Kind::kBinary || task_ == data::Labels::Kind::kClasses;
  if (classifies && doors_.readers > 0) appraisal_.CountClasses(model_->loss().name() != "hinge");
  if (options_.directory.empty()) {
    log_ = std::make_unique<MemoryLog>();
  } else {
    JournalOptions journal = options_.journal;
    journal.directory = options_.directory + "/journal";
    auto opened = TRY(Journal::Open(env_, journal));
    journal_ = opened.get();
    log_ = std::move(opened);
    TRY(OpenPending());
    versions_ = TRY(Versions::Open(env_, options_.directory + "/versions"));
    if (const auto all = versions_->list(); !all.empty()) known_ = all.back().id + 1;
    for (const std::string& draft : TRY(FilesIn(env_.files, options_.directory + "/datasets", ".draft")))
      TRY(env_.files.Remove(draft));
  }
  DataOptions data = options_.data;
  if (options_.schedule.max_buffer_size > 0) data.quiet_rows = options_.schedule.max_buffer_size;
  data_ = TRY(DataManager::Make(data, *log_));
  models_ = std::make_unique<ModelManager>(*model_, start.description, options_.optimizer, memory_, doors_.readers,
                                           doors_.companion);
  TRY(CheckNewClasses());
  const bool given = TRY(models_->Begin(&start.parameters, start.sums ? &*start.sums : nullptr));
  if (versions_ != nullptr && !TRY(LoadNewestVersion())) {
    if (journal_->first_sequence() > 1)
      return Error{Code::kCorrupt, Str(options_.directory,
                                       ": no version can be read, and the journal no longer reaches "
                                       "back to the first observation")};
    if (!given)
      env_.log.Warn("sums ignored", "directory", options_.directory, "rule", start.sums->rule, "now",
                    models_->state().optimizer->name());
    started_from_ = MarksOf(models_->state().parameters, models_->state().moments);
    const VersionInfo info{0, "start", 1, 0, 0, Now(), true};  // pinned: a replay can always begin here
    TRY(versions_->Save(info, *model_, models_->state(), models_->description()));
    TRY(versions_->SaveVitals(info, SaveVitals()));
    applied_ = metrics_from_ = 1;
  }
  if (journal_ != nullptr) {
    TRY(Recover(applied_));
    TRY(RecoverIds());
  }
  if (recommends()) RecoverRated(start);
  applied_ = log_->next_sequence();
  if (journal_ != nullptr) TRY(MeetStart(*made_models_.front(), start));
  NamesAreLogged();
  TRY(models_->Publish(applied_ - 1));
  {
    const base::Lock lock(stats_mutex_);
    stats_.version = applied_ - 1;
  }
  UpdateStats();
  return {};
}

Result<void> Deployment::BeginWith(std::unique_ptr<State> state, const data::Rows& past) {
  CHECK(journal_ == nullptr && log_->next_sequence() == 1);
  TRY(models_->TakeOver(std::move(state), {}, optimize::RowSets(model_->Blocks().size())));
  data::Rows one;
  one.width = past.width;
  std::vector<float> deltas(model_->scores());
  const data::Batch batch = past.batch();
  for (std::size_t r = 0; r < batch.rows; ++r) {
    one.ClearRows();
    one.AppendRow(batch, r);
    payload_.clear();
    Slip slip;
    slip.time = batch.times == nullptr ? 0 : batch.times[r];
    PackRow(one.batch(), 0, slip, payload_);
    log_->Append(RecordKind::kObservation, payload_);
    TRY(models_->Foresee(one, scores_));
    const bool clusters = task_ == data::Labels::Kind::kAuto;
    data_->Remember(clusters ? 0 : model_->loss().Evaluate(scores_, one.labels[0], deltas));
  }
  TRY(log_->Commit());
  applied_ = log_->next_sequence();
  UpdateStats();
  return {};
}

// The newest version that is whole. False when there is none.
Result<bool> Deployment::LoadNewestVersion() {
  auto all = versions_->list();
  for (auto info = all.rbegin(); info != all.rend(); ++info) {
    auto vitals = versions_->LoadVitals(info->id);
    auto loaded = vitals.ok() ? LoadVersion(info->id) : Result<Loaded>(vitals.error());
    if (!loaded.ok()) {
      const Error& error = loaded.error();
      if (error.code == Code::kInvalid) return error;
      versions_->Forget(info->id, error);
      continue;
    }
    TRY(LoadVitals(info->id, vitals.value()));
    models_->description() = std::move(loaded.value().description);
    TRY(models_->TakeOver(std::move(loaded.value().state), {},
                          optimize::RowSets(models_->state().parameters.blocks())));
    applied_ = info->applied;
    model_rows_ = info->learned;
    return true;
  }
  return false;
}

// A version is complete once the journal it was made from is on the disk: one that knows of records that the journal
// does not have proves that they were lost later.
Result<void> Deployment::CheckEnd(std::uint64_t known) const {
  const std::uint64_t end = journal_->next_sequence();
  if (end >= known) return {};
  const std::string what = Str(options_.directory, "/journal: ends with record ", end - 1, ", and a version proves ",
                               known - 1, ": records ", end, " to ", known - 1, " are missing");
  if (!options_.accept_loss)
    return Error{
        Code::kCorrupt,
        Str(what, ", with whatever came after them; put back the segments that were deleted or cut, or start with ",
            Option("accept-loss"), " to go on without")};
  env_.log.Error("records missing", "directory", options_.directory, "from", end, "to", known - 1, "advice",
                 Str("accepted by ", Option("accept-loss")));
  return {};
}

// Applies the records from a sequence on. Up to metrics_from_ only the weights lack them.
Result<void> Deployment::Recover(std::uint64_t from) {
  TRY(CheckEnd(std::max({from, metrics_from_, known_})));
  recovering_ = true;
  const auto started = env_.clock.Now();
  constexpr std::size_t kBlock = 1024;
  data::Rows rows;
  rows.width = model_->config().dense ? model_->config().features : 0;
  rows.ClearRows();
  std::vector<Slip> slips;
  std::uint64_t records = 0;
  if (journal_->first_sequence() > from)
    env_.log.Error("records missing", "directory", options_.directory, "from", from, "to",
                   journal_->first_sequence() - 1, "advice", "what they taught is lost");
  TRY(log_->Scan(from, [&](const Record& record) -> Result<void> {  // these must last until their record comes
    if (record.kind == RecordKind::kRollBack || record.kind == RecordKind::kPin)
      versions_->Hold(TRY(TargetOf(record)), record.sequence);
    return {};
  }));
  const auto learn = [&]() -> Result<void> {
    TRY(ApplyRows(rows, slips));
    rows.ClearRows();
    slips.clear();
    return {};
  };
  TRY(log_->Scan(from, [&](const Record& record) -> Result<void> {
    ++records;
    const bool observation = record.kind == RecordKind::kObservation;
    const bool crossing = applied_ <= metrics_from_ && record.sequence >= metrics_from_;
    if (!observation || crossing || rows.size() >= kBlock) TRY(learn());
    applied_ = record.sequence + 1;
    if (!observation) {
      const bool weights_only = record.sequence < metrics_from_;
      if (weights_only && record.kind == RecordKind::kDrift) models_->Fade(KeepOf(record));
      if (weights_only && record.kind != RecordKind::kNames && record.kind != RecordKind::kClass) return {};
      return ApplyRecord(record);
    }
    Slip& slip = slips.emplace_back();
    TRY(UnpackRow(record.payload, rows, slip));
    TRY(MeetLabel(rows.labels.back()));
    for (data::NewName name : slip.names) {
      name.entry += rows.offsets[rows.size() - 1];
      EnterName(name, rows);
    }
    // Its chronicle is as fine as it was.
    const bool moment = doors_.readers > 0 && applied_ > metrics_from_;
    if (moment && appraisal_.Due(appraisal_.Plausible(slip.time, Now()))) return learn();
    return {};
  }));
  TRY(learn());
  // What the newest version has seen may be more than the journal held on to; and what is damaged was not seen.
  journal_->SkipTo(std::max({from, metrics_from_, known_}), data_->end());
  data_->SkipTo(log_->next_number());
  recovering_ = false;
  TRY(versions_->RemoveIncomplete());
  if (job_ != nullptr) PostJob();  // it had started and not ended
  if (records > 0)
    env_.log.Info("recovered", "directory", options_.directory, "from", from, "records", records, "took_ms",
                  std::chrono::duration_cast<std::chrono::milliseconds>(env_.clock.Now() - started).count());
  return {};
}

// Predictions are not acknowledged: that they are synced once a second is enough for every level but the lowest.
Result<void> Deployment::OpenPending() {
  JournalOptions options = options_.journal;
  options.directory = options_.directory + "/pending";
  if (options.durability == Durability::kAlways) options.durability = Durability::kEverySec;
  options.retain_bytes = 2 * options_.data.pending_bytes;
  options.retain_seconds = options_.data.feedback_ttl + 1;
  options.segment_bytes = std::min(options.segment_bytes, std::max<std::uint64_t>(1, options.retain_bytes / 8));
  pending_log_ = TRY(Journal::Open(env_, options));
  return {};
}

// Ids that must not be learned twice, predictions whose label may still come, and what users have rated.
Result<void> Deployment::RecoverIds() {
  for (const std::uint64_t hash : TRY(journal_->RecentIds(options_.data.remembered_ids)))
    if (!data_->ids().Has(hash)) data_->ids().Add(hash);
  // Earlier programs kept predictions among the observations.
  const std::uint64_t labels_from = journal_->SequenceSince(Now() - options_.data.feedback_ttl);
  Slip slip;
  data::Rows row;
  TRY(journal_->Scan(recommends() ? 1 : labels_from, [&](const Record& record) -> Result<void> {
    if (record.kind == RecordKind::kObservation && recommends()) {
      row.ClearRows();
      TRY(UnpackRow(record.payload, row, slip));
      seen_.Add(row.batch());
    }
    if (record.kind == RecordKind::kPrediction && record.sequence >= labels_from) RecoverPrediction(record, slip);
    return {};
  }));
  return pending_log_->Scan(1, [&](const Record& record) -> Result<void> {
    if (record.kind == RecordKind::kPrediction) RecoverPrediction(record, slip);
    return {};
  });
}

void Deployment::RecoverPrediction(const Record& record, Slip& slip) {
  PeekSlip(record.payload, slip);
  if (slip.time + options_.data.feedback_ttl < Now()) return;
  data_->pending().Add(slip.owner, slip.id, slip.time, std::string(record.payload));
  if (data_->ids().Has(IdWindow::HashOf(slip.owner, slip.id))) data_->pending().Answer(slip.owner, slip.id);
}

// A data set that joined before this start. Without it there is less to draw from, and that is all.
Result<void> Deployment::AdoptAgain(const std::string& file, std::uint64_t first, std::uint64_t rows) {
  const std::string path = Str(options_.directory, "/datasets/", file);
  auto adopted = log_->Adopt(path, first, rows);
  if (adopted.ok()) return {};
  if (adopted.error().code != Code::kCorrupt && adopted.error().code != Code::kNotFound) return adopted;
  journal_->PassOverDataset(path, first, rows, adopted.error());
  return {};
}

// What the model had been trained on before it was deployed. By name: what is deployed now may number them otherwise.
void Deployment::RecoverRated(const model::TrainedModel& start) {
  const auto numbers = [&](std::size_t d) {
    const data::Dictionary& then = start.description.dictionaries[d];
    std::vector<std::uint32_t> now(then.size());
    for (std::uint32_t n = 0; n < then.size(); ++n) now[n] = models_->description().dictionaries[d].Find(then.Name(n));
    return now;
  };
  if (start.rated.empty()) return;
  const std::vector<std::uint32_t> users = numbers(0), items = numbers(1);
  for (const auto& [user, item] : start.rated.pairs())
    if (user < users.size() && item < items.size() && users[user] != data::kUnseen && items[item] != data::kUnseen)
      seen_.Add(users[user], items[item]);
}

std::string Deployment::SaveVitals() const {
  Json json;
  json["applied"] = applied_;
  json["quality"] = quality_.Save();
  json["drift"] = {{"kind", drift_->name()},
                   {"state", drift_->Save()},
                   {"found", drift_found_},
                   {"from", drift_from_},
                   {"waits", drift_waits_}};
  json["scheduler"] = scheduler_.Save();
  json["data"] = Json::parse(data_->Save());
  tally_.Save(json);
  json["datasets"] = datasets_;
  json["started_from"] = started_from_;
  json["discards"] = discards_.list();
  std::vector<std::uint64_t> pinned;
  for (const VersionInfo& info : versions_->list())
    if (info.pinned) pinned.push_back(info.id);
  json["pinned"] = pinned;
  {
    const base::Lock lock(stats_mutex_);
    json["totals"] = {stats_.iteration_rows, stats_.given_up, stats_.drifts, stats_.roll_backs};
  }
  appraisal_.Save(json);
  return json.dump();
}

Result<void> Deployment::LoadVitals(std::uint64_t version, const std::string& text) {
  try {
    const Json json = Json::parse(text);
    metrics_from_ = json.at("applied");
    if (!quality_.Load(json.at("quality").get<std::vector<double>>()))
      return Error{Code::kCorrupt, "the quality of a version is damaged"};
    if (json.at("drift").at("kind") == drift_->name()) {
      const auto state = json.at("drift").at("state").get<std::vector<double>>();
      if (!drift_->Load(state)) return Error{Code::kCorrupt, "the drift detector of a version is damaged"};
      drift_found_ = json.at("drift").at("found");
      drift_from_ = json.at("drift").at("from");
      drift_waits_ = json.at("drift").at("waits");
    }
    (void)scheduler_.Load(json.at("scheduler").get<std::vector<double>>());  // with other options it starts anew
    TRY(data_->Load(json.at("data").dump()));
    TRY(tally_.Load(json));
    started_from_ = json.value("started_from", "");
    discards_ = Ranges(json.at("discards").get<std::vector<Ranges::Range>>());
    for (const auto& [from, to] : discards_.list()) log_->Discard(from, to);
    for (const std::string& dataset : json.at("datasets").get<std::vector<std::string>>()) {
      const Json set = Json::parse(dataset);
      datasets_.push_back(dataset);
      TRY(AdoptAgain(set.at("file"), set.at("first"), set.at("rows")));
      data_->NoteJoined(set.at("first"), set.at("rows"));
    }
    if (json.contains("totals")) {  // versions of before did not keep what is below
      const auto totals = json.at("totals").get<std::vector<std::uint64_t>>();
      if (totals.size() != 4) return Error{Code::kCorrupt, "the totals of a version are damaged"};
      const base::Lock lock(stats_mutex_);
      stats_.iteration_rows = totals[0], stats_.given_up = totals[1];
      stats_.drifts = totals[2], stats_.roll_backs = totals[3];
    }
    appraisal_.Load(json);
    versions_->PinOnly(json.at("pinned").get<std::vector<std::uint64_t>>(), version);
  } catch (const Json::exception& problem) {
    return Error{Code::kCorrupt, Str("the vitals of a version are damaged: ", problem.what())};
  }
  return {};
}

Result<void> Deployment::Close() {
  closing_ = true;
  starting_.reset();
  if (job_ != nullptr) job_->stop.store(true, std::memory_order_relaxed);
  while (background_.RunOne() || Turn()) continue;
  if (journal_ == nullptr) return {};
  if (learns() && job_ == nullptr && tally_.since_version > 0) {
    StartVersion("stop");
    while (GoOnStarting()) continue;
  }
  while (background_.RunOne()) continue;
  TRY(pending_log_->Sync());
  return journal_->Sync();
}

}  // namespace freshet::deploy
