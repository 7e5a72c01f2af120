#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "strategy/elastic_strategy.h"
#include "strategy/neighbour_copies.h"
#include "strategy/synchronous.h"

namespace freshet::strategy {

// Steps in a group that outlives its members: when one is lost, the others make the step anew that they were in (of
// averages, all since the last), and nothing of the model is lost, since all have the same. A step is a meeting. Who comes
// is let in between two steps, and given all that the others have.
//
// A sum over members is one over those who are there: what the lost had counted for themselves is not in it.
class Elastic final : public ElasticStrategy {
 public:
  using Options = ElasticOptions;
  // Begins in the group, but for who comes. kInvalid for options under which members remember what others do not.
  static Result<std::unique_ptr<Elastic>> Make(Options options, fabric::ElasticGroup& group, const Learner& learner);

  bool reads_all() const override { return options_.strategy.whole; }

  std::size_t piece_of_all() const override { return inner_->piece_of_all(); }
  std::size_t rows_of_step() const override { return rows_made_; }
  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override;
  Result<std::optional<double>> Recover(const Error& why, const data::Batch& mine, std::span<float> scores) override;
  std::size_t given_up() const override { return last_.given_up; }
  Result<bool> StepDry() override;
  Result<void> Settle() override;

  void Ask(bool stop, bool save) override;
  bool stop_agreed() const override { return last_.stop != 0; }
  bool save_agreed() const override { return last_.save != 0; }
  void Forget() override { last_.stop = last_.save = 0; }
  bool admission_agreed() const override { return last_.admit != 0 || slow_one_.has_value(); }
  Result<void> Admit() override;
  bool left_alone() const override { return group_.too_few(); }

  Result<std::vector<double>> Sum(const std::vector<double>& mine) override;
  Result<void> Barrier() override;
  Result<void> Together(const std::function<Result<void>(fabric::Collectives& collectives)>& meeting) override;

  std::string algorithms() const override { return inner_ == nullptr ? "" : inner_->algorithms(); }

  Result<void> Collect() override;
  void Save(std::vector<data::Tensor>& tensors) const override;
  Result<void> Load(const data::TensorFile& file) override { return inner_->Load(file); }
  Result<void> LoadShared(const data::TensorFile& file) override { return inner_->LoadShared(file); }

 private:
  // What came of the last meeting.
  struct Outcome {
    std::uint64_t updated = 0, stop = 0, save = 0, admit = 0;
    std::uint64_t sums = 0;      // how many numbers were summed
    std::uint64_t given_up = 0;  // rows
    std::uint64_t rows = 0;      // of all members, in a step
    std::uint64_t dry = 0;       // nobody had any
  };
  using ElasticStrategy::ElasticStrategy;

  Strategy* inner() const override { return inner_.get(); }
  Result<void> MakeInner();
  void EndInner(bool in_order) override;
  Result<void> Unite(const fabric::Roster* before) override;
  // What a lost neighbour remembered goes on with this member.
  Result<void> Inherit(const fabric::Roster& before);
  // All have the same again, in a generation that has just begun.
  Result<void> Level();
  Result<void> ShareOutcome(int from, std::uint64_t met, bool behind);
  double LossOf(const data::Batch& mine, std::span<float> scores) const;
  Result<void> HandOver(int from);
  void WatchSlow();
  Result<void> Salvage(std::size_t mine);

  SynchronousPtr inner_;  // of this generation
  std::string carried_;   // what that of the last remembered
  NeighbourCopies copies_;
  std::optional<data::TensorFile> collected_;  // what all remember
  // Of the step that failed, if it is not to be made again: this member's own part was done, of so many rows of all.
  std::optional<double> own_part_;
  double rows_of_step_ = 0;
  std::size_t rows_made_ = 0;              // of the last step, if it was made
  bool everyone_dry_ = false;              // likewise
  std::function<void()> before_replaced_;  // called before what others have done is in place of what this one has
  Outcome last_;
  std::vector<double> slow_for_;              // by rank: seconds in a row
  std::optional<fabric::MemberId> slow_one_;  // who is to be left out; the same for all
  std::uint64_t agreed_in_ = 0;               // the generation that agreed to let somebody in
  std::uint64_t done_before_ = 0;             // steps that this member has not come to yet, and has what came of them
};

}  // namespace freshet::strategy
