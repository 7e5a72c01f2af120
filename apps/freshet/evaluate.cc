#include <nlohmann/json.hpp>

#include "data/open.h"
#include "model/model_file.h"
#include "results.h"
#include "train/evaluate.h"
#include "verb.h"

namespace freshet::cli {
namespace {

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  data::Input input;
  std::string model_path, config;
  int threads = 0;
  bool json = false;
  base::Settings settings;
  settings.Group("What");
  settings.Add("from", &model_path, "the model file", {.letter = 'i', .value = "FILE"});
  settings.Add("json", &json, "results as one JSON object");
  settings.Add("threads", &threads, "threads (0: every core)", {.value = "N", .least = 0, .most = 1024});
  settings.Add("config", &config, "read settings from this TOML file", {.value = "FILE"});
  input.Register(settings, data::Input::Use::kScoring);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (model_path.empty()) return Error{Code::kInvalid, "no model: name it with -i FILE"};

  base::ThreadPool pool(Threads(threads));
  const base::Env env = door.env(pool);
  optimize::HeapMemory memory;
  auto trained = TRY(model::LoadModel(door.files, model_path, memory));
  input.grow = false;
  input.labelled = !trained.model->traits().answers_clusters;
  const auto source = TRY(data::Open(env, input, trained.description));
  const auto evaluation =
      TRY(train::Evaluate(env, *trained.model, trained.parameters, trained.description, *source, &door.stop));
  if (evaluation.rows() == 0) return Error{Code::kBadInput, Str(Join(input.paths, ", "), ": no rows to evaluate on")};
  if (!json) return Print(door.files, ToText(evaluation, *trained.model) + "\n");
  auto out = ToJson(evaluation, *trained.model);
  out["schema"] = 1;
  out["bad_rows"] = source->bad_rows();
  return Print(door.files, out.dump() + "\n");
}

}  // namespace

extern const Verb kEvaluate = {"evaluate", "how good is a model on labelled data", "-i MODEL DATA…",
                               "  freshet evaluate -i a9a.model a9a.t\n"
                               "  freshet evaluate -i a9a.model --json a9a.t | jq .auc\n",
                               Run};

}  // namespace freshet::cli
