// Model files that take over from what a deployment has learned: at the start or while it serves.

#include "deploy/control_records.h"
#include "deploy/deployment.h"
#include "deploy/takeover.h"

namespace freshet::deploy {
namespace {

constexpr std::pair<Replace, std::string_view> kReplaces[] = {
    {Replace::kNo, "no"}, {Replace::kYes, "yes"}, {Replace::kRelearn, "relearn"}};

}  // namespace

Result<Replace> ParseReplace(std::string_view text) {
  for (const auto& [replace, name] : kReplaces)
    if (name == text) return replace;
  return Error{Code::kInvalid, Str("replace ", Quoted(text), ": expected one of ", Join(ReplaceNames(), ", "))};
}

std::vector<std::string> ReplaceNames() {
  std::vector<std::string> names;
  for (const auto& [replace, name] : kReplaces) names.emplace_back(name);
  return names;
}

// At the start, when all is recovered: is the model file the one that this was started from?
Result<void> Deployment::MeetStart(const model::Model& model, const model::TrainedModel& start) {
  if (started_from_.empty()) {  // of a program that kept no marks
    if (!versions_->Find(0)) return {};
    const auto first = LoadVersion(0);
    if (!first.ok()) return {};  // nobody can tell
    started_from_ = MarksOf(first.value().state->parameters, first.value().state->moments);
  }
  if (MarksOf(start) == started_from_) return {};
  if (options_.replace == Replace::kNo) {
    start_ignored_ = true;
    env_.log.Warn("model file ignored", "directory", options_.directory, "reason",
                  "it is not the one that the state was started from", "advice",
                  "deploy it, or give it a state of its own");
    return {};
  }
  TRY(MayTakeOver({model, start.description}, {*model_, models_->description()}));
  const std::string file = TRY(KeepDeployed(model, start));
  TRY(Deploy(file, start, options_.replace == Replace::kRelearn));
  return {};
}

Result<std::string> Deployment::KeepDeployed(const model::Model& model, const model::TrainedModel& trained) {
  return KeepModelFile(env_.files, options_.directory + "/deployed", log_->end_sequence(), model, trained);
}

Result<std::uint64_t> Deployment::Deploy(const std::string& file, const model::TrainedModel& trained, bool relearn) {
  const std::uint64_t from = journal_->first_sequence();
  const std::string json =
      Json({{"file", file}, {"relearn", relearn}, {"from", from}, {"started_from", MarksOf(trained)}}).dump();
  const std::uint64_t sequence = TRY(Log(RecordKind::kDeploy, json));
  TRY(ApplyDeploy(sequence, json));
  env_.log.Info("model deployed", "directory", options_.directory, "sequence", sequence, "relearned", relearn);
  StartVersion("deployed");
  return sequence;
}

Result<void> Deployment::ApplyDeploy(std::uint64_t sequence, const std::string& text) {
  const Json json = Json::parse(text);
  const std::string path = Str(options_.directory, "/deployed/", json.at("file").get<std::string>());
  const model::TrainedModel trained = TRY(model::LoadModel(env_.files, path, memory_));
  auto narrow = TRY(models_->NewState(*trained.model));
  narrow->parameters.CopyFrom(trained.parameters);
  TRY(narrow->optimizer->Follow(narrow->parameters));
  if (trained.sums) (void)trained.sums->Give(narrow->parameters, *narrow->optimizer);  // of no use to another rule
  if (trained.description.standardise) narrow->moments = trained.description.moments;
  narrow->target = trained.description.target;
  auto state = TRY(models_->NewState());
  TRY(state->TakeFewerClasses(*narrow));
  const std::uint64_t learned =
      json.at("relearn").get<bool>() ? TRY(Relearn(*state, json.at("from"), sequence, {})) : 0;
  DropJob();
  starting_.reset();
  TRY(models_->TakeOver(std::move(state), {}, optimize::RowSets(models_->state().parameters.blocks())));
  started_from_ = json.at("started_from");
  model_rows_ = learned;
  diverged_ = false;
  return {};
}

void Deployment::PostDeploy(model::TrainedModel trained, bool relearn, Done done) {
  if (journal_ == nullptr) return done(Error{Code::kInvalid, "a model file needs a directory to be kept in"});
  auto shared = std::make_shared<model::TrainedModel>(std::move(trained));
  inbox_.Post([this, shared, relearn, done = std::move(done)] {
    if (auto may = MayTakeOver({*shared->model, shared->description}, {*model_, models_->description()}); !may.ok())
      return done(may.error());
    background_.Post([this, shared, relearn, done] {
      auto file = KeepDeployed(*shared->model, *shared);
      if (!file.ok()) return done(file.error());
      inbox_.Post([this, shared, file = file.value(), relearn, done] {
        // A class may have come meanwhile.
        auto may = MayTakeOver({*shared->model, shared->description}, {*model_, models_->description()});
        auto deployed = may.ok() ? Deploy(file, *shared, relearn) : may.error();
        if (!deployed.ok()) return done(deployed.error());
        done(Json({{"sequence", deployed.value()}, {"relearned", relearn}}).dump());
      });
    });
  });
}

}  // namespace freshet::deploy
