// Model files that take over from what a deployment has learned: at the start or while it serves.

#include <algorithm>

#include "base/crc32c.h"
#include "base/option.h"
#include "deploy/deployment_parts.h"
#include "model/more_classes.h"

namespace freshet::deploy {
namespace {

constexpr std::pair<Replace, std::string_view> kReplaces[] = {
    {Replace::kNo, "no"}, {Replace::kYes, "yes"}, {Replace::kRelearn, "relearn"}};

// What rows look like to a model: all that a description says but what learning changes.
Json InputOf(const data::Description& description) {
  Json json = Json::parse(description.ToJson());
  for (const char* const key : {"version", "encoding", "target", "labels"}) json.erase(key);
  return json;
}

// Is one list how the other begins?
bool Agree(std::size_t a, std::size_t b, const auto& equal) {
  for (std::size_t i = 0; i < std::min(a, b); ++i)
    if (!equal(i)) return false;
  return true;
}

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

std::string MarksOf(const optimize::Parameters& parameters, const data::Moments& moments) {
  const std::vector<double> numbers = moments.Save();
  return Str(parameters.Checksum(), "-", base::Crc32cOf(std::span<const double>(numbers)));
}

// At the start, when all is recovered: is the model file the one that this was started from?
Result<void> Deployment::MeetStart(const model::Model& model, const model::TrainedModel& start) {
  if (started_from_.empty()) {  // of a program that kept no marks
    if (!versions_->Find(0)) return {};
    const auto first = LoadVersion(0);
    if (!first.ok()) return {};  // nobody can tell
    started_from_ = MarksOf(first.value().state->parameters, first.value().state->moments);
  }
  const data::Description& input = start.description;
  if (MarksOf(start.parameters, input.standardise ? input.moments : data::Moments()) == started_from_) return {};
  if (options_.replace == Replace::kNo) {
    start_ignored_ = true;
    env_.log.Warn("model file ignored", "directory", options_.directory, "reason",
                  "it is not the one that the state was started from", "advice",
                  "deploy it, or give it a state of its own");
    return {};
  }
  TRY(MayDeploy(model, input));
  const std::string file = TRY(KeepDeployed(model, start));
  TRY(Deploy(file, start, options_.replace == Replace::kRelearn));
  return {};
}

// The journal holds rows by the numbers of their features and labels: they must mean the same to both.
Result<void> Deployment::MayDeploy(const model::Model& model, const data::Description& description) const {
  const auto other = [](std::string_view why) {
    return Error{Code::kInvalid, Str("the model file cannot take over: ", why,
                                     "; serve it under another name, or with another ", Option("state"))};
  };
  const data::Description& present = models_->description();
  const auto& labels = description.labels.names;
  const auto& known = present.labels.names;
  std::unique_ptr<model::Model> wider;
  if (model.scores() < model_->scores())
    if (auto made = model::WithClasses(model, model_->scores()); made.ok()) wider = std::move(made).value();
  model::ModelConfig config = (wider != nullptr ? *wider : model).config();
  config.seed = model_->config().seed;
  if (config.ToJson() != model_->config().ToJson())
    return other(Str("it is another model (", config.ToJson(), " where ", model_->config().ToJson(), " serves)"));
  if (InputOf(description) != InputOf(present)) return other("it reads other columns or another form of rows");
  if (labels.size() > known.size() || description.labels.kind != present.labels.kind ||
      description.labels.positive != present.labels.positive ||
      !Agree(labels.size(), known.size(), [&](std::size_t i) { return labels[i] == known[i]; }))
    return other("its labels are others, or in another order");
  for (std::size_t d = 0; d < present.dictionaries.size(); ++d) {
    const data::Dictionary &a = description.dictionaries[d], &b = present.dictionaries[d];
    if (a.size() > b.size() || !Agree(a.size(), b.size(), [&](std::size_t i) {
          return a.Name(static_cast<std::uint32_t>(i)) == b.Name(static_cast<std::uint32_t>(i));
        }))
      return other("its users, items or categories have other numbers than those in the journal");
  }
  return {};
}

// A copy for replays, which may begin before the record that names it. Returns its name.
Result<std::string> Deployment::KeepDeployed(const model::Model& model, const model::TrainedModel& trained) {
  const std::string directory = options_.directory + "/deployed";
  TRY(env_.files.MakeDirectory(directory));
  std::uint64_t n = log_->end_sequence();
  while (env_.files.Exists(Str(directory, "/", n, ".model"))) ++n;
  const std::string file = Str(n, ".model");
  TRY(model::SaveModel(env_.files, Str(directory, "/", file), model, trained.parameters, trained.description,
                       trained.metadata, trained.rated, trained.sums ? &*trained.sums : nullptr));
  return file;
}

Result<std::uint64_t> Deployment::Deploy(const std::string& file, const model::TrainedModel& trained, bool relearn) {
  const data::Description& input = trained.description;
  const std::string marks = MarksOf(trained.parameters, input.standardise ? input.moments : data::Moments());
  const std::uint64_t from = journal_->first_sequence();
  const std::string json = Json({{"file", file}, {"relearn", relearn}, {"from", from}, {"started_from", marks}}).dump();
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
    if (auto may = MayDeploy(*shared->model, shared->description); !may.ok()) return done(may.error());
    background_.Post([this, shared, relearn, done] {
      auto file = KeepDeployed(*shared->model, *shared);
      if (!file.ok()) return done(file.error());
      inbox_.Post([this, shared, file = file.value(), relearn, done] {
        auto may = MayDeploy(*shared->model, shared->description);  // a class may have come meanwhile
        auto deployed = may.ok() ? Deploy(file, *shared, relearn) : may.error();
        if (!deployed.ok()) return done(deployed.error());
        done(Json({{"sequence", deployed.value()}, {"relearned", relearn}}).dump());
      });
    });
  });
}

}  // namespace freshet::deploy
