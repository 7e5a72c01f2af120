#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/env.h"
#include "base/jobs.h"
#include "base/mutex.h"
#include "deploy/appraisal.h"
#include "deploy/data_manager.h"
#include "deploy/drift/drift.h"
#include "deploy/fresh_rows.h"
#include "deploy/inbox.h"
#include "deploy/iteration.h"
#include "deploy/log/journal.h"
#include "deploy/model_manager.h"
#include "deploy/quality.h"
#include "deploy/scheduler.h"
#include "deploy/seen_items.h"
#include "deploy/tally.h"
#include "model/model_file.h"

namespace freshet::deploy {

// How a deployed model is kept up to date.
enum class Method {
  kStatic,        // it is not, and observations are only counted
  kBaseline,      // the same, but observations are kept
  kBaselinePlus,  // every observation updates it
  kVelox,         // that, and from time to time it is retrained from scratch on everything
  kContinuous,    // that, and iterations of SGD on new and old rows go on all the time
};
Result<Method> ParseMethod(std::string_view text);
std::string_view Name(Method method);
std::vector<std::string> MethodNames();

// What to do with a model file that is not the one the state was started from, or went over to since.
enum class Replace {
  kNo,       // nothing: it goes on with what is there, and says so
  kYes,      // the file takes over, as a new version
  kRelearn,  // and learns what the journal holds again
};
Result<Replace> ParseReplace(std::string_view text);
std::vector<std::string> ReplaceNames();

struct DeploymentOptions {
  std::string directory;  // journal, versions and data sets; "": in memory, for replays
  Method method = Method::kContinuous;
  optimize::OptimizerOptions optimizer;
  DataOptions data;
  SchedulerOptions schedule;
  JournalOptions journal;                // its directory is made from `directory`
  std::string drift = "adwin";           // detector of rising prequential error
  double drift_keep = 1;                 // what is left of the optimizer's sums after a drift; 1: everything
  bool drift_forget = false;             // iterations draw only rows that came after the last drift
  double iteration_scale = 1;            // learning rate of iterations, as a multiple
  std::uint64_t retrain_rows = 0;        // velox: every so many observations; 0: not by count
  double retrain_error = 0;              // velox: when the recent error exceeds the one after the last retraining so
                                         // many times; 0: not by error
  int retrain_epochs = 20;               // velox
  std::uint64_t version_rows = 100'000;  // a version is kept after so many incremental updates; 0: never
  base::Clock::Duration version_gap{0};  // least time between versions of iterations
  std::size_t versions_kept = 10;        // beside those that are pinned
  std::size_t most_waiting = 200'000;    // rows posted and not yet written; then kBusy
  bool accept_loss = false;              // go on where the journal has lost its end, which versions prove
  std::optional<std::pair<double, double>> clip;  // predictions of numbers are held within, when errors are counted
  Replace replace = Replace::kNo;                 // of a model file that differs, at the start
  std::uint64_t new_classes = 0;  // labels that no class has may become so many; then they are refused again
  std::uint64_t seed = 1;
};

// Observations that leave the history with a roll-back: those of any of the three.
struct Discard {
  Ranges sequences = {};
  std::optional<std::pair<std::int64_t, std::int64_t>> times = {};  // seconds since 1970, both ends included
  std::vector<std::string> ids = {};                                // the client's
};
using Done = std::function<void(Result<std::string>)>;  // the string is a JSON object

// Numbers for people and dashboards.
struct Stats {
  std::uint64_t observations = 0, learned = 0, duplicates = 0, predictions_noted = 0, pending = 0;
  std::uint64_t model_rows = 0;  // learned, by the model that answers: fewer than were ever, after a roll-back
  std::uint64_t sequence = 0, history = 0, buffered = 0, journal_bytes = 0, damaged_places = 0;
  std::uint64_t iterations = 0, given_up = 0, iteration_rows = 0, drifts = 0, roll_backs = 0;
  double iteration_seconds = 0, longest_iteration = 0, copy_seconds = 0, publish_seconds_max = 0, last_loss = 0;
  double sampling_rate = 0;
  Quality quality;
  std::uint64_t version = 0;  // what predictions see
  std::int64_t published = 0;
  std::uint64_t set_aside = 0;  // rows whose loss was beyond all bounds, so that nothing was learned from them
  bool training = false, diverged = false, converged = false;
  bool read_only = false;  // nothing is taken: the disk failed to keep what was written
  std::string scheduler, problem;
};

// A model that is trained while it serves: model manager, data manager and scheduler together.
//
// Everything that changes it is a record of its log first, and every change is made by applying a record. So a restart
// (the newest complete version, then the records after it) and a replay from the first record give the same model, bit
// for bit. An iteration trains a copy taken at its start record; observations that come meanwhile are learned by the
// model that serves, and by the copy before it takes over at the end record.
//
// Threads: Post… from any; Turn belongs to one thread, the writer's; RunOne of background() to another (or to the same,
//          which then trains in place); Read and stats from any. Close once no other thread uses it. Ownership: borrows
//          env, runtime, memory and bells.
// Failure: a full or broken disk refuses observations (kIo) while predictions go on.
class Deployment {
 public:
  struct Doors {
    int readers = 0;  // slots for threads that predict
    Publisher::Companion companion = nullptr;
    base::Bell* writer = nullptr;   // rung when Turn has something to do
    base::Bell* trainer = nullptr;  // rung when RunOne has
  };
  // `start` is used when the directory holds no version yet, or where options.replace says so. kInvalid when it holds
  // those of another model, or files of a newer program; kCorrupt when the journal has lost its end (see accept_loss).
  static Result<std::unique_ptr<Deployment>> Open(const base::Env& env, DeploymentOptions options, Runtime& runtime,
                                                  optimize::Memory& memory, model::TrainedModel start, Doors doors);
  ~Deployment();

