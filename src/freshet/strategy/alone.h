#pragma once

#include <functional>

#include "strategy/local.h"
#include "strategy/strategy.h"

namespace freshet::strategy {

// Training without others: one update from each row, in order, or one from each `batch` of them.
class Alone final : public Strategy {
 public:
  struct Options {
    std::uint64_t batch = 1;       // rows of an update
    std::uint64_t accumulate = 1;  // parts in which its gradient is computed
    int threads = 1;
    bool by_rows = true;                 // with a batch of 1: many rows in one step, as many as are a moment's work
    std::function<bool()> goes_on = {};  // asked within a long update of several rows; false: it is given up
  };
  static Result<std::unique_ptr<Alone>> Make(const Options& options, const Learner& learner);

  bool alone() const override { return true; }
  // Ratings are met in the order in which members of a ring meet them (strategy/walk.h).
  bool interchangeable() const override { return options_.batch > 1 || learner_.model.ratings() != nullptr; }
  std::size_t piece() const override { return static_cast<std::size_t>(options_.batch); }
  std::size_t EndOfPiece(const data::Batch& rows, std::size_t begin) const override;
  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override;

  // What is asked is agreed on at once.
  void Ask(bool stop, bool save) override {
    stop_ = stop;
    save_ = save;
  }
  bool stop_agreed() const override { return stop_; }
  bool save_agreed() const override { return save_; }
  void Forget() override { stop_ = save_ = false; }
  void SetProgress(double progress) override { learner_.optimizer.SetProgress(progress); }

 private:
  Alone(const Options& options, const Learner& learner, Local local);

  const Options options_;
  const Learner learner_;
  Local local_;
  bool stop_ = false, save_ = false;
};

}  // namespace freshet::strategy
