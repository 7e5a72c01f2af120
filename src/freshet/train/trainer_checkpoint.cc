// Saving and resuming a run: a model file with the optimizer's state and the place in the data added. docs/formats.md
// lists the tensors. Resuming and never having stopped give the same bits when updates are made in order.

#include <nlohmann/json.hpp>

#include "model/model_file.h"
#include "train/trainer_state.h"

namespace freshet::train {
namespace {

using Json = nlohmann::ordered_json;
using model::Part;

Json ToJson(const data::Position& p) { return {p.file, p.offset, p.line, p.sample, p.block}; }
data::Position PositionFrom(const Json& json) { return {json.at(0), json.at(1), json.at(2), json.at(3), json.at(4)}; }

// Of two texts of lines, the first line that is not the same.
std::string FirstDifference(const std::string& then, const std::string& now) {
  const auto before = Split(then, '\n'), after = Split(now, '\n');
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i)
    if (before[i] != after[i]) return Str(before[i], ", now ", after[i]);
  return "more or fewer of them";
}

}  // namespace

Result<void> Trainer::SaveCheckpoint() {
  State& s = *state_;
  const base::Span span(options_.trace, "checkpoint", base::Trace::kTraining, {.step = optimizer_.step()});
  TRY(env_.faults.Hit("checkpoint.save"));
  if (options_.strategy != nullptr) {
    TRY(SavePart());
    s.checkpointed = env_.clock.Now();
    if (options_.strategy->rank() != 0) return {};
  }
  Json json;
  json["workers"] = options_.strategy == nullptr ? 0 : options_.strategy->size();
  if (options_.strategy != nullptr) json["algorithms"] = options_.strategy->algorithms();
  if (!s.cuts.empty()) json["cuts"] = s.cuts;
  json["fingerprint"] = options_.fingerprint;
  json["epoch"] = s.epoch;
  json["learned"] = s.learned;
  json["position"] = ToJson(s.position);
  json["windows"] = s.windows;
  json["window_begin"] = s.window_begin;
  if (s.lot.due > 0) json["lot"] = {s.lot.due, s.lot.done, s.lot.from, s.lot.to};
  json["step"] = optimizer_.step();
  json["seen"] = s.seen.Save();
  json["progressive"] = s.progressive.Save();
  json["best_loss"] = s.best_loss;
  json["epochs_since_best"] = s.epochs_since_best;
  json["held_out_losses"] = s.report.held_out_losses;
  json["rows"] = s.report.rows;
  json["seconds"] = s.report.seconds;
  json["has_best"] = s.best.has_value();

  data::Metadata metadata;
  std::vector<data::Tensor> tensors;
  std::vector<std::string> storage;
  metadata["format"] = "freshet checkpoint 1";
  metadata["model"] = model_.config().ToJson();
  metadata["train"] = json.dump();
  model::AddBlocks(parameters_, Part::kRows, "", tensors);
  model::AddBlocks(parameters_, Part::kBeside, "beside.", tensors);
  model::AddBlocks(optimizer_.state(), Part::kRows, "state.", tensors);
  if (s.best) model::AddBlocks(*s.best, Part::kRows, "best.", tensors);
  const data::Batch left =
      s.lot.due == 0 ? s.window.batch() : s.lot.rows.Slice(s.lot.done - s.lot.before, s.lot.rows.rows);
  std::vector<std::uint32_t> offsets;
  Window::Save(left, offsets, tensors);
  description_.Save(metadata, tensors, storage);
  TRY(base::WriteAtomic(env_.files, options_.checkpoint_path, [&](base::OutputFile& file) -> Result<void> {
    TRY(data::WriteTensors(file, tensors, metadata));
    return env_.faults.Hit("checkpoint.written");
  }));
  s.checkpointed = env_.clock.Now();
  env_.log.Info("checkpoint", "file", options_.checkpoint_path, "epoch", s.epoch, "rows", s.report.rows);
  return {};
}