  // In memory only, before anything is posted: the state that training on these raw rows left takes over, and the rows
  // are history. A copy of the rows is kept. (With a directory, data sets join by PostDataset.)
  Result<void> BeginWith(std::unique_ptr<State> state, const data::Rows& past);

  // The present one; it stays until the end also when it has got more classes (Edition::model goes with its weights).
  const model::Model& model() const { return *shown_model_.load(std::memory_order_acquire); }
  const ModelManager& models() const { return *models_; }
  const Versions* versions() const { return versions_.get(); }
  const DeploymentOptions& options() const { return options_; }
  RecordLog& log() { return *log_; }
  base::Jobs& background() { return background_; }

  // Observations; names by entry, ascending; ids: one a row, or none; labels that no class has, by row, ascending.
  // Answered once they are in the log, as durably as asked for.
  void PostLearn(data::Rows rows, std::vector<data::NewName> names, std::vector<std::string> ids, LearnDone done,
                 std::vector<data::NewLabel> new_labels = {});
  // The labels of rows predicted before under this id, by that owner. Without one it is whoever holds the id; kInvalid
  // when several do.
  void PostFeedback(std::string id, std::vector<float> labels, LearnDone done, std::optional<std::string> owner = {},
                    std::vector<data::NewLabel> new_labels = {});
  // Rows that were predicted under an id, so that labels can follow. They belong to the owner alone (Pending).
  void PostPrediction(std::string id, data::Rows rows, std::vector<data::NewName> names, std::vector<float> scores,
                      std::string owner = "");
  void PostIterate(Done done);
  // An earlier version takes over. With `relearn`, it learns what was observed since and is not discarded. kNotFound
  // when times or ids are given and nothing was observed at those or under these.
  void PostRollBack(std::uint64_t version, Discard discard, bool relearn, Done done);
  void PostPin(std::uint64_t version, bool pinned, Done done);
  // Files that become part of the history together. They are read as they are named: whoever asks sees to it that they
  // may be, and that reading them comes to an end.
  // Rows that are known were learned before, when the model file was made: they are drawn from and not learned as new.
  enum class Met { kNew, kKnown };
  void PostDataset(std::vector<std::string> paths, Done done, Met met = Met::kNew);
  void PostDataset(std::string path, Done done) { PostDataset(std::vector{std::move(path)}, std::move(done)); }
  // A model file takes over as a new version; with `relearn`, it learns the observations that the journal holds.
  // kInvalid when it is another model, or reads other input.
  void PostDeploy(model::TrainedModel trained, bool relearn, Done done);

  // Was the model handed to Open another than the one that the state was started from, and not used?
  bool start_ignored() const { return start_ignored_; }

  // The load of predictions, for the scheduler.
  void SetLoad(double predictions_per_second, double p99_seconds);

