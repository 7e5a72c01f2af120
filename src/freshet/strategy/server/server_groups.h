#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "strategy/group_plan.h"
#include "strategy/server/group.h"
#include "strategy/server/server.h"

namespace freshet::strategy::server {

// Groups of workers that all-reduce their gradients, each of which is one worker of a parameter server (after Mamidala et
// al., "MXNET-MPI"): within a group all take every step together, and groups drift apart as far as the synchrony lets them.
// The first of a group works with the servers, and the others get what it has read. Servers are the leaders, or the last
// members, which have no rows.
//
// A follower does what its leader is told to: after each piece of rows it hears which order is followed now, and which piece
// is the group's next, where those are given out one by one.
//
// Ownership, threads, failure: as Strategy.
class ServerGroups final : public Strategy {
 public:
  static Result<StrategyPtr> Make(const StrategyOptions& options, const World& world);

  int rank() const override { return world_.collectives.fabric().rank(); }
  int size() const override { return world_.collectives.fabric().size(); }
  bool has_rows() const override { return rank() < readers(); }
  int readers() const override { return size() - options_.servers; }
  bool same_place() const override { return false; }

  std::size_t piece() const override;
  data::Batch Share(const data::Batch& piece) const override;
  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override;
  Result<bool> StepDry() override;
  Result<void> Settle() override;

  void Ask(bool stop, bool save) override;
  bool stop_agreed() const override { return agreed() == OwnPace::Order::kStop; }
  bool save_agreed() const override { return agreed() == OwnPace::Order::kSave; }
  void Forget() override;
  void SetProgress(double progress) override;
  void SetShow(Show show) override;

  Result<std::vector<double>> Sum(const std::vector<double>& mine) override;
  Result<void> Barrier() override { return world_.collectives.Barrier(); }

  StepTimes times() const override;
  void CountRead(base::Clock::Duration time) override;
  std::optional<Report> report() override;

  void Save(std::vector<data::Tensor>& tensors) const override;
  Result<void> Load(const data::TensorFile& file) override;

 private:
  ServerGroups(const StrategyOptions& options, const World& world, GroupPlan plan);
  Result<void> Start();
  std::optional<OwnPace::Order> agreed() const { return server_ != nullptr ? server_->agreed() : agreed_; }
  bool leads() const { return server_ != nullptr && group_ != nullptr; }
  Result<void> TellWhereWeAre(bool ended);
  Result<double> FollowGradient(const Group::Word& word, const data::Batch& piece, const data::Batch& mine,
                                std::span<float> scores);
  void TakeWord(const Group::Word& word);
  // The group's rows of a piece, as a follower knows them.
  data::Batch RowsOfGroup(const data::Batch& piece) const;

  const StrategyOptions options_;
  const World world_;
  const GroupPlan plan_;
  std::unique_ptr<Group> group_;                             // of who has rows
  std::unique_ptr<fabric::Subset> served_;                   // leaders and servers
  std::unique_ptr<fabric::Collectives> served_collectives_;  // theirs
  std::unique_ptr<Server> server_;                           // theirs; ends before what it sums by

  // Of a follower.
  std::optional<optimize::Gradient> gradient_;
  model::Workspace workspace_;
  std::optional<OwnPace::Order> agreed_;
  bool stop_wanted_ = false;
  std::optional<std::uint64_t> ticket_;  // the group's next piece, where they are given out
  std::uint64_t passed_ = 0;             // pieces of this epoch
  StepTimes times_;
  const std::uint64_t sent_before_, shared_before_;  // bytes
  mutable std::vector<std::int64_t> saved_;
};

}  // namespace freshet::strategy::server