Result<bool> Trainer::LoadCheckpoint() {
  State& s = *state_;
  if (options_.checkpoint_path.empty() || !env_.files.Exists(options_.checkpoint_path)) return false;
  const data::TensorFile file = TRY(data::TensorFile::Read(env_.files, options_.checkpoint_path));
  const auto unusable = [&](std::string_view why) {
    return Error{Code::kCorrupt,
                 Str(options_.checkpoint_path, ": ", why, "; use --fresh to start over, or another --checkpoint")};
  };
  try {  // the JSON library's own errors end here
    const Json json = Json::parse(TRY(file.Meta("train")));
    if (json.at("fingerprint") != options_.fingerprint)
      return unusable(Str("written by a run with other settings (",
                          FirstDifference(json.at("fingerprint"), options_.fingerprint), ")"));
    const int workers = options_.strategy == nullptr ? 0 : options_.strategy->size();
    if (json.value("workers", 0) != workers)
      return unusable(Str("written by ", json.value("workers", 0), " workers, now ", workers));
    if (json.contains("cuts")) s.cuts = json.at("cuts").get<data::Cuts>();
    s.epoch = json.at("epoch");
    s.learned = json.value("learned", false);
    s.position = PositionFrom(json.at("position"));
    s.windows = json.at("windows");
    s.window_begin = json.at("window_begin");
    if (json.contains("lot")) {
      const Json& lot = json.at("lot");
      s.lot = {.due = lot.at(0), .done = lot.at(1), .from = lot.at(2), .to = lot.at(3)};
    }
    if (!s.seen.Load(json.at("seen")) || !s.progressive.Load(json.at("progressive")))
      return unusable("its sums are damaged");
    s.best_loss = json.at("best_loss");
    s.epochs_since_best = json.at("epochs_since_best");
    s.report.held_out_losses = json.at("held_out_losses").get<std::vector<double>>();
    s.report.rows = json.at("rows");
    s.report.seconds = json.at("seconds");
    if (json.at("has_best").get<bool>()) {
      s.best = TRY(model_.NewParameters(s.memory));
      TRY(model::LoadBlocks(file, Part::kRows, "best.", *s.best));
    }
    TRY(model::LoadBlocks(file, Part::kRows, "", parameters_));
    TRY(model::LoadBlocks(file, Part::kBeside, "beside.", parameters_));
    TRY(optimizer_.Follow(parameters_));
    TRY(model::LoadBlocks(file, Part::kRows, "state.", optimizer_.state()));
    optimizer_.SetStep(json.at("step"));
    if (options_.strategy != nullptr) TRY(LoadPart(json.at("step")));
  } catch (const Json::exception& problem) {
    return unusable(problem.what());
  }
  description_ = TRY(data::Description::Load(file));
  TRY(s.window.Load(file));
  s.report.epochs = s.epoch;
  const std::string cached =
      RankPath(options_.cache_path.empty() ? options_.checkpoint_path + ".rows" : options_.cache_path);
  if (s.epoch > 0 && env_.files.Exists(cached)) {
    auto cache = data::CacheReader::Open(env_.files, cached);
    if (cache.ok()) s.cache = std::move(cache).value();
    s.cache_path = cached;
  }
  env_.log.Info("resumed", "file", options_.checkpoint_path, "epoch", s.epoch, "rows", s.report.rows);
  return true;
}

Result<std::string> SavedAlgorithms(base::Files& files, const std::string& checkpoint_path) {
  if (checkpoint_path.empty() || !files.Exists(checkpoint_path)) return std::string();
  const data::TensorFile file = TRY(data::TensorFile::Read(files, checkpoint_path));
  const Json json = Json::parse(TRY(file.Meta("train")), nullptr, false);
  const auto found = json.find("algorithms");  // of what is no object: nothing
  return found == json.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

}  // namespace freshet::train
