#include "deploy/deployment.h"

#include <algorithm>

#include "deploy/control_records.h"

namespace freshet::deploy {
namespace {

constexpr std::pair<Method, std::string_view> kMethods[] = {{Method::kStatic, "static"},
                                                            {Method::kBaseline, "baseline"},
                                                            {Method::kBaselinePlus, "baseline+"},
                                                            {Method::kVelox, "velox"},
                                                            {Method::kContinuous, "continuous"}};

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

void Deployment::CommitAndAnswer(std::vector<Request>& requests) {
  const std::size_t width = model_->config().dense ? model_->config().features : 0;
  fresh_.Clear(width);
  for (Request& request : requests) AddClasses(request);
  AppendUnloggedNames();
  for (Request& request : requests) Accept(request);
  auto committed = log_->Commit();
  if (!committed.ok()) {
    Problem(committed.error());
    for (auto request = requests.rbegin(); request != requests.rend(); ++request) TakeBack(*request);
    for (Request& request : requests)
      if (request.done) request.done(committed.error());
    fresh_.Clear(width);
  } else {
    NamesAreLogged();
    ProblemIsOver();
    data_->ids().Trim();
    for (Request& request : requests) {
      for (const std::string& id : request.answered) data_->pending().Answer(*request.owner, id);
      request.reply.durable = options_.journal.durability == Durability::kAlways && journal_ != nullptr;
      if (request.done)
        request.done(request.error ? Result<LearnReply>(*request.error) : Result<LearnReply>(request.reply));
      const base::Lock lock(stats_mutex_);
      stats_.duplicates += request.reply.duplicates;
      if (request.kind == Request::Kind::kPrediction) stats_.predictions_noted += request.rows.size();
    }
  }
  KeepPredictions();
  inbox_.Written();
}

// Learns what was taken into the log, a piece at a time until the round has taken long enough. True when nothing is
// left. How rows are cut into pieces changes nothing in what is learned.
bool Deployment::LearnFresh() {
  constexpr std::size_t kPiece = 256;
  constexpr auto kRound = std::chrono::milliseconds(20);
  if (fresh_.empty()) return true;
  const auto until = env_.clock.Now() + kRound;
  do {
    const FreshRows::Piece piece = fresh_.Take(kPiece);
    applied_ = piece.next > 0 ? piece.next : log_->next_sequence();
    if (auto applied = ApplyRows(piece.rows, piece.slips); !applied.ok()) Problem(applied.error());
  } while (!fresh_.empty() && env_.clock.Now() < until);
  return fresh_.empty();
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
  const base::Lock lock(stats_mutex_);
  stats_.problem = Str(error.code == Code::kIo         ? "the disk does not take what is written"
                       : error.code == Code::kCorrupt  ? "a file is damaged"
                       : error.code == Code::kDiverged ? "training diverged"
                                                       : "something went wrong",
                       "; the log says more");
}

void Deployment::ProblemIsOver() {
  const base::Lock lock(stats_mutex_);
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
  if (versions_ != nullptr && job_ == nullptr && options_.version_rows > 0 &&
      tally_.since_version >= options_.version_rows)
    StartVersion("updates");
  if (options_.method == Method::kVelox && job_ == nullptr) {
    const bool count = options_.retrain_rows > 0 && tally_.since_retraining >= options_.retrain_rows;
    const bool error = options_.retrain_error > 0 && tally_.error_after_retraining >= 0 &&
                       tally_.since_retraining >= 1000 &&
                       quality_.recent > options_.retrain_error * tally_.error_after_retraining;
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
  situation.learned = tally_.learned;
  situation.drift = drift_waits_;
  situation.p99_seconds = load_p99_.load(std::memory_order_relaxed);
  situation.predictions_per_second = load_rate_.load(std::memory_order_relaxed);
  situation.history = data_->end();
  situation.drawable = data_->drawable();
  situation.unvisited = data_->unvisited();
  situation.error = quality_.recent;
  return situation;
}

bool Deployment::Turn() {
  std::vector<Request> requests;
  const bool rest = !fresh_.empty();  // of the round before: nothing may come in between
  if (!rest) requests = inbox_.TakeRequests();
  if (!requests.empty()) CommitAndAnswer(requests);
  bool busy = rest || !requests.empty();
  if (LearnFresh()) {  // records that follow find everything before them learned
    const std::vector<Inbox::Command> commands = inbox_.TakeCommands();
    for (const Inbox::Command& command : commands) command();
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
    const base::Lock lock(stats_mutex_);
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
    inbox_.Post([this, journal] {  // it need not wait for the next record
      auto repaired = journal->Repair();
      if (repaired.ok())
        ProblemIsOver();
      else
        Problem(repaired.error());
    });
  }
  const base::Lock lock(stats_mutex_);
  stats_.read_only = journal_->read_only();
}

void Deployment::Settle() {
  while (Turn() || background_.RunOne()) continue;
}

// What training waits for, in words.
std::string Deployment::SchedulerText() const {
  if (options_.method == Method::kContinuous) return scheduler_.StateText();
  if (options_.method != Method::kVelox) return Str("method ", Name(options_.method), " runs no iterations");
  if (job_ != nullptr) return "retraining";
  if (options_.retrain_rows > 0)
    return Str("waiting for data: ", tally_.since_retraining, " of ", options_.retrain_rows,
               " rows have come since the last retraining");
  if (options_.retrain_error > 0) return "waiting for the error to rise";
  return "waiting to be asked to retrain";
}

void Deployment::UpdateStats() {
  appraisal_.NameClasses(models_->description().labels);
  const std::uint64_t bytes = journal_ != nullptr ? journal_->bytes() : 0;
  const base::Lock lock(stats_mutex_);
  stats_.observations = data_->end();
  stats_.learned = tally_.learned;
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
  stats_.iterations = tally_.iterations;
  stats_.scheduler = SchedulerText();
}

// Where it serves: notes down how it is doing, once in a while.
void Deployment::Remember(std::int64_t time) {
  if (doors_.readers == 0 || !appraisal_.Due(time)) return;
  Chronicle::Point point;
  point.time = time;
  point.rows = quality_.rows;
  point.errors = quality_.sum;
  point.recent = quality_.recent;
  point.observations = data_->end();
  point.iterations = tally_.iterations;
  if (versions_ != nullptr)
    if (const auto kept = versions_->list(); !kept.empty()) point.kept = kept.back().id;
  {
    const base::Lock lock(stats_mutex_);
    point.drifts = stats_.drifts;
    point.roll_backs = stats_.roll_backs;
  }
  appraisal_.Mark(point);
}

Stats Deployment::stats() const {
  const base::Lock lock(stats_mutex_);
  return stats_;
}

}  // namespace freshet::deploy
