#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategy/elastic_strategy.h"
#include "strategy/server/server.h"

namespace freshet::strategy::server {

// A parameter server in a group that outlives its members, each of which is worker and server. When one is lost, its shards
// go on with the next in their chains, which have everything that was answered for; its part of the rows is learned from by
// others, who make the updates that are missing. Soon after that all meet and share out the work anew; so they do when
// somebody has come. Every piece of the rows is passed by all, so that whenever they meet they stand at the same row.
//
// Ownership: borrows group and learner, which outlive it. Threads: as Strategy.
// Failure:   as ElasticGroup's; kPeerLost when nobody is left of those who had a shard.
class ElasticServer final : public ElasticStrategy {
 public:
  static Result<std::unique_ptr<ElasticServer>> Make(ElasticOptions options, fabric::ElasticGroup& group,
                                                     const Learner& learner);

  int rank() const override { return group_.rank(); }
  int size() const override { return static_cast<int>(group_.roster().seats.size()); }
  bool interchangeable() const override { return true; }
  bool in_step() const override { return false; }
  std::uint64_t generation() const override { return group_.roster().generation; }

  std::size_t piece() const override { return inner_->piece(); }
  data::Batch Share(const data::Batch& piece) const override { return inner_->Share(piece); }
  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override;
  Result<bool> StepDry() override;
  Result<void> Settle() override;
  void SetShow(Show show) override;

  void Ask(bool stop, bool save) override;
  bool stop_agreed() const override { return agreed_ == OwnPace::Order::kStop; }
  bool save_agreed() const override { return agreed_ == OwnPace::Order::kSave; }
  bool admission_agreed() const override { return agreed_ == OwnPace::Order::kAdmit; }
  void Forget() override { agreed_.reset(); }
  void SetGive(Give give) override { give_ = std::move(give); }
  Result<void> Admit() override;
  bool comes() const override { return met_ == 0; }
  Result<std::string> Take() override;
  void SetProgress(double progress) override;

  Result<std::vector<double>> Sum(const std::vector<double>& mine) override;
  Result<void> Barrier() override;
  Result<void> Together(const std::function<Result<void>(fabric::Collectives& collectives)>& meeting) override;

  void Save(std::vector<data::Tensor>& tensors) const override;
  Result<void> Load(const data::TensorFile& file) override;
  StepTimes times() const override;
  void CountRead(base::Clock::Duration time) override { inner_->CountRead(time); }
  std::uint64_t losses() const override { return losses_; }
  const GroupHistory& history() const override { return history_; }

 private:
  using Admits = fabric::Membership::Admits;
  struct Report;  // what a member tells the others when the group has changed

  ElasticServer(ElasticOptions options, const Synchrony& synchrony, fabric::ElasticGroup& group, const Learner& learner)
      : options_(std::move(options)), synchrony_(synchrony), group_(group), learner_(learner) {}

  Result<void> At(std::string_view place) const { return learner_.at ? learner_.at(place) : Result<void>(); }
  void Met();
  Strategy::World World() const;
  // All have met: work is shared out anew, among those of that group.
  Result<void> NewEstate(int rank, int size, std::uint64_t clock);
  Result<void> MakeInner();
  void EndInner(bool in_order);

  // Goes on with others, in another generation. True: they had finished the meeting in which this member was.
  Result<bool> Regroup(const Error& why, Admits admits);
  // What is left comes together again, in a generation that has just begun.
  Result<void> Unite();
  Result<std::vector<Report>> GatherReports();
  Result<void> FinishMeeting(std::uint64_t met);
  Result<void> HandOver(const std::vector<Report>& reports);
  Result<void> TakeOver(const std::vector<Report>& reports);
  Result<void> CopyShards(const std::vector<Report>& reports);
  Result<std::vector<std::vector<std::uint64_t>>> GatherApplied();
  void ShareOut(const std::vector<Report>& reports, const std::vector<std::vector<std::uint64_t>>& applied);
  // It follows an order to meet.
  bool Meets() const { return agreed_ == OwnPace::Order::kMeet || agreed_ == OwnPace::Order::kChange; }
  void GoOnAsOrdered();
  void Tell(const fabric::Roster& before);

  const ElasticOptions options_;
  Synchrony synchrony_;
  fabric::ElasticGroup& group_;
  const Learner learner_;
  std::unique_ptr<fabric::Collectives> collectives_;
  std::unique_ptr<fabric::Codec> codec_;
  std::unique_ptr<Estate> estate_;
  std::unique_ptr<Server> inner_;  // of this generation
  OwnPace::Stand stand_;
  std::optional<OwnPace::Order> agreed_;
  std::vector<std::vector<int>> chains_;  // as they are being made

  std::uint64_t met_ = 0, losses_ = 0;  // 0 met: it has nothing yet
  bool worked_ = false;    // it has done its part of the meeting it is in, and waits for the others to have done theirs
  bool settling_ = false;  // the meeting after which work is shared out anew
  std::uint64_t settled_clock_ = 0;
  int settled_rank_ = 0, settled_size_ = 0;  // of this member and of the group, then
  bool ask_stop_ = false, ask_save_ = false, gives_ = false;
  bool share_out_wanted_ = false;  // since somebody was lost
  std::optional<Error> hopeless_;  // nobody can go on
  std::vector<double> sums_;
  Give give_;
  Show show_;
  std::string kept_;  // what was given
  mutable std::uint64_t saved_clock_ = 0;
  mutable std::array<std::uint64_t, 3> saved_synchrony_{};
  double progress_ = 0;
  base::Clock::Duration met_at_{0};
  GroupHistory history_;
  StepTimes before_;  // of earlier estates and generations
};

}  // namespace freshet::strategy::server