  // One round of the writer: takes what was posted into the log, answers, learns, publishes, decides on iterations.
  // True when there was something to do. A round is bounded, so that one writer can serve many models: it takes one
  // request, or as many as are small together, and learns for some 20 ms; the next goes on where it ended. What was
  // posted takes effect in the order it came.
  bool Turn();
  // To be called once a second, from any thread but the writer's: brings the journal to the disk where the durability
  // is kEverySec.
  void Sync();
  // For one thread that does it all: turns and trains until there is nothing left to do.
  void Settle();
  // Ends what is under way and keeps a version, so that the next start is quick.
  Result<void> Close();

  Publisher::Reading Read(int slot) const { return models_->Read(slot); }
  // Items that a user has rated, of a factorization: what the log tells of, and the model it began with.
  std::vector<std::uint32_t> SeenBy(std::uint32_t user) const { return seen_.Of(user); }
  Stats stats() const;
  // Of a classifier that serves (readers > 0), by window; of others none. Costs tens of microseconds.
  std::vector<ClassFigures> class_figures() const { return appraisal_.figures(); }
  // How it did up to now, oldest first, where it serves.
  std::vector<Chronicle::Point> chronicle() const { return appraisal_.points(); }

 private:
  Deployment(const base::Env& env, DeploymentOptions options, Runtime& runtime, optimize::Memory& memory, Doors doors);

  // deployment_open.cc: starting and recovering
  Result<void> Begin(model::TrainedModel start);
  Result<bool> LoadNewestVersion();
  Result<void> Recover(std::uint64_t from);
  Result<void> CheckEnd(std::uint64_t known) const;
  Result<void> OpenPending();
  Result<void> RecoverIds();
  void RecoverRated(const model::TrainedModel& start);
  void RecoverPrediction(const Record& record, Slip& slip);
  std::string SaveVitals() const;
  Result<void> LoadVitals(std::uint64_t version, const std::string& json);

  // deployment_accept.cc: what comes in
  void Accept(Request& request);
  void AcceptRow(Request& request, std::size_t row);
  void AppendUnloggedNames();
  void NamesAreLogged();
  void AcceptFeedback(Request& request);
  Result<std::string> OwnerOf(const Request& feedback) const;
  bool WasLabelled(const std::string& id) const;
  void KeepPredictions();
  void TakeBack(Request& request);

  // deployment.cc: the writer's round
  void CommitAndAnswer(std::vector<Request>& requests);
  bool LearnFresh();
  Result<std::uint64_t> Log(RecordKind kind, const std::string& json);
  void Decide();
  Situation SituationNow() const;
  std::string SchedulerText() const;
  void UpdateStats();
  void Remember(std::int64_t time);
  void Problem(const Error& error);
  void ProblemIsOver();

  // deployment_apply.cc: what records do, now or in a replay
  Result<void> ApplyRecord(const Record& record);
  Result<void> ApplyRows(data::Rows& rows, std::span<Slip> slips);
  Result<void> ApplyNames(const Record& record);
  void EnterName(const data::NewName& name, data::Rows& rows);
  Result<void> ApplyStart(std::uint64_t sequence, const std::string& json);
  Result<void> ApplyEnd(std::uint64_t sequence, const std::string& json);
  Result<bool> LoadMade(Iteration& job, std::uint64_t rows, double loss);
  Result<void> ApplyVersion(std::uint64_t sequence, const std::string& json);
  Result<void> ApplyRollBack(std::uint64_t sequence, const std::string& json);
  struct Earlier {
    std::unique_ptr<State> state;
    std::uint64_t learned = 0;  // observations
  };
  Result<Earlier> RolledBack(std::uint64_t id, const Ranges& discard, bool relearn, std::uint64_t sequence);
  Result<void> RollBack(Earlier earlier, const Ranges& discard);
  Result<void> ApplyPin(const std::string& json);
  Result<void> ApplyDataset(const std::string& json);
  Result<void> AdoptAgain(const std::string& file, std::uint64_t first, std::uint64_t rows);
  void ApplyDrift(const std::string& json);

  // deployment_classes.cc: labels that become classes, and versions from before they did
  Result<void> UseModel(std::unique_ptr<model::Model> model);
  Result<void> CheckNewClasses();
  void AddClasses(Request& request);
  Result<void> AddClass(const std::string& name);
  Result<void> ApplyClass(const std::string& json);
  Result<void> MeetLabel(float label);
  struct Loaded {
    std::unique_ptr<State> state;
    data::Description description;
  };
  Result<Loaded> LoadVersion(std::uint64_t id);

