#include "train/checkpoints.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "model/model_file.h"

namespace freshet::train {
namespace {

using Json = nlohmann::ordered_json;
using model::Part;

}  // namespace

Checkpoints::Checkpoints(const base::Env& env, Options options, const World& world)
    : env_(env), options_(std::move(options)), world_(world) {}

CheckpointFiles Checkpoints::OwnFiles() const {
  return CheckpointFiles(env_.files, options_.path, world_.strategy.rank(), Workers());
}

// Of whom there is something to keep beside a checkpoint.
int Checkpoints::Workers() const { return world_.strategy.alone() ? 0 : world_.strategy.size(); }

bool Checkpoints::HasParts() const { return !world_.strategy.alone() && !world_.strategy.changes(); }

// Can another number of workers go on with what this one leaves?
bool Checkpoints::Interchangeable() const {
  return !world_.model.traits().own_rule && world_.strategy.interchangeable();
}

bool Checkpoints::Mergeable() const { return !world_.model.traits().own_rule && world_.strategy.mergeable(); }

Result<void> Checkpoints::Save(const Standing& standing, const EarlyStopping& early,
                               const data::RowSource& source) const {
  strategy::Strategy& strategy = world_.strategy;
  TRY(env_.faults.Hit("checkpoint.save"));
  if (strategy.changes() && !strategy.in_step()) TRY(strategy.Settle());
  std::vector<double> seen = TRY(CountTogether(standing));
  const auto rows = static_cast<std::uint64_t>(seen.back());
  seen.pop_back();
  if (HasParts()) TRY(SavePart(standing, source));
  if (strategy.changes()) TRY(strategy.Collect());
  // Where members come and go, rank 0 may be another one meanwhile: until somebody is there who has written it.
  for (double wrote = 0, written = 0; written == 0;) {
    if (strategy.rank() == 0 && wrote == 0) {
      TRY(base::WriteAtomic(env_.files, options_.path, [&](base::OutputFile& file) -> Result<void> {
        TRY(Write(file, standing, early, seen, standing.joined_rows + rows, strategy.changes()));
        return env_.faults.Hit("checkpoint.written");
      }));
      env_.log.Info("checkpoint", "file", options_.path, "epoch", standing.epoch, "rows", standing.joined_rows + rows);
      wrote = 1;
    }
    written = TRY(strategy.Sum({wrote}))[0];
  }
  // From here on nobody will ask for what was there before.
  OwnFiles().RemoveLeftovers(standing.saves, CheckpointFiles::When::kSaved);
  return {};
}

Result<void> Checkpoints::SaveAlone(const Standing& standing, const EarlyStopping& early) const {
  return base::WriteAtomic(env_.files, options_.path, [&](base::OutputFile& file) {
    return Write(file, standing, early, standing.seen.Save(), standing.rows);
  });
}

// Sums of all workers over this epoch so far: the evaluation's, and rows.
Result<std::vector<double>> Checkpoints::CountTogether(const Standing& standing) const {
  std::vector<double> mine = standing.seen.Save();
  const auto rows = static_cast<double>(standing.rows - standing.joined_rows);
  mine.push_back(rows);
  if (standing.learned) return mine;  // they have met already
  std::vector<double> sums = TRY(world_.strategy.Sum(mine));
  if (world_.strategy.changes()) sums.back() = rows;  // each has counted those of all
  return sums;
}

Result<std::string> Checkpoints::Give(const Standing& standing, const EarlyStopping& early) const {
  base::StringFile file;
  TRY(Write(file, standing, early, SumsFor(world_.model, world_.description).Save(), standing.rows));
  return std::move(file.text);
}

Result<void> Checkpoints::Write(base::OutputFile& file, const Standing& standing, const EarlyStopping& early,
                                const std::vector<double>& seen, std::uint64_t rows, bool with_remembered) const {
  const EarlyStopping::Record& record = early.record();
  Json json = Json::parse(standing.Place());
  json["workers"] = Workers();
  json["parts"] = HasParts();
  json["interchangeable"] = Interchangeable();
  json["mergeable"] = Mergeable();
  json["algorithms"] = world_.strategy.algorithms();
  if (!options_.choice.empty()) json["choice"] = options_.choice;
  if (!standing.cuts.empty()) json["cuts"] = standing.cuts;
  json["fingerprint"] = options_.fingerprint;
  json["inputs"] = options_.inputs;
  json["epoch"] = standing.epoch;
  json["learned"] = standing.learned;
  json["cached"] = standing.cached;
  json["step"] = world_.optimizer.step();
  json["save"] = standing.saves;
  json["seen"] = seen;
  json["rows"] = rows;
  json["joined_rows"] = standing.joined_rows;
  json["progressive"] = standing.progressive.Save();
  json["best_loss"] = record.best_loss;
  json["epochs_since_best"] = record.epochs_since_best;
  json["held_out_losses"] = record.losses;
  json["rows_each"] = standing.rows_each;
  json["seconds"] = standing.seconds;
  json["has_best"] = record.has_best;

  data::Metadata metadata;
  std::vector<data::Tensor> tensors;
  std::vector<std::string> storage;
  std::vector<std::uint32_t> offsets;
  metadata["format"] = "freshet checkpoint 2";
  metadata["model"] = world_.model.config().ToJson();
  metadata["train"] = json.dump();
  metadata["common"] = options_.common;
  model::AddBlocks(world_.parameters, Part::kRows, "", tensors);
  model::AddBlocks(world_.parameters, Part::kBeside, "beside.", tensors);
  model::AddBlocks(world_.optimizer.state(), Part::kRows, "state.", tensors);
  early.Save(tensors);
  Window::Save(standing.Waiting(), offsets, tensors);
  world_.description.Save(metadata, tensors, storage);
  const std::size_t before = tensors.size();
  if (with_remembered) world_.strategy.Save(tensors);
  if (tensors.size() > before) metadata["remembered"] = "by all workers";
  return data::WriteTensors(file, tensors, metadata);
}

// What this worker alone remembers. The parts of all workers are on the disk before rank 0's checkpoint is, and those of
// the save before stay until then, so that whatever is killed when, the checkpoint that is there has its own parts.
// (Two saves may be of the same step: in the midst of an epoch and at its end.)
Result<void> Checkpoints::SavePart(const Standing& standing, const data::RowSource& source) const {
  strategy::Strategy& strategy = world_.strategy;
  TRY(strategy.Settle());
  data::Metadata metadata = {
      {"format", "freshet checkpoint part 2"}, {"counts", standing.Counts()}, {"step", Str(world_.optimizer.step())}};
  std::vector<data::Tensor> tensors;
  std::vector<std::string> storage;
  std::vector<std::uint32_t> offsets;
  strategy.Save(tensors);
  model::AddBlocks(world_.optimizer.state(), Part::kRows, "state.", tensors);
  std::vector<double> where;
  if (!strategy.same_place()) {
    metadata["place"] = standing.Place();
    metadata["inputs"] = options_.inputs;
    model::AddBlocks(world_.parameters, Part::kRows, "", tensors);  // with room for what others have not met
    Window::Save(standing.Waiting(), offsets, tensors);
    world_.description.Save(metadata, tensors, storage);
    where = source.RowsWhere();
    tensors.push_back({"where", data::DType::kF64, {where.size()}, std::as_bytes(std::span<const double>(where))});
  }
  TRY(base::WriteAtomic(env_.files, OwnFiles().Part(standing.saves),
                        [&](base::OutputFile& file) { return data::WriteTensors(file, tensors, metadata); }));
  return strategy.Barrier();
}

}  // namespace freshet::train
