#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "strategy/ring/column_moves.h"
#include "strategy/ring/handed_rows.h"
#include "strategy/ring/own_part.h"
#include "strategy/ring/parted.h"
#include "strategy/ring/partial_laps.h"
#include "strategy/strategy.h"

namespace freshet::strategy::ring {

// A member of a ring whose members each have some columns of the data: weights and factors of some features, or some
// centroids (model::Partials). What a member's parameters make of a row are a few numbers, which are merged on the way round;
// from what comes of that each computes the gradient of its own parameters and applies it. So a step sends a few numbers for
// each of its rows, whatever the size of the model, and no parameters.
//
// All are given the same rows; or (not StrategyOptions::whole) each those that it has read alone, of which it hands on what
// others need (HandedRows). Then an update is of the rows of all, in the order of ranks.
//
// With StrategyOptions::balance columns move between neighbours (ColumnMoves), by the time that members are measured to take.
//
// Parameters of the trainer's are as they were when all last met: whenever they Settle, each tells all what it has.
class Columns final : public Strategy, public Parted {
 public:
  static Result<StrategyPtr> Make(const StrategyOptions& options, const World& world);

  int rank() const override { return world_.collectives.fabric().rank(); }
  int size() const override { return world_.collectives.fabric().size(); }
  bool reads_all() const override { return options_.whole; }
  bool interchangeable() const override { return options_.whole; }  // what each has is told to all
  std::size_t piece() const override;
  std::size_t piece_of_all() const override { return options_.batch; }
  // The rows whose scores this member writes; it learns from all.
  data::Batch Share(const data::Batch& piece) const override;
  // After a stop only the sizes of features may have been learned, which is no harm to who goes on with the same rows.
  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override;
  Result<bool> StepDry() override;
  void SetShow(Show show) override { show_ = std::move(show); }
  Result<void> Settle() override;
  std::string Part() override { return own_.Encode(); }
  Result<void> Put(std::string_view part) override;
  void ScoreFrom(std::optional<std::size_t> row) override { score_from_ = row; }

  void Ask(bool stop, bool save) override {
    asked_.stop = stop;
    asked_.save = save;
  }
  void AskAdmission(bool admit) override { asked_.admit = admit; }
  bool admission_agreed() const override { return agreed_.admit; }
  bool stop_agreed() const override { return agreed_.stop; }
  bool save_agreed() const override { return agreed_.save; }
  void Forget() override { agreed_ = {}; }
  void SetProgress(double progress) override;

  Result<std::vector<double>> Sum(const std::vector<double>& mine) override;
  Result<void> Barrier() override { return world_.collectives.Barrier(); }

  // Which columns it holds, so that who goes on computes in the same order.
  void Save(std::vector<data::Tensor>& tensors) const override;
  Result<void> Load(const data::TensorFile& file) override;

  StepTimes times() const override { return times_; }
  void CountRead(base::Clock::Duration time) override { times_.read += base::Seconds(time); }

 private:
  Columns(const StrategyOptions& options, const World& world, OwnPart own);
  // The rows of a step, with this member's columns, and those whose scores it writes.
  struct Rows {
    data::Batch all;
    std::size_t first = 0, last = 0;
  };
  Result<Rows> TakeOwn(const data::Batch& piece, std::size_t mine);
  Result<Rows> Hand(const data::Batch& mine);
  Result<void> MakeRoom(std::uint64_t features);
  Result<void> AgreeOnFeatures();
  Result<void> Balance();
  Result<void> TellColumns();  // what each holds, to all
  void KeepForSaving();
  // Partials of all rows, as all members together see them.
  Result<PartialLaps::Wishes> Meet(const data::Batch& rows);
  void AddSpan(const char* name, base::Clock::Duration begin, base::Clock::Duration end);
  Result<void> At(std::string_view place) const { return world_.at ? world_.at(place) : Result<void>(); }

  const StrategyOptions options_;
  const World world_;
  const model::Partials& model_;
  OwnPart own_;
  PartialLaps laps_;
  HandedRows handed_;
  std::optional<ColumnMoves> moves_;  // where columns do
  std::vector<std::uint32_t> saved_;  // how many numbers say what each member holds, and those
  model::Workspace workspace_;
  std::vector<float> partials_;  // of the step's rows
  bool newer_ = false;           // what members have than what the trainer has
  std::optional<std::size_t> score_from_;
  PartialLaps::Wishes asked_, agreed_;
  double progress_ = 0;  // of this member
  bool dry_ = false;     // nobody had rows for the last step
  Show show_;
  StepTimes times_;
};

// For models that say what their parameters make of a row (model::Partials): linear, fm, kmeans. kInvalid for options that
// do not go with it.
Result<StrategyPtr> MakeColumns(const StrategyOptions& options, const Strategy::World& world);

}  // namespace freshet::strategy::ring
