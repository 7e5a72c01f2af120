#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/drive.h"
#include "data/open.h"
#include "data/standardise.h"
#include "model/model_file.h"
#include "model/slices.h"
#include "results.h"
#include "train/evaluate.h"
#include "verb.h"

namespace freshet::cli {
namespace {

enum class Show { kAnswer, kProbabilities, kScores };

// One line for the scores of one row: a class by its name, a probability, a number; or every probability or score.
void AppendPrediction(const model::TrainedModel& trained, std::span<float> scores, Show show, std::string& out) {
  const auto& labels = trained.description.labels;
  if (trained.model->traits().answers_clusters) {
    out += Str(static_cast<std::uint64_t>(scores[0]), "\n");
    return;
  }
  if (labels.kind == data::Labels::Kind::kClasses && show == Show::kAnswer) {
    const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    out += Str(Printable(labels.names[static_cast<std::size_t>(best)]), "\n");
    return;
  }
  if (show != Show::kScores) trained.model->loss().Link(scores);
  for (std::size_t k = 0; k < scores.size(); ++k) out += Str(k == 0 ? "" : " ", scores[k]);
  out += "\n";
}

// The same as one JSON object: as the server calls its outputs, `score` (all of them for several classes) and `label`.
void AppendJson(const model::TrainedModel& trained, std::span<float> scores, std::string& out) {
  nlohmann::ordered_json row;
  const auto& labels = trained.description.labels;
  if (trained.model->traits().answers_clusters) {
    row["cluster"] = static_cast<std::uint64_t>(scores[0]);
    out += JsonLine(row);
    return;
  }
  const bool positive = scores[0] > 0;  // before the link, where 0 is the border of two classes
  const auto best = static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  trained.model->loss().Link(scores);
  if (scores.size() == 1)
    row["score"] = scores[0];
  else
    row["score"] = std::vector<float>(scores.begin(), scores.end());
  const std::size_t k = scores.size() == 1 ? (positive ? 1 : 0) : best;
  if (labels.kind != data::Labels::Kind::kReal && k < labels.names.size()) row["label"] = labels.names[k];
  out += JsonLine(row);
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  data::Input input;
  std::string model_path, out_path = "-", config;
  int threads = 0;
  bool probabilities = false, plain_scores = false, json = false;
  base::Settings settings;
  settings.Group("What");
  settings.Add("from", &model_path, "the model file", {.letter = 'i', .value = "FILE"});
  settings.Add("out", &out_path, "where predictions go, one line a row", {.letter = 'o', .value = "FILE"});
  settings.Add("probabilities", &probabilities, "of every class, in the model's order");
  settings.Add("scores", &plain_scores, "all the model gives, before the loss makes probabilities of it");
  settings.Add("json", &json, "one JSON object a row: score and label");
  settings.Add("threads", &threads, "threads (0: every core)", {.value = "N", .least = 0, .most = 1024});
  settings.Add("config", &config, "read settings from this TOML file", {.value = "FILE"});
  input.Register(settings, data::Input::Use::kScoring);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (plain_scores && (probabilities || json))
    return Error{Code::kInvalid, "--scores goes with neither --probabilities nor --json"};
  const Show show = plain_scores ? Show::kScores : probabilities ? Show::kProbabilities : Show::kAnswer;
  if (model_path.empty()) return Error{Code::kInvalid, "no model: name it with -i FILE"};

  TRY(CheckPlaceFor(door.files, out_path));

  base::ThreadPool pool(Threads(threads));
  const base::Env env = door.env(pool);
  optimize::HeapMemory memory;
  auto trained = TRY(model::LoadModel(door.files, model_path, memory));
  input.grow = false;
  input.labelled = false;
  const auto source = TRY(data::Open(env, input, trained.description));
  model::Workspace workspace;
  workspace.threads = env.executor.width();
  workspace.goes_on = [&] { return door.GoOn().ok(); };
  std::vector<float> scores;
  std::string text;
  constexpr std::size_t kNetworkRows = 32;  // what a network predicts at once
  const auto write_all = [&](base::OutputFile& out) {
    return train::DriveFor(env, *trained.model, *source, [&](data::Rows& rows) -> Result<void> {
      TRY(door.GoOn());
      data::Standardise(trained.description, rows);
      const data::Batch batch = rows.batch();
      const std::size_t k = trained.model->scores();
      text.clear();
      for (std::size_t begin = 0, end = 0; begin < batch.rows; begin = end) {
        end = model::SliceEnd(*trained.model, batch, begin, kNetworkRows);
        scores.resize((end - begin) * k);
        trained.model->Predict(trained.parameters, batch.Slice(begin, end), workspace, scores);
        trained.description.target.Unscale(scores);
        TRY(door.GoOn());
        for (std::size_t r = 0; r < end - begin; ++r) {
          const std::span<float> of_row = std::span(scores).subspan(r * k, k);
          if (json)
            AppendJson(trained, of_row, text);
          else
            AppendPrediction(trained, of_row, show, text);
        }
      }
      return out.Write(text);
    });
  };
  if (out_path != "-") return base::WriteAtomic(door.files, out_path, write_all);
  const auto out = TRY(door.files.Create("-"));
  return write_all(*out);
}

}  // namespace

extern const Verb kPredict = {
    "predict", "score rows with a model", "-i MODEL DATA…",
    "  freshet predict -i a9a.model a9a.t | head\n"
    "  freshet predict -i digits.model --probabilities t10k-images-idx3-ubyte.gz -o scores.txt\n",
    Run};

}  // namespace freshet::cli
