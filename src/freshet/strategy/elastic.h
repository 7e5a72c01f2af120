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
//
// Ownership: borrows group and learner, which outlive it. Threads: as Strategy.
// Failure:   as ElasticGroup's, when this member cannot go on.
class Elastic final : public ElasticStrategy {
 public:
  using Options = ElasticOptions;
  // Begins in the group, but for who comes. kInvalid for options under which members remember what others do not.
  static Result<std::unique_ptr<Elastic>> Make(Options options, fabric::ElasticGroup& group, const Learner& learner);

  int rank() const override { return group_.rank(); }
  int size() const override { return static_cast<int>(group_.roster().seats.size()); }
  bool reads_all() const override { return options_.strategy.whole; }
  bool interchangeable() const override { return true; }
  std::uint64_t generation() const override { return group_.roster().generation; }

  std::size_t piece() const override { return inner_->piece(); }
  std::size_t piece_of_all() const override { return inner_->piece_of_all(); }
  std::size_t rows_of_step() const override { return rows_made_; }
  data::Batch Share(const data::Batch& piece) const override { return inner_->Share(piece); }
  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override;
  Result<std::optional<double>> Recover(const Error& why, const data::Batch& mine, std::span<float> scores) override;
  std::size_t given_up() const override { return last_.given_up; }
  Result<bool> StepDry() override;
  void SetShow(Show show) override;
  Result<void> Settle() override;

  void Ask(bool stop, bool save) override;
  bool stop_agreed() const override { return last_.stop != 0; }
  bool save_agreed() const override { return last_.save != 0; }
  void Forget() override { last_.stop = last_.save = 0; }
  bool admission_agreed() const override { return last_.admit != 0 || slow_one_.has_value(); }
  void SetGive(Give give) override { give_ = std::move(give); }
  Result<void> Admit() override;
  bool left_alone() const override { return group_.too_few(); }
  bool comes() const override { return met_ == 0; }
  Result<std::string> Take() override;
  void SetProgress(double progress) override;

  Result<std::vector<double>> Sum(const std::vector<double>& mine) override;
  Result<void> Barrier() override;
  Result<void> Together(const std::function<Result<void>(fabric::Collectives& collectives)>& meeting) override;

  StepTimes times() const override;
  void CountRead(base::Clock::Duration time) override { inner_->CountRead(time); }
  std::string algorithms() const override { return inner_ == nullptr ? "" : inner_->algorithms(); }

  Result<void> Collect() override;
  void Save(std::vector<data::Tensor>& tensors) const override;
  Result<void> Load(const data::TensorFile& file) override { return inner_->Load(file); }
  Result<void> LoadShared(const data::TensorFile& file) override { return inner_->LoadShared(file); }

  std::uint64_t losses() const override { return losses_; }
  const GroupHistory& history() const override { return history_; }

 private:
  // What came of the last meeting.
  struct Outcome {
    std::uint64_t updated = 0, stop = 0, save = 0, admit = 0;
    std::uint64_t sums = 0;      // how many numbers were summed
    std::uint64_t given_up = 0;  // rows
    std::uint64_t rows = 0;      // of all members, in a step
    std::uint64_t dry = 0;       // nobody had any
  };
  Elastic(Options options, fabric::ElasticGroup& group, const Learner& learner)
      : options_(std::move(options)), group_(group), learner_(learner) {}

  Result<void> MakeInner();
  void EndInner(bool in_order);
  // What a lost neighbour remembered goes on with this member.
  Result<void> Inherit(const fabric::Roster& before);
  Result<void> At(std::string_view place) const { return learner_.at ? learner_.at(place) : Result<void>(); }
  void Met();
  // Goes on with others, in another generation. True: they had finished the meeting in which this member was, and it has
  // what came of that. `before` is called before that replaces what it has.
  using Admits = fabric::Membership::Admits;
  Result<bool> Regroup(const Error& why, Admits admits, const std::function<void()>& before);
  // All have the same again, in a generation that has just begun.
  Result<void> Level(const std::function<void()>& before);
  Result<void> ShareOutcome(int from, std::uint64_t met, bool behind, const std::function<void()>& before);
  double LossOf(const data::Batch& mine, std::span<float> scores) const;
  Result<void> HandOver(int from);
  void Tell(const fabric::Roster& before, bool repeated);
  void WatchSlow();
  Result<void> Salvage(std::size_t mine);
  std::string EncodeState() const;
  Result<void> AdoptState(std::string_view bytes);

  Options options_;
  fabric::ElasticGroup& group_;
  const Learner learner_;
  std::unique_ptr<fabric::Collectives> collectives_;
  SynchronousPtr inner_;  // of this generation
  std::string carried_;   // what that of the last remembered
  NeighbourCopies copies_;
  std::optional<data::TensorFile> collected_;  // what all remember
  // Of the step that failed, if it is not to be made again: this member's own part was done, of so many rows of all.
  std::optional<double> own_part_;
  double rows_of_step_ = 0;
  std::size_t rows_made_ = 0;           // of the last step, if it was made
  bool everyone_dry_ = false;           // likewise
  std::uint64_t met_ = 0, losses_ = 0;  // 0 met: it has nothing yet
  GroupHistory history_;
  Outcome last_;
  std::vector<double> slow_for_;              // by rank: seconds in a row
  std::optional<fabric::MemberId> slow_one_;  // who is to be left out; the same for all
  std::optional<fabric::MemberId> left_out_;  // of the last change
  std::vector<double> sums_;
  bool ask_stop_ = false, ask_save_ = false;
  std::uint64_t agreed_in_ = 0;  // the generation that agreed to let somebody in
  Give give_;
  Show show_;
  std::uint64_t done_before_ = 0;  // steps that this member has not come to yet, and has what came of them
  bool gives_ = false;             // this member stands between two steps
  std::string kept_;               // what was given, until all have met again
  double progress_ = 0;
  base::Clock::Duration met_at_{0};
  StepTimes before_;  // of earlier generations
};

}  // namespace freshet::strategy
