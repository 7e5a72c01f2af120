// What a trainer does as one of several workers, or as the only one.

#include <numeric>

#include "base/option.h"
#include "model/model_file.h"
#include "train/trainer_state.h"

namespace freshet::train {

// Steps are made by the strategy that was given, or alone.
Result<void> Trainer::ChooseStrategy() {
  State& s = *state_;
  strategy_ = options_.strategy;
  if (strategy_ != nullptr) return {};
  strategy::Alone::Options how{.batch = options_.batch,
                               .accumulate = options_.accumulate,
                               .threads = env_.executor.width(),
                               .by_rows = !Shown(),
                               .goes_on = [this] { return GoesOn(); }};
  s.alone = TRY(strategy::Alone::Make(how, {model_, parameters_, optimizer_, s.memory, env_.clock, options_.trace}));
  strategy_ = s.alone.get();
  return {};
}

void Trainer::SetProgress(double progress) {
  state_->progress = progress;
  strategy_->SetProgress(progress);
}

// Of whom there is something to keep beside a checkpoint.
int Trainer::Workers() const { return strategy_->alone() ? 0 : strategy_->size(); }

// The end of an epoch: all have the same parameters, and know what all have seen.
Result<void> Trainer::Join() {
  State& s = *state_;
  for (bool dry = strategy_->reads_all(); !dry;) {
    Ask(s.watch.rows_wanted());
    dry = TRY(strategy_->StepDry());
    s.watch.WantRows();
    TRY(AfterUpdate());
  }
  TRY(strategy_->Settle());
  TRY(JoinEvaluation(s.seen));
  std::vector<double> mine(static_cast<std::size_t>(strategy_->size()), 0);
  mine[static_cast<std::size_t>(strategy_->rank())] = static_cast<double>(s.report.rows - s.joined_rows);
  s.rows_each = TRY(strategy_->Sum(mine));
  s.joined_rows += static_cast<std::uint64_t>(std::accumulate(s.rows_each.begin(), s.rows_each.end(), 0.0));
  s.report.rows = s.joined_rows;
  return {};
}

// Of what each worker does by itself and can be stopped in: kStopped for all when one of them was.
Result<void> Trainer::StopTogether(const Result<void>& mine) {
  const bool stopped = !mine.ok() && mine.error().code == Code::kStopped;
  if (!mine.ok() && !stopped) return mine;
  if (TRY(strategy_->Sum({stopped ? 1.0 : 0.0}))[0] > 0) return Stopped();
  return {};
}

// Parts of the same number of bytes have more rows where rows are short. The first epoch has counted where they stand;
// from now on parts have about the same number of rows, and what was kept of the old ones is forgotten. Held-out rows
// are told by their number within a part, so where some are, parts stay.
Result<void> Trainer::Rebalance(data::RowSource& source) {
  State& s = *state_;
  if (strategy_->reads_all() || options_.own_input || s.epoch > 0 || s.epoch + 1 >= options_.epochs) return {};
  const double imbalance = data::Imbalance(s.rows_each);
  if (imbalance <= kUneven) return {};
  const auto bytes = source.bytes();
  if (!bytes || options_.hold_out.fraction > 0) {
    if (strategy_->rank() == 0)
      env_.log.Warn("unequal shares of rows", "above_mean", imbalance, "why",
                    bytes ? "rows are held out by their place" : "this input cannot be cut at any byte");
    return {};
  }
  s.cuts = data::CutsByRows(*bytes, TRY(strategy_->Sum(source.RowsWhere())), s.rows_each.size());
  TRY(source.CutAt(s.cuts));
  s.report.imbalance = imbalance;
  return s.cache.Drop();
}

Result<void> Trainer::JoinEvaluation(Evaluation& evaluation) {
  CHECK(evaluation.Load(TRY(strategy_->Sum(evaluation.Save()))));
  return {};
}

CheckpointFiles Trainer::Files() const { return {env_.files, options_.checkpoint_path, strategy_->rank(), Workers()}; }

// Sums of all workers over this epoch so far: the evaluation's, and rows.
Result<std::vector<double>> Trainer::CountTogether() {
  const State& s = *state_;
  std::vector<double> mine = s.seen.Save();
  mine.push_back(static_cast<double>(s.report.rows - s.joined_rows));
  if (s.learned) return mine;  // they have met already
  return strategy_->Sum(mine);
}

// Can another number of workers go on with what this one leaves?
bool Trainer::Interchangeable() const { return !model_.traits().own_rule && strategy_->interchangeable(); }

// What this worker alone remembers. The parts of all workers are on the disk before rank 0's checkpoint names their
// step, so that whatever is killed when, the checkpoint that is there has its parts.
Result<void> Trainer::SavePart(std::uint64_t step) {
  State& s = *state_;
  TRY(strategy_->Settle());
  data::Metadata metadata = {
      {"format", "freshet checkpoint part 2"}, {"counts", s.Counts()}, {"step", Str(optimizer_.step())}};
  std::vector<data::Tensor> tensors;
  std::vector<std::string> storage;
  std::vector<std::uint32_t> offsets;
  strategy_->Save(tensors);
  model::AddBlocks(optimizer_.state(), model::Part::kRows, "state.", tensors);
  std::vector<double> where;
  if (!strategy_->reads_all()) {
    metadata["place"] = s.Place();
    metadata["inputs"] = options_.inputs;
    model::AddBlocks(parameters_, model::Part::kRows, "", tensors);  // with room for what others have not met
    Window::Save(s.Waiting(), offsets, tensors);
    description_.Save(metadata, tensors, storage);
    where = s.source->RowsWhere();
    tensors.push_back({"where", data::DType::kF64, {where.size()}, std::as_bytes(std::span<const double>(where))});
  }
  TRY(base::WriteAtomic(env_.files, Files().Part(step),
                        [&](base::OutputFile& file) { return data::WriteTensors(file, tensors, metadata); }));
  return strategy_->Barrier();
}

Result<void> Trainer::LoadPart(const data::TensorFile& part) {
  State& s = *state_;
  const auto unusable = [&](std::string_view why) {
    return Error{Code::kCorrupt,
                 Str(Files().Part(optimizer_.step()), ": ", why, "; use ", Option("fresh"), " to start over")};
  };
  if (!s.LoadCounts(TRY(part.Meta("counts")))) return unusable("its sums are damaged");
  optimizer_.SetStep(std::strtoull(TRY(part.Meta("step")).c_str(), nullptr, 10));
  TRY(strategy_->Load(part));
  TRY(model::LoadBlocks(part, model::Part::kRows, "state.", optimizer_.state()));
  if (strategy_->reads_all()) return {};
  const std::string before = TRY(part.Meta("inputs"));
  if (before != options_.inputs) return unusable(Str("the data has changed since it was written, from\n", before));
  s.LoadPlace(TRY(part.Meta("place")));
  TRY(s.window.Load(part));
  s.where = TRY(part.Values<double>("where"));
  description_ = TRY(data::Description::Load(part));
  return {};
}

}  // namespace freshet::train
