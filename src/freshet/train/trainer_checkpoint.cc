// Saving and resuming a run: a model file with the optimizer's state and the place in the data added. docs/formats.md
// lists the tensors. Resuming and never having stopped give the same bits when updates are made in order.

#include <nlohmann/json.hpp>

#include "base/option.h"
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

std::string Trainer::State::Place() const {
  Json json;
  json["position"] = ToJson(position);
  json["windows"] = windows;
  json["window_begin"] = window_begin;
  json["progress"] = progress;
  if (lot.due > 0) json["lot"] = {lot.due, lot.done, lot.from, lot.to};
  return json.dump();
}

void Trainer::State::LoadPlace(const std::string& text) {
  const Json json = Json::parse(text);
  position = PositionFrom(json.at("position"));
  windows = json.at("windows");
  window_begin = json.at("window_begin");
  progress = json.at("progress");
  lot = {};
  if (!json.contains("lot")) return;
  const Json& left = json.at("lot");
  lot = {.due = left.at(0), .done = left.at(1), .from = left.at(2), .to = left.at(3)};
}

std::string Trainer::State::Counts() const {
  const Json json = {{"seen", seen.Save()}, {"rows", report.rows}, {"joined_rows", joined_rows}};
  return json.dump();
}

bool Trainer::State::LoadCounts(const std::string& text) {
  const Json json = Json::parse(text);
  report.rows = json.at("rows");
  joined_rows = json.at("joined_rows");
  return seen.Load(json.at("seen"));
}

data::Batch Trainer::State::Waiting() const {
  return lot.due == 0 ? window.batch() : lot.rows.Slice(lot.done - lot.before, lot.rows.rows);
}

Result<void> Trainer::SaveCheckpoint() {
  State& s = *state_;
  const base::Span span(options_.trace, "checkpoint", base::Trace::kTraining, {.step = optimizer_.step()});
  TRY(env_.faults.Hit("checkpoint.save"));
  std::vector<double> seen = TRY(CountTogether());
  const auto rows = static_cast<std::uint64_t>(seen.back());
  seen.pop_back();
  // Workers who learn alone in between have made different numbers of updates: all go by rank 0's.
  std::uint64_t step = optimizer_.step();
  const double first = strategy_->rank() == 0 ? static_cast<double>(step) : 0;
  step = static_cast<std::uint64_t>(TRY(strategy_->Sum({first}))[0]);
  if (!strategy_->alone()) TRY(SavePart(step));
  if (strategy_->rank() == 0) TRY(SaveForAll(seen, s.joined_rows + rows));
  TRY(strategy_->Barrier());  // from here on nobody will ask for what was there before
  s.watch.Saved();
  Files().RemoveLeftovers(step, CheckpointFiles::When::kSaved);
  return {};
}

// What is the same for all workers, or does not matter: the checkpoint itself.
Result<void> Trainer::SaveForAll(const std::vector<double>& seen, std::uint64_t rows) {
  const State& s = *state_;
  const EarlyStopping::Record& early = s.early.record();
  Json json = Json::parse(s.Place());
  json["workers"] = Workers();
  json["interchangeable"] = Interchangeable();
  json["algorithms"] = strategy_->algorithms();
  if (!s.cuts.empty()) json["cuts"] = s.cuts;
  json["fingerprint"] = options_.fingerprint;
  json["inputs"] = options_.inputs;
  json["epoch"] = s.epoch;
  json["learned"] = s.learned;
  json["cached"] = s.cache.rows() != nullptr;
  json["step"] = optimizer_.step();
  json["seen"] = seen;
  json["rows"] = rows;
  json["joined_rows"] = s.joined_rows;
  json["progressive"] = s.progressive.Save();
  json["best_loss"] = early.best_loss;
  json["epochs_since_best"] = early.epochs_since_best;
  json["held_out_losses"] = early.losses;
  json["rows_each"] = s.rows_each;
  json["seconds"] = s.report.seconds;
  json["has_best"] = early.has_best;

  data::Metadata metadata;
  std::vector<data::Tensor> tensors;
  std::vector<std::string> storage;
  std::vector<std::uint32_t> offsets;
  metadata["format"] = "freshet checkpoint 2";
  metadata["model"] = model_.config().ToJson();
  metadata["train"] = json.dump();
  model::AddBlocks(parameters_, Part::kRows, "", tensors);
  model::AddBlocks(parameters_, Part::kBeside, "beside.", tensors);
  model::AddBlocks(optimizer_.state(), Part::kRows, "state.", tensors);
  s.early.Save(tensors);
  Window::Save(s.Waiting(), offsets, tensors);
  description_.Save(metadata, tensors, storage);
  TRY(base::WriteAtomic(env_.files, options_.checkpoint_path, [&](base::OutputFile& file) -> Result<void> {
    TRY(data::WriteTensors(file, tensors, metadata));
    return env_.faults.Hit("checkpoint.written");
  }));
  env_.log.Info("checkpoint", "file", options_.checkpoint_path, "epoch", s.epoch, "rows", rows);
  return {};
}

