// What becomes of a checkpoint when a run goes on: is it one of this run, and what of it is whose.

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/option.h"
#include "model/model_file.h"
#include "train/checkpoints.h"

namespace freshet::train {
namespace {

using Json = nlohmann::ordered_json;
using model::Part;

// Of two texts of lines, the first line that is not the same.
std::string FirstDifference(const std::string& then, const std::string& now) {
  const auto before = Split(then, '\n'), after = Split(now, '\n');
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i)
    if (before[i] != after[i]) return Str(before[i], ", now ", after[i]);
  return "more or fewer of them";
}

}  // namespace

Result<bool> Checkpoints::Load(Standing& standing, EarlyStopping& early) const {
  if (!OwnFiles().Exist()) {
    OwnFiles().RemoveLeftovers(0, CheckpointFiles::When::kStart);
    return false;
  }
  TRY(LoadFrom(TRY(data::TensorFile::Read(env_.files, options_.path)), standing, early));
  OwnFiles().RemoveLeftovers(standing.saves, CheckpointFiles::When::kStart);
  env_.log.Info("resumed", "file", options_.path, "epoch", standing.epoch, "rows", standing.rows);
  return true;
}

Result<void> Checkpoints::Take(std::string given, Standing& standing, EarlyStopping& early) const {
  const data::TensorFile file = TRY(data::TensorFile::Parse(std::move(given), "what the others have"));
  const std::string common = TRY(file.Meta("common"));
  if (common != options_.common)
    return Error{Code::kInvalid, Str("the others train something else (theirs: ",
                                     FirstDifference(common, options_.common), "); start this worker as they were")};
  return LoadFrom(file, standing, early);
}

Result<void> Checkpoints::LoadFrom(const data::TensorFile& file, Standing& standing, EarlyStopping& early) const {
  const auto& [model, parameters, optimizer, description, strategy] = world_;
  const auto unusable = [&](std::string_view why) {
    return Error{Code::kCorrupt, Str(options_.path, ": ", why, "; use ", Option("fresh"), " to start over, or another ",
                                     Option("checkpoint"))};
  };
  try {  // the JSON library's own errors end here
    const Json json = Json::parse(TRY(file.Meta("train")));
    // Files may have other names for other workers, who have compared settings and data with rank 0's.
    const bool judges = strategy.rank() == 0;
    if (judges && json.at("fingerprint") != options_.fingerprint)
      return unusable(Str("written by a run with other settings (",
                          FirstDifference(json.at("fingerprint"), options_.fingerprint), ")"));
    if (judges && json.value("inputs", options_.inputs) != options_.inputs)
      return unusable(
          Str("the data has changed since it was written (", FirstDifference(json.at("inputs"), options_.inputs), ")"));
    const int workers = Workers();
    const int before = json.value("workers", 0);
    const bool merges = before != workers && before > 0 && HasParts() && json.value("parts", true) &&
                        json.value("mergeable", false) && Mergeable();
    if (before != workers && !(json.value("interchangeable", false) && Interchangeable()) && !merges)
      return unusable(Str("written by ", before, " workers, now ", workers,
                          model.traits().own_rule
                              ? Str(": another number cannot go on with ", model.config().kind)
                              : Str(": another number goes on only with all-reduce, or in a ring, of a ",
                                    Option("batch"), " above 1 and ", Option("split"), " rows")));
    if (json.contains("cuts")) standing.cuts = json.at("cuts").get<data::Cuts>();
    description = TRY(data::Description::Load(file));
    standing.seen = standing.progressive = SumsFor(model, description);
    standing.epoch = json.at("epoch");
    standing.saves = json.value("save", std::uint64_t{0});
    standing.learned = json.value("learned", false);
    standing.cached = json.value("cached", false);
    standing.LoadPlace(json.dump());
    if (!standing.LoadCounts(json.dump()) || !standing.progressive.Load(json.at("progressive")))
      return unusable("its sums are damaged");
    EarlyStopping::Record record{.best_loss = json.at("best_loss"),
                                 .epochs_since_best = json.at("epochs_since_best"),
                                 .losses = json.at("held_out_losses").get<std::vector<double>>()};
    standing.rows_each = json.at("rows_each").get<std::vector<double>>();
    standing.seconds = json.at("seconds");
    record.has_best = json.at("has_best").get<bool>();
    TRY(early.Load(std::move(record), file));
    std::optional<data::TensorFile> part;
    const bool parts = before == workers && HasParts() && json.value("parts", true);
    if (parts && standing.saves == 0)
      return unusable("written by an earlier version, which gave the parts of workers other names");
    if (parts) part = TRY(data::TensorFile::Read(env_.files, OwnFiles().Part(standing.saves)));
    const data::TensorFile& own = part && !strategy.same_place() ? *part : file;
    TRY(model::LoadBlocks(own, Part::kRows, "", parameters));
    TRY(optimizer.Follow(parameters));
    TRY(LoadOptimizer(own));
    optimizer.SetStep(json.at("step"));
    TRY(standing.window.Load(file));
    // What workers had not delivered yet is the first one's now.
    if (strategy.changes() && file.metadata().contains("remembered"))
      TRY(strategy.rank() == 0 ? strategy.Load(file) : strategy.LoadShared(file));
    if (merges) TRY(MergeParts(before, standing.saves));
    if (part) {
      TRY(LoadPart(*part, standing));
    } else if (strategy.rank() > 0 && !standing.learned) {
      standing.seen = SumsFor(model, description);  // rank 0 has what all have seen
      if (!strategy.changes()) standing.rows = standing.joined_rows;
    }
  } catch (const Json::exception& problem) {
    return unusable(problem.what());
  }
  return {};
}

