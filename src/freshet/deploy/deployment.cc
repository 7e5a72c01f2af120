#include "deploy/deployment.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "deploy/deployment_parts.h"

namespace freshet::deploy {
namespace {

constexpr std::pair<Method, std::string_view> kMethods[] = {{Method::kStatic, "static"},
                                                            {Method::kBaseline, "baseline"},
                                                            {Method::kBaselinePlus, "baseline+"},
                                                            {Method::kVelox, "velox"},
                                                            {Method::kContinuous, "continuous"}};

// Indices that the model could not make room for are refused before they are written.
Result<void> CheckIndices(const model::Model& model, const data::Batch& batch) {
  if (!batch.sparse()) return {};
  std::uint64_t most = model.config().features;
  for (const optimize::Block& block : model.Blocks())
    if (block.most_rows > block.rows) most = block.most_rows;
  const std::uint64_t end = model::IndexEnd(batch);
  if (end <= most) return {};
  return Error{Code::kBadInput, Str("feature ", end - 1, " is beyond what the model can have (", most, " features)")};
}

// So are rows that a record has no room for.
Result<void> CheckSizes(const data::Batch& batch, std::span<const data::NewName> names,
                        std::span<const std::string> ids) {
  std::uint64_t texts = 0;
  for (const data::NewName& name : names) texts += name.name.size() + 3 * sizeof(std::uint32_t);
  for (std::size_t r = 0; r < batch.rows; ++r) {
    const std::uint64_t entries = batch.sparse() ? batch.offsets[r + 1] - batch.offsets[r] : batch.width;
    const std::uint64_t id = ids.empty() ? 0 : ids[r].size();
    if (entries * 2 * sizeof(float) + texts + id > kMostPayload / 2)
      return Error{Code::kBadInput, Str("row ", r, ": ", entries, " features are more than a record has room for")};
  }
  return {};
}

// The row of one id when a request had several under one.
std::string RowId(const std::string& id, std::size_t row, std::size_t rows) {
  return rows == 1 ? id : Str(id, "/", row);
}

}  // namespace

Result<Method> ParseMethod(std::string_view text) {
  for (const auto& [method, name] : kMethods)
    if (name == text) return method;
  return Error{Code::kInvalid, Str("method ", Quoted(text), ": expected one of ", Join(MethodNames(), ", "))};
}

std::string_view Name(Method method) {
  return std::find_if(std::begin(kMethods), std::end(kMethods), [&](const auto& m) { return m.first == method; })
      ->second;
}

std::vector<std::string> MethodNames() {
  std::vector<std::string> names;
  for (const auto& [method, name] : kMethods) names.emplace_back(name);
  return names;
}

std::int64_t Deployment::Now() const {
  return std::chrono::duration_cast<std::chrono::seconds>(env_.clock.Wall()).count();
}

void Deployment::PostRequest(Learn learn) {
  {
    const std::lock_guard lock(inbox_mutex_);
    learns_.push_back(std::move(learn));
    ++learns_posted_;
  }
  doors_.writer->Ring();
}

void Deployment::PostLearn(data::Rows rows, std::vector<data::NewName> names, std::vector<std::string> ids,
                           LearnDone done, std::vector<data::NewLabel> new_labels) {
  const std::size_t count = rows.size();
  if (waiting_rows_.load(std::memory_order_relaxed) + count > options_.most_waiting + 1) {
    done(Error{Code::kBusy, "too many observations are waiting to be written; send them again in a moment"});
    return;
  }
  waiting_rows_ += count;
  Learn learn;
  learn.rows = std::move(rows);
  learn.names = std::move(names);
  learn.ids = std::move(ids);
  learn.new_labels = std::move(new_labels);
  learn.done = std::move(done);
  PostRequest(std::move(learn));
}

void Deployment::PostFeedback(std::string id, std::vector<float> labels, LearnDone done,
                              std::optional<std::string> owner, std::vector<data::NewLabel> new_labels) {
  Learn learn;
  learn.new_labels = std::move(new_labels);
  learn.kind = Learn::Kind::kFeedback;
  learn.id = std::move(id);
  learn.labels = std::move(labels);
  learn.owner = std::move(owner);
  learn.done = std::move(done);
  PostRequest(std::move(learn));
}

void Deployment::PostPrediction(std::string id, data::Rows rows, std::vector<data::NewName> names,
                                std::vector<float> scores, std::string owner) {
  const std::size_t count = rows.size();
  if (waiting_rows_.load(std::memory_order_relaxed) + count > options_.most_waiting + 1)
    return;  // feedback will miss it
  waiting_rows_ += count;
  Learn learn;
  learn.kind = Learn::Kind::kPrediction;
  learn.id = std::move(id);
  learn.rows = std::move(rows);
  learn.names = std::move(names);
  learn.scores = std::move(scores);
  learn.owner = std::move(owner);
  PostRequest(std::move(learn));
}

// Writes one row into the waiting part of the log and, if it is to be learned, among the fresh ones.
void Deployment::AcceptRow(Learn& learn, std::size_t row) {
  const bool prediction = learn.kind == Learn::Kind::kPrediction;
  Note note;
  if (prediction) {
    note.id = RowId(learn.id, row, learn.rows.size());
    note.owner = *learn.owner;
  } else if (!learn.ids.empty()) {
    note.id = learn.ids[row];
  }
  const std::uint64_t hash = prediction || note.id.empty() ? 0 : IdWindow::HashOf(note.id);
  if (hash != 0) {
    if (data_->ids().Has(hash) || WasLabelled(note.id)) {
      ++learn.reply.duplicates;
      return;
    }
    data_->ids().Add(hash);
    ++learn.ids_added;
  }
  note.time = learn.rows.times.empty() || prediction ? Now() : learn.rows.times[row];
  if (prediction) {
    const std::size_t k = learn.scores.size() / learn.rows.size();  // of the model that made them
    note.scores.assign(learn.scores.begin() + static_cast<std::ptrdiff_t>(row * k),
                       learn.scores.begin() + static_cast<std::ptrdiff_t>((row + 1) * k));
  }
  if (!learn.names.empty()) {
    const std::uint32_t begin = learn.rows.offsets[row], end = learn.rows.offsets[row + 1];
    auto name = std::lower_bound(learn.names.begin(), learn.names.end(), begin,
                                 [](const data::NewName& n, std::uint32_t entry) { return n.entry < entry; });
    for (; name != learn.names.end() && name->entry < end; ++name) {
      if (!prediction) data::AddNames({&*name, 1}, models_->description(), learn.rows);
      note.names.push_back({name->entry - begin, name->space, name->name});
    }
  }
  payload_.clear();
  PackRow(learn.rows.batch(), row, note, payload_);
  if (prediction) {
    if (pending_log_ != nullptr) pending_log_->Append(RecordKind::kPrediction, payload_, 0, note.time);
    data_->pending().Add(std::move(note.owner), std::move(note.id), note.time, payload_);
    return;
  }
  learn.reply.last_sequence = log_->Append(RecordKind::kObservation, payload_, hash, note.time);
  ++learn.reply.accepted;
  CHECK(UnpackRow(payload_, fresh_, fresh_notes_.emplace_back()).ok());
  fresh_sequences_.push_back(learn.reply.last_sequence);
}

// Names in the dictionaries that no record holds yet, since the one that brought them could not be written, come before
// whatever is written next: it may use their numbers.
void Deployment::AppendUnloggedNames() {
  std::vector<data::NewName> names;
  for (std::size_t d = 0; d < logged_names_.size(); ++d) {
    const data::Dictionary& dictionary = models_->description().dictionaries[d];
    for (std::uint32_t n = logged_names_[d]; n < dictionary.size(); ++n)
      names.push_back({n, static_cast<std::uint32_t>(d), std::string(dictionary.Name(n))});
  }
  if (names.empty()) return;
  std::string payload;
  PackNames(names, payload);
  log_->Append(RecordKind::kNames, payload);
}

void Deployment::NamesAreLogged() {
  logged_names_.clear();
  for (const auto& dictionary : models_->description().dictionaries) logged_names_.push_back(dictionary.size());
}

// Whether what some owner predicted under this id has got its label, so that the id is not new.
bool Deployment::WasLabelled(const std::string& id) const {
  if (!data_->pending().owned()) return false;
  const auto owners = data_->pending().OwnersOf(id, Now());
  return std::any_of(owners.begin(), owners.end(),
                     [&](const std::string& owner) { return data_->ids().Has(IdWindow::HashOf(owner, id)); });
}

// Whose rows a feedback is about.
Result<std::string> Deployment::OwnerOf(const Learn& feedback) const {
  if (feedback.owner) return *feedback.owner;
  std::set<std::string> owners;
  for (std::size_t r = 0; r < feedback.labels.size(); ++r)
    for (std::string& owner : data_->pending().OwnersOf(RowId(feedback.id, r, feedback.labels.size()), Now()))
      owners.insert(std::move(owner));
  if (owners.size() < 2) return owners.empty() ? std::string() : *owners.begin();
  return Error{Code::kInvalid, Str("id ", Quoted(feedback.id),
                                   " was predicted for several: ", Join({owners.begin(), owners.end()}, ", "),
                                   "; say whose it is: \"owner\": ", Quoted(*owners.rbegin()))};
}

// Turns the labels of a feedback into observations of the rows that were predicted.
void Deployment::AcceptFeedback(Learn& learn) {
  auto owner = OwnerOf(learn);
  if (!owner.ok()) {
    learn.error = owner.error();
    return;
  }
  learn.owner = std::move(owner).value();
  const std::size_t count = learn.labels.size();
  learn.rows.width = model_->config().dense ? model_->config().features : 0;
  learn.rows.ClearRows();
  const auto answer = [&](std::uint64_t duplicates, std::uint64_t expired) {
    learn.reply.duplicates += duplicates;
    learn.reply.expired += expired;
  };
  for (std::size_t r = 0; r < count; ++r) {
    const std::string id = RowId(learn.id, r, count);
    const std::uint64_t hash = IdWindow::HashOf(*learn.owner, id);
    if (data_->ids().Has(hash) || data_->ids().Has(IdWindow::HashOf(id))) {
      answer(1, 0);
      continue;
    }
    const std::string* const packed = data_->pending().Find(*learn.owner, id, Now());
    if (packed == nullptr) {
      answer(0, 1);
      continue;
    }
    data::Rows one;
    one.width = learn.rows.width;
    one.ClearRows();
    Note note;
    if (!UnpackRow(*packed, one, note).ok()) {
      answer(0, 1);
      continue;
    }
    one.labels[0] = learn.labels[r];
    data::AddNames(note.names, models_->description(), one);
    note.time = Now();
    payload_.clear();
    PackRow(one.batch(), 0, note, payload_);
    data_->ids().Add(hash);
    ++learn.ids_added;
    learn.answered.push_back(id);
    learn.reply.last_sequence = log_->Append(RecordKind::kObservation, payload_, hash, note.time);
    ++learn.reply.accepted;
    CHECK(UnpackRow(payload_, fresh_, fresh_notes_.emplace_back()).ok());
    fresh_sequences_.push_back(learn.reply.last_sequence);
  }
}

void Deployment::Accept(Learn& learn) {
  if (learn.error) return;
  if (learn.kind == Learn::Kind::kFeedback) return AcceptFeedback(learn);
  auto fits = CheckIndices(*model_, learn.rows.batch());
  if (fits.ok()) fits = CheckSizes(learn.rows.batch(), learn.names, learn.ids);
  if (!fits.ok()) {
    learn.error = fits.error();
    return;
  }
  for (std::size_t r = 0; r < learn.rows.size(); ++r) AcceptRow(learn, r);
}

// The log could not take it: as if it had never come.
void Deployment::TakeBack(Learn& learn) {
  for (; learn.ids_added > 0; --learn.ids_added) data_->ids().RemoveNewest();
}

void Deployment::CommitAndAnswer(std::vector<Learn>& learns) {
  fresh_.width = model_->config().dense ? model_->config().features : 0;
  fresh_.ClearRows();
  fresh_notes_.clear();
  fresh_sequences_.clear();
  fresh_begin_ = 0;
  for (Learn& learn : learns) AddClasses(learn);
  AppendUnloggedNames();
  for (Learn& learn : learns) Accept(learn);
  auto committed = log_->Commit();
  if (!committed.ok()) {
    Problem(committed.error());
    for (auto learn = learns.rbegin(); learn != learns.rend(); ++learn) TakeBack(*learn);
    for (Learn& learn : learns)
      if (learn.done) learn.done(committed.error());
    fresh_.ClearRows();
  } else {
    NamesAreLogged();
    ProblemIsOver();
    data_->ids().Trim();
    for (Learn& learn : learns) {
      for (const std::string& id : learn.answered) data_->pending().Answer(*learn.owner, id);
      learn.reply.durable = options_.journal.durability == Durability::kAlways && journal_ != nullptr;
      if (learn.done) learn.done(learn.error ? Result<LearnReply>(*learn.error) : Result<LearnReply>(learn.reply));
      const std::lock_guard lock(stats_mutex_);
      stats_.duplicates += learn.reply.duplicates;
      if (learn.kind == Learn::Kind::kPrediction) stats_.predictions_noted += learn.rows.size();
    }
  }
  KeepPredictions();
  std::uint64_t rows = 0;
  for (const Learn& learn : learns)
    if (learn.kind != Learn::Kind::kFeedback) rows += learn.rows.size();
  waiting_rows_ -= rows;
}

// Learns what was taken into the log, a piece at a time until the round has taken long enough. True when nothing is
// left. How rows are cut into pieces changes nothing in what is learned.
bool Deployment::LearnFresh() {
  constexpr std::size_t kPiece = 256;
  constexpr auto kRound = std::chrono::milliseconds(20);
  const auto learn = [this](data::Rows& rows, std::span<Note> notes) {
    if (auto applied = ApplyRows(rows, notes); !applied.ok()) Problem(applied.error());
  };
  const std::size_t count = fresh_.size();
  if (fresh_begin_ == count) return true;
  if (count <= kPiece) {
    fresh_begin_ = count;
    applied_ = log_->next_sequence();
    learn(fresh_, fresh_notes_);
    return true;
  }
  const auto until = env_.clock.Now() + kRound;
  do {
    const std::size_t begin = fresh_begin_, end = std::min(count, begin + kPiece);
    fresh_piece_.width = fresh_.width;
    fresh_piece_.ClearRows();
    for (std::size_t r = begin; r < end; ++r) fresh_piece_.AppendRow(fresh_.batch(), r);
    fresh_begin_ = end;
    applied_ = end < count ? fresh_sequences_[end] : log_->next_sequence();
    learn(fresh_piece_, std::span(fresh_notes_).subspan(begin, end - begin));
  } while (fresh_begin_ < count && env_.clock.Now() < until);
  return fresh_begin_ == count;
}

// A prediction that cannot be written waits in memory alone: a restart forgets it.
void Deployment::KeepPredictions() {
  if (pending_log_ == nullptr || pending_log_->next_sequence() == pending_log_->end_sequence()) return;
  auto kept = pending_log_->Commit();
  if (kept.ok()) {
    if (auto dropped = pending_log_->Retain(pending_log_->next_sequence(), Now()); !dropped.ok())
      kept = dropped.error();
  }
  if (!kept.ok()) Problem(kept.error());
}

Result<std::uint64_t> Deployment::Log(RecordKind kind, const std::string& json) {
  AppendUnloggedNames();
  const std::uint64_t sequence = log_->Append(kind, json);
  TRY(log_->Commit());
  NamesAreLogged();
  applied_ = sequence + 1;
  return sequence;
}

// What went wrong is for the log, which may name files; the statistics, which any client may read, name the kind.
void Deployment::Problem(const Error& error) {
  env_.log.Error("deployment", "directory", options_.directory, "problem", error.text);
  const std::lock_guard lock(stats_mutex_);
  stats_.problem = Str(error.code == Code::kIo         ? "the disk does not take what is written"
                       : error.code == Code::kCorrupt  ? "a file is damaged"
                       : error.code == Code::kDiverged ? "training diverged"
                                                       : "something went wrong",
                       "; the log says more");
}

void Deployment::ProblemIsOver() {
  const std::lock_guard lock(stats_mutex_);
  stats_.problem.clear();
}

void Deployment::SetLoad(double predictions_per_second, double p99_seconds) {
  load_rate_.store(predictions_per_second, std::memory_order_relaxed);
  load_p99_.store(p99_seconds, std::memory_order_relaxed);
}

// Starts what is due: a version, a retraining, an iteration.
void Deployment::Decide() {
  if (drift_found_) {
    const bool answers = learns();  // a model that is left alone is only reported on
    const std::string json = Json({{"detector", drift_->name()},
                                   {"from", answers && options_.drift_forget ? drift_from_ : 0},
                                   {"keep", answers ? options_.drift_keep : 1}})
                                 .dump();
    if (auto logged = Log(RecordKind::kDrift, json); logged.ok()) {
      ApplyDrift(json);
      env_.log.Info("drift", "sequence", logged.value(), "sampling_rate", data_->rate().value());
    } else {
      Problem(logged.error());
    }
  }
  if (closing_) return;
  // Not while an iteration runs: a restart from that version would not know of it.
  if (versions_ != nullptr && job_ == nullptr && options_.version_rows > 0 && since_version_ >= options_.version_rows)
    StartVersion("updates");
  if (options_.method == Method::kVelox && job_ == nullptr) {
    const bool count = options_.retrain_rows > 0 && since_retraining_ >= options_.retrain_rows;
    const bool error = options_.retrain_error > 0 && error_after_retraining_ >= 0 && since_retraining_ >= 1000 &&
                       quality_.recent > options_.retrain_error * error_after_retraining_;
    if (count || error) StartIteration(Reason::kPeriod);
  }
  if (options_.method != Method::kContinuous) return;
  const bool was = scheduler_.converged();
  const Reason reason = scheduler_.Decide(SituationNow());
  if (reason != Reason::kNone && job_ == nullptr) StartIteration(reason);
  if (!was && scheduler_.converged()) env_.log.Info("converged", "state", scheduler_.StateText());
}

Situation Deployment::SituationNow() const {
  Situation situation;
  situation.now = env_.clock.Now();
  situation.buffered = data_->buffered();
  situation.learned = learned_;
  situation.drift = drift_waits_;
  situation.p99_seconds = load_p99_.load(std::memory_order_relaxed);
  situation.predictions_per_second = load_rate_.load(std::memory_order_relaxed);
  situation.history = data_->end();
  situation.drawable = data_->drawable();
  situation.unvisited = data_->unvisited();
  situation.error = quality_.recent;
  return situation;
}

// The requests of a round: one, or as many as are small together.
std::vector<Deployment::Learn> Deployment::TakeRequests() {
  constexpr std::uint64_t kMostRows = 8192, kMostBytes = 16 << 20;
  std::vector<Learn> taken;
  std::uint64_t rows = 0, bytes = 0;
  const std::lock_guard lock(inbox_mutex_);
  while (!learns_.empty()) {
    const Learn& next = learns_.front();
    rows += next.rows.size() + next.labels.size();
    bytes += sizeof(float) * (next.rows.dense.size() + 2 * next.rows.indices.size());
    if (!taken.empty() && (rows > kMostRows || bytes > kMostBytes)) break;
    taken.push_back(std::move(learns_.front()));
    learns_.pop_front();
    ++learns_taken_;
  }
  return taken;
}

// Commands whose turn has come: every request posted before them was taken.
std::vector<Deployment::Command> Deployment::TakeCommands() {
  std::vector<Command> taken;
  const std::lock_guard lock(inbox_mutex_);
  for (; !commands_.empty() && commands_.front().first <= learns_taken_; commands_.pop_front())
    taken.push_back(std::move(commands_.front().second));
  return taken;
}

bool Deployment::Turn() {
  std::vector<Learn> learns;
  const bool rest = fresh_begin_ < fresh_.size();  // of the round before: nothing may come in between
  if (!rest) learns = TakeRequests();
  if (!learns.empty()) CommitAndAnswer(learns);
  bool busy = rest || !learns.empty();
  if (LearnFresh()) {  // records that follow find everything before them learned
    const std::vector<Command> commands = TakeCommands();
    for (const Command& command : commands) command();
    const bool finished = job_ != nullptr && job_->done.load(std::memory_order_acquire) && FinishJob();
    if (!starting_) Decide();
    const bool started = GoOnStarting();
    busy = busy || !commands.empty() || finished || started;
  }
  bool published = true;
  if (models_->dirty()) {
    const auto began = env_.clock.Now();
    auto done = models_->Publish(applied_ == 0 ? 0 : applied_ - 1);
    if (!done.ok()) Problem(done.error());
    published = done.ok() && done.value();
    const double took = base::Seconds(env_.clock.Now() - began);
    const std::lock_guard lock(stats_mutex_);
    stats_.publish_seconds_max = std::max(stats_.publish_seconds_max, took);
    if (published) stats_.published = Now();
    if (published) stats_.version = applied_ == 0 ? 0 : applied_ - 1;
  }
  if (busy) UpdateStats();
  if (doors_.readers > 0) Remember(Now());
  return busy;
}

void Deployment::Sync() {
  if (journal_ == nullptr || options_.journal.durability == Durability::kNone) return;
  for (Journal* const journal : {pending_log_.get(), journal_}) {
    if (journal == journal_ && options_.journal.durability != Durability::kEverySec) return;
    auto synced = journal->Sync();
    if (synced.ok()) continue;
    Problem(synced.error());
    PostCommand([this, journal] {  // it need not wait for the next record
      auto repaired = journal->Repair();
      if (repaired.ok())
        ProblemIsOver();
      else
        Problem(repaired.error());
    });
  }
  const std::lock_guard lock(stats_mutex_);
  stats_.read_only = journal_->read_only();
}

void Deployment::Settle() {
  while (Turn() || background_.RunOne()) continue;
}

void Deployment::UpdateStats() {
  NameClasses();
  const std::uint64_t bytes = journal_ != nullptr ? journal_->bytes() : 0;
  const std::lock_guard lock(stats_mutex_);
  stats_.observations = data_->end();
  stats_.learned = learned_;
  stats_.model_rows = model_rows_;
  stats_.sequence = applied_ == 0 ? 0 : applied_ - 1;
  stats_.history = data_->end() - std::min(data_->end(), log_->first());
  stats_.buffered = data_->buffered();
  stats_.pending = data_->pending().size();
  stats_.journal_bytes = bytes;
  if (journal_ != nullptr) {
    stats_.damaged_places = journal_->damaged_places() + pending_log_->damaged_places() + versions_->damaged();
    stats_.read_only = journal_->read_only();
  }
  stats_.sampling_rate = data_->rate().value();
  stats_.quality = quality_;
  if (doors_.readers == 0) stats_.version = stats_.sequence;
  stats_.training = job_ != nullptr;
  stats_.diverged = diverged_;
  stats_.converged = scheduler_.converged();
  stats_.iterations = iterations_;
  stats_.scheduler = SchedulerText();
}

Stats Deployment::stats() const {
  const std::lock_guard lock(stats_mutex_);
  return stats_;
}

}  // namespace freshet::deploy