Result<bool> Trainer::LoadCheckpoint() {
  State& s = *state_;
  if (options_.checkpoint_path.empty()) return false;
  if (!env_.files.Exists(options_.checkpoint_path)) {
    Files().RemoveLeftovers(0, CheckpointFiles::When::kStart);
    return false;
  }
  const data::TensorFile file = TRY(data::TensorFile::Read(env_.files, options_.checkpoint_path));
  const auto unusable = [&](std::string_view why) {
    return Error{Code::kCorrupt, Str(options_.checkpoint_path, ": ", why, "; use ", Option("fresh"),
                                     " to start over, or another ", Option("checkpoint"))};
  };
  bool cached = false;
  try {  // the JSON library's own errors end here
    const Json json = Json::parse(TRY(file.Meta("train")));
    // Files may have other names for other workers, who have compared settings and data with rank 0's.
    const bool judges = strategy_->rank() == 0;
    if (judges && json.at("fingerprint") != options_.fingerprint)
      return unusable(Str("written by a run with other settings (",
                          FirstDifference(json.at("fingerprint"), options_.fingerprint), ")"));
    if (judges && json.value("inputs", options_.inputs) != options_.inputs)
      return unusable(
          Str("the data has changed since it was written (", FirstDifference(json.at("inputs"), options_.inputs), ")"));
    const int workers = Workers();
    const int before = json.value("workers", 0);
    if (before != workers && !(json.value("interchangeable", false) && Interchangeable()))
      return unusable(Str("written by ", before, " workers, now ", workers,
                          ": another number goes on only with all-reduce of a ", Option("batch"), " above 1, ",
                          Option("codec"), " none and ", Option("split"), " rows"));
    if (json.contains("cuts")) s.cuts = json.at("cuts").get<data::Cuts>();
    description_ = TRY(data::Description::Load(file));
    s.seen = s.progressive = SumsFor(model_, description_);
    s.epoch = json.at("epoch");
    s.learned = json.value("learned", false);
    cached = json.value("cached", false);
    s.LoadPlace(json.dump());
    if (!s.LoadCounts(json.dump()) || !s.progressive.Load(json.at("progressive")))
      return unusable("its sums are damaged");
    EarlyStopping::Record early{.best_loss = json.at("best_loss"),
                                .epochs_since_best = json.at("epochs_since_best"),
                                .losses = json.at("held_out_losses").get<std::vector<double>>()};
    s.rows_each = json.at("rows_each").get<std::vector<double>>();
    s.report.seconds = json.at("seconds");
    early.has_best = json.at("has_best").get<bool>();
    TRY(s.early.Load(std::move(early), file));
    std::optional<data::TensorFile> part;
    if (before == workers && !strategy_->alone())
      part = TRY(data::TensorFile::Read(env_.files, Files().Part(json.at("step"))));
    const data::TensorFile& own = part && !strategy_->reads_all() ? *part : file;
    TRY(model::LoadBlocks(own, Part::kRows, "", parameters_));
    TRY(optimizer_.Follow(parameters_));
    TRY(LoadOptimizer(own));
    optimizer_.SetStep(json.at("step"));
    TRY(s.window.Load(file));
    if (part) {
      TRY(LoadPart(*part));
    } else if (strategy_->rank() > 0 && !s.learned) {
      s.seen = SumsFor(model_, description_);  // rank 0 has what all have seen
      s.report.rows = s.joined_rows;
    }
    SetProgress(s.progress);
    Files().RemoveLeftovers(json.at("step"), CheckpointFiles::When::kStart);
  } catch (const Json::exception& problem) {
    return unusable(problem.what());
  }
  s.report.epochs = s.epoch;
  if (cached) s.cache.Reopen();
  env_.log.Info("resumed", "file", options_.checkpoint_path, "epoch", s.epoch, "rows", s.report.rows);
  return true;
}

// What the optimizer remembers lies beside the rows of who trains alone, and apart where workers exchange parameters:
// the same numbers in the same order.
Result<void> Trainer::LoadOptimizer(const data::TensorFile& file) {
  for (std::size_t b = 0; b < parameters_.blocks(); ++b) {
    const optimize::Block block = parameters_.block(b);
    const std::uint64_t width = block.beside > 0 ? block.beside : optimizer_.state().width(b);
    if (width == 0) continue;
    std::vector<float> values;
    for (const char* const prefix : {"beside.", "state."})
      if (values.empty() && file.Find(prefix + block.name) != nullptr)
        values = TRY(file.Values<float>(prefix + block.name));
    if (values.size() != parameters_.rows(b) * width)
      return Error{Code::kCorrupt, Str(options_.checkpoint_path, ": what the optimizer remembers of '", block.name,
                                       "' is missing or of another shape; use ", Option("fresh"), " to start over")};
    if (block.beside > 0)
      parameters_.ScatterBeside(b, values);
    else
      optimizer_.state().Scatter(b, values);
  }
  return {};
}

Result<std::string> SavedAlgorithms(base::Files& files, const std::string& checkpoint_path) {
  if (checkpoint_path.empty() || !files.Exists(checkpoint_path)) return std::string();
  const data::TensorFile file = TRY(data::TensorFile::Read(files, checkpoint_path));
  const Json json = Json::parse(TRY(file.Meta("train")), nullptr, false);
  const auto found = json.find("algorithms");  // of what is no object: nothing
  return found == json.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

}  // namespace freshet::train