// What the optimizer remembers lies beside the rows of who trains alone, and apart where workers exchange parameters:
// the same numbers in the same order.
Result<void> Checkpoints::LoadOptimizer(const data::TensorFile& file) const {
  optimize::Parameters& parameters = world_.parameters;
  optimize::Parameters& state = world_.optimizer.state();
  for (std::size_t b = 0; b < parameters.blocks(); ++b) {
    const optimize::Block block = parameters.block(b);
    const std::uint64_t width = block.beside > 0 ? block.beside : state.width(b);
    if (width == 0) continue;
    std::vector<float> values;
    for (const char* const prefix : {"beside.", "state."})
      if (values.empty() && file.Find(prefix + block.name) != nullptr)
        values = TRY(file.Values<float>(prefix + block.name));
    if (values.size() != parameters.rows(b) * width)
      return Error{Code::kCorrupt, Str(options_.path, ": what the optimizer remembers of '", block.name,
                                       "' is missing or of another shape; use ", Option("fresh"), " to start over")};
    if (block.beside > 0)
      parameters.ScatterBeside(b, values);
    else
      state.Scatter(b, values);
  }
  return {};
}

Result<void> Checkpoints::MergeParts(int before, std::uint64_t save) const {
  const auto part = [&](int rank) {
    return data::TensorFile::Read(env_.files, CheckpointFiles(env_.files, options_.path, rank, before).Part(save));
  };
  strategy::Strategy& strategy = world_.strategy;
  if (strategy.rank() >= before) return strategy.LoadShared(TRY(part(0)));
  TRY(strategy.Load(TRY(part(strategy.rank()))));
  for (int other = strategy.rank() + strategy.size(); other < before; other += strategy.size())
    TRY(strategy.Merge(TRY(part(other))));
  return {};
}

Result<void> Checkpoints::LoadPart(const data::TensorFile& part, Standing& standing) const {
  const auto& [model, parameters, optimizer, description, strategy] = world_;
  const auto unusable = [&](std::string_view why) {
    return Error{Code::kCorrupt,
                 Str(OwnFiles().Part(standing.saves), ": ", why, "; use ", Option("fresh"), " to start over")};
  };
  if (!standing.LoadCounts(TRY(part.Meta("counts")))) return unusable("its sums are damaged");
  optimizer.SetStep(std::strtoull(TRY(part.Meta("step")).c_str(), nullptr, 10));
  TRY(strategy.Load(part));
  TRY(model::LoadBlocks(part, Part::kRows, "state.", optimizer.state()));
  if (strategy.same_place()) return {};
  const std::string before = TRY(part.Meta("inputs"));
  if (before != options_.inputs) return unusable(Str("the data has changed since it was written, from\n", before));
  standing.LoadPlace(TRY(part.Meta("place")));
  TRY(standing.window.Load(part));
  standing.where = TRY(part.Values<double>("where"));
  description = TRY(data::Description::Load(part));
  return {};
}

namespace {

// What the checkpoint says by this name; "" when there is no such file, or it does not say.
Result<std::string> Saved(base::Files& files, const std::string& checkpoint_path, const char* name) {
  if (checkpoint_path.empty() || !files.Exists(checkpoint_path)) return std::string();
  const data::TensorFile file = TRY(data::TensorFile::Read(files, checkpoint_path));
  const Json json = Json::parse(TRY(file.Meta("train")), nullptr, false);
  const auto found = json.find(name);  // of what is no object: nothing
  return found == json.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

}  // namespace

Result<std::string> SavedAlgorithms(base::Files& files, const std::string& checkpoint_path) {
  return Saved(files, checkpoint_path, "algorithms");
}

Result<std::string> SavedChoice(base::Files& files, const std::string& checkpoint_path) {
  return Saved(files, checkpoint_path, "choice");
}

}  // namespace freshet::train
