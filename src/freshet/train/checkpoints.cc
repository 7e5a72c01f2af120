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
    : env_(env),
      options_(std::move(options)),
      world_(world),
      files_(env.files, options_.path, world.strategy.rank(), Workers()) {}

// Of whom there is something to keep beside a checkpoint.
int Checkpoints::Workers() const { return world_.strategy.alone() ? 0 : world_.strategy.size(); }

// Can another number of workers go on with what this one leaves?
bool Checkpoints::Interchangeable() const {
  return !world_.model.traits().own_rule && world_.strategy.interchangeable();
}

Result<void> Checkpoints::Save(const Standing& standing, const EarlyStopping& early,
                               const data::RowSource& source) const {
  strategy::Strategy& strategy = world_.strategy;
  TRY(env_.faults.Hit("checkpoint.save"));
  std::vector<double> seen = TRY(CountTogether(standing));
  const auto rows = static_cast<std::uint64_t>(seen.back());
  seen.pop_back();
  if (!strategy.alone()) TRY(SavePart(standing, source));
  if (strategy.rank() == 0) TRY(SaveForAll(standing, early, seen, standing.joined_rows + rows));
  TRY(strategy.Barrier());  // from here on nobody will ask for what was there before
  files_.RemoveLeftovers(standing.saves, CheckpointFiles::When::kSaved);
  return {};
}

// Sums of all workers over this epoch so far: the evaluation's, and rows.
Result<std::vector<double>> Checkpoints::CountTogether(const Standing& standing) const {
  std::vector<double> mine = standing.seen.Save();
  mine.push_back(static_cast<double>(standing.rows - standing.joined_rows));
  if (standing.learned) return mine;  // they have met already
  return world_.strategy.Sum(mine);
}

// What is the same for all workers, or does not matter: the checkpoint itself.
Result<void> Checkpoints::SaveForAll(const Standing& standing, const EarlyStopping& early,
                                     const std::vector<double>& seen, std::uint64_t rows) const {
  const EarlyStopping::Record& record = early.record();
  Json json = Json::parse(standing.Place());
  json["workers"] = Workers();
  json["interchangeable"] = Interchangeable();
  json["algorithms"] = world_.strategy.algorithms();
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
  model::AddBlocks(world_.parameters, Part::kRows, "", tensors);
  model::AddBlocks(world_.parameters, Part::kBeside, "beside.", tensors);
  model::AddBlocks(world_.optimizer.state(), Part::kRows, "state.", tensors);
  early.Save(tensors);
  Window::Save(standing.Waiting(), offsets, tensors);
  world_.description.Save(metadata, tensors, storage);
  TRY(base::WriteAtomic(env_.files, files_.path(), [&](base::OutputFile& file) -> Result<void> {
    TRY(data::WriteTensors(file, tensors, metadata));
    return env_.faults.Hit("checkpoint.written");
  }));
  env_.log.Info("checkpoint", "file", files_.path(), "epoch", standing.epoch, "rows", rows);
  return {};
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
  if (!strategy.reads_all()) {
    metadata["place"] = standing.Place();
    metadata["inputs"] = options_.inputs;
    model::AddBlocks(world_.parameters, Part::kRows, "", tensors);  // with room for what others have not met
    Window::Save(standing.Waiting(), offsets, tensors);
    world_.description.Save(metadata, tensors, storage);
    where = source.RowsWhere();
    tensors.push_back({"where", data::DType::kF64, {where.size()}, std::as_bytes(std::span<const double>(where))});
  }
  TRY(base::WriteAtomic(env_.files, files_.Part(standing.saves),
                        [&](base::OutputFile& file) { return data::WriteTensors(file, tensors, metadata); }));
  return strategy.Barrier();
}

}  // namespace freshet::train
