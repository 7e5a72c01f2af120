// What a trainer does as one of several workers.

#include <numeric>

#include "model/model_file.h"
#include "train/trainer_state.h"

namespace freshet::train {

void Trainer::SetProgress(double progress) {
  state_->progress = progress;
  if (options_.strategy == nullptr)
    optimizer_.SetProgress(progress);
  else
    options_.strategy->SetProgress(progress);
}

// Rows that belong to one step.
std::size_t Trainer::StepRows() const {
  return options_.strategy == nullptr ? static_cast<std::size_t>(options_.batch) : options_.strategy->piece();
}

// The end of an epoch: all have the same parameters, and know what all have seen.
Result<void> Trainer::Join() {
  if (options_.strategy == nullptr) return {};
  State& s = *state_;
  for (bool dry = ReadsAll(); !dry;) {
    Ask();
    dry = TRY(options_.strategy->StepDry());
    s.wanted = env_.clock.Now();
    TRY(AfterUpdate());
  }
  TRY(options_.strategy->Settle());
  TRY(JoinEvaluation(s.seen));
  std::vector<double> mine(static_cast<std::size_t>(options_.strategy->size()), 0);
  mine[static_cast<std::size_t>(options_.strategy->rank())] = static_cast<double>(s.report.rows - s.joined_rows);
  s.rows_each = TRY(options_.strategy->Sum(mine));
  s.joined_rows += static_cast<std::uint64_t>(std::accumulate(s.rows_each.begin(), s.rows_each.end(), 0.0));
  s.report.rows = s.joined_rows;
  return {};
}

// Of what each worker does by itself and can be stopped in: kStopped for all when one of them was.
Result<void> Trainer::StopTogether(const Result<void>& mine) {
  const bool stopped = !mine.ok() && mine.error().code == Code::kStopped;
  if (!mine.ok() && !stopped) return mine;
  const bool any = options_.strategy == nullptr ? stopped : TRY(options_.strategy->Sum({stopped ? 1.0 : 0.0}))[0] > 0;
  if (any) return Stopped();
  return {};
}

// Parts of the same number of bytes have more rows where rows are short. The first epoch has counted where they stand;
// from now on parts have about the same number of rows, and what was kept of the old ones is forgotten. Held-out rows
// are told by their number within a part, so where some are, parts stay.
Result<void> Trainer::Rebalance(data::RowSource& source) {
  State& s = *state_;
  if (ReadsAll() || options_.own_input || s.epoch > 0 || s.epoch + 1 >= options_.epochs) return {};
  const double imbalance = data::Imbalance(s.rows_each);
  if (imbalance <= kUneven) return {};
  const auto bytes = source.bytes();
  if (!bytes || options_.hold_out.fraction > 0) {
    if (options_.strategy->rank() == 0)
      env_.log.Warn("unequal shares of rows", "above_mean", imbalance, "why",
                    bytes ? "rows are held out by their place" : "this input cannot be cut at any byte");
    return {};
  }
  s.cuts = data::CutsByRows(*bytes, TRY(options_.strategy->Sum(source.RowsWhere())), s.rows_each.size());
  TRY(source.CutAt(s.cuts));
  s.report.imbalance = imbalance;
  if (s.cache != nullptr) {
    s.cache = nullptr;
    TRY(env_.files.Remove(s.cache_path));
  }
  return {};
}

Result<void> Trainer::JoinEvaluation(Evaluation& evaluation) {
  CHECK(evaluation.Load(TRY(options_.strategy->Sum(evaluation.Save()))));
  return {};
}

// Where a worker's own file lies beside one of rank 0.
std::string Trainer::RankPath(const std::string& path) const {
  const int rank = options_.strategy == nullptr ? 0 : options_.strategy->rank();
  return rank == 0 ? path : Str(path, ".rank", rank);
}

std::string Trainer::PartPath(std::uint64_t step) const {
  return Str(options_.checkpoint_path, ".rank", options_.strategy->rank(), ".step", step);
}

// Sums of all workers over this epoch so far: the evaluation's, and rows.
Result<std::vector<double>> Trainer::CountTogether() {
  const State& s = *state_;
  std::vector<double> mine = s.seen.Save();
  mine.push_back(static_cast<double>(s.report.rows - s.joined_rows));
  if (options_.strategy == nullptr || s.learned) return mine;  // they have met already
  return options_.strategy->Sum(mine);
}

// Does no worker remember anything that the others do not?
bool Trainer::Interchangeable() const {
  if (model_.traits().own_rule) return false;
  if (options_.strategy == nullptr) return options_.batch > 1;
  const strategy::StrategyOptions& how = options_.strategy->options();
  return how.kind == "allreduce" && how.codec == "none" && how.whole;
}

// What this worker alone remembers. The parts of all workers are on the disk before rank 0's checkpoint names their
// step, so that whatever is killed when, the checkpoint that is there has its parts.
Result<void> Trainer::SavePart(std::uint64_t step) {
  State& s = *state_;
  TRY(options_.strategy->Settle());
  data::Metadata metadata = {
      {"format", "freshet checkpoint part 2"}, {"counts", s.Counts()}, {"step", Str(optimizer_.step())}};
  std::vector<data::Tensor> tensors;
  std::vector<std::string> storage;
  std::vector<std::uint32_t> offsets;
  options_.strategy->Save(tensors);
  model::AddBlocks(optimizer_.state(), model::Part::kRows, "state.", tensors);
  std::vector<double> where;
  if (!ReadsAll()) {
    metadata["place"] = s.Place();
    metadata["inputs"] = options_.inputs;
    model::AddBlocks(parameters_, model::Part::kRows, "", tensors);  // with room for what others have not met
    Window::Save(s.Waiting(), offsets, tensors);
    description_.Save(metadata, tensors, storage);
    where = s.source->RowsWhere();
    tensors.push_back({"where", data::DType::kF64, {where.size()}, std::as_bytes(std::span<const double>(where))});
  }
  TRY(base::WriteAtomic(env_.files, PartPath(step),
                        [&](base::OutputFile& file) { return data::WriteTensors(file, tensors, metadata); }));
  return options_.strategy->Barrier();
}

Result<void> Trainer::LoadPart(const data::TensorFile& part) {
  State& s = *state_;
  const auto unusable = [&](std::string_view why) {
    return Error{Code::kCorrupt, Str(PartPath(optimizer_.step()), ": ", why, "; use --fresh to start over")};
  };
  if (!s.LoadCounts(TRY(part.Meta("counts")))) return unusable("its sums are damaged");
  optimizer_.SetStep(std::strtoull(TRY(part.Meta("step")).c_str(), nullptr, 10));
  TRY(options_.strategy->Load(part));
  TRY(model::LoadBlocks(part, model::Part::kRows, "state.", optimizer_.state()));
  if (ReadsAll()) return {};
  const std::string before = TRY(part.Meta("inputs"));
  if (before != options_.inputs) return unusable(Str("the data has changed since it was written, from\n", before));
  s.LoadPlace(TRY(part.Meta("place")));
  TRY(s.window.Load(part));
  s.where = TRY(part.Values<double>("where"));
  description_ = TRY(data::Description::Load(part));
  return {};
}

}  // namespace freshet::train