  // deployment_deploy.cc: model files that take over
  Result<void> MeetStart(const model::Model& model, const model::TrainedModel& start);
  Result<std::string> KeepDeployed(const model::Model& model, const model::TrainedModel& trained);
  Result<std::uint64_t> Deploy(const std::string& file, const model::TrainedModel& trained, bool relearn);
  Result<void> ApplyDeploy(std::uint64_t sequence, const std::string& json);
  Result<std::uint64_t> Relearn(State& state, std::uint64_t from, std::uint64_t to, const Ranges& discard) const;

  // deployment_jobs.cc: iterations and versions
  void PostJob();
  void RunJob(Iteration& job);
  bool FinishJob();
  void DropJob();
  void TellScheduler(double loss, std::uint64_t rows);
  void InBackground(std::function<void()> task);
  Result<void> KeepVitals(const VersionInfo& info, const std::string& vitals);
  void StartIteration(Reason reason);
  void StartVersion(std::string_view origin);
  bool GoOnStarting();
  base::Clock::Duration VersionGap() const;
  void Import(std::vector<std::string> paths, Met met, Done done);
  void RollBackTo(std::uint64_t version, const Ranges& discard, bool relearn, const Done& done);
  bool recommends() const { return doors_.readers > 0 && model_->ratings() != nullptr; }
  bool learns() const { return options_.method >= Method::kBaselinePlus; }
  std::int64_t Now() const;

  const base::Env env_;
  const DeploymentOptions options_;
  Runtime& runtime_;
  optimize::Memory& memory_;
  const Doors doors_;
  base::Bell own_bell_;  // for doors that gave none
  base::Jobs background_;

  std::vector<std::unique_ptr<const model::Model>>
      made_models_;  // the last is the present one; readers may have others
  std::atomic<const model::Model*> shown_model_{nullptr};
  const model::Model* model_ = nullptr;  // the present one: the writer's
  std::size_t most_classes_ = 0;
  data::Labels::Kind task_ = data::Labels::Kind::kReal;
  std::unique_ptr<RecordLog> log_;
  Journal* journal_ = nullptr;  // the log, when it is on disk
  // Predictions that wait for their labels, on disk: beside the log, so that however many come, no observation goes.
  std::unique_ptr<Journal> pending_log_;
  std::unique_ptr<Versions> versions_;
  std::unique_ptr<ModelManager> models_;
  std::unique_ptr<DataManager> data_;
  std::unique_ptr<DriftDetector> drift_;
  Scheduler scheduler_;
  SeenItems seen_;

  // The writer's.
  Quality quality_;
  std::uint64_t model_rows_ = 0;  // learned by the state there is
  Tally tally_;
  std::uint64_t applied_ = 0;     // every record before this sequence is
  bool drift_found_ = false;      // and no record says so yet
  std::uint64_t drift_from_ = 0;  // number of the first row after it
  bool drift_waits_ = false;      // for an iteration
  bool diverged_ = false, recovering_ = false, closing_ = false;
  std::string started_from_;           // marks of the model file that the state was started from, or went over to
  bool start_ignored_ = false;         // constant after Open
  std::uint64_t metrics_from_ = 0;     // while recovering: quality is known up to here
  std::uint64_t known_ = 0;            // while recovering: versions prove all records before this
  std::vector<std::string> datasets_;  // JSON of each that joined
  Ranges discards_;
  std::vector<std::uint32_t> logged_names_;  // by dictionary: so many of its names are in the log
  std::uint64_t imports_ = 0;
  struct Starting {
    Reason reason;       // of an iteration
    std::string origin;  // of a version; "": it is an iteration
  };
  std::optional<Starting> starting_;
  std::shared_ptr<Iteration> job_;
  base::Clock::Duration last_version_{};
  FreshRows fresh_;
  std::vector<float> scores_;
  std::string payload_;

  std::atomic<double> load_rate_{0}, load_p99_{0};
  std::atomic<std::int64_t> saving_{0};  // nanoseconds that the last version took to write

  Inbox inbox_;

  mutable base::Mutex stats_mutex_;
  Stats stats_ GUARDED_BY(stats_mutex_);

  Appraisal appraisal_;
};

}  // namespace freshet::deploy
