#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "strategy/elastic_pace.h"
#include "strategy/server/server.h"

namespace freshet::strategy::server {

// A parameter server in a group that outlives its members, each of which is worker and server, or so many of them only serve
// (StrategyOptions::servers). When one is lost, its shards go on with the next in their chains, which have everything that was
// answered for; its part of the rows is learned from by other workers, who make the updates that are missing.
//
// A member is what it is as long as it lives. Who comes serves where servers are missing, else it works; while nobody is left
// who only serves, workers do. Workers come first in the order of ranks: the first member always knows where all stand.
//
// Failure: as ElasticPace; kPeerLost when nobody is left of those who had a shard, or of those who work.
class ElasticServer final : public ElasticPace {
 public:
  static Result<std::unique_ptr<ElasticServer>> Make(ElasticOptions options, fabric::ElasticGroup& group,
                                                     const Learner& learner);
  ~ElasticServer() override { inner_ = nullptr; }  // which serves others from the estate until then

  bool has_rows() const override { return !serves_alone_.value_or(false); }
  int readers() const override { return static_cast<int>(RolesNow().working.size()); }
  bool all_read() const override { return options_.strategy.servers == 0; }

  void Save(std::vector<data::Tensor>& tensors) const override;
  Result<void> Load(const data::TensorFile& file) override;

 private:
  struct Beside;  // what a report tells of a server
  using Besides = std::vector<Beside>;

  ElasticServer(ElasticOptions options, const Synchrony& synchrony, fabric::ElasticGroup& group, const Learner& learner)
      : ElasticPace(std::move(options), group, learner), synchrony_(synchrony) {}

  std::uint64_t tier() const override { return has_rows() ? 0 : 1; }
  Passage* work() override { return estate_.get(); }
  bool begun() const override { return estate_->HasShards(); }
  void Tell(Report& mine) const override;
  Result<void> Hear(const std::vector<Report>& reports) override;
  void ForgetWork() override;
  Result<void> NewWork(int rank, int size, std::uint64_t clock) override;
  Result<void> TakeOver(const std::vector<Report>& reports) override;
  Result<std::unique_ptr<OwnPace>> NewInner() override;
  Result<void> GoOn() override { return server().GoOn(); }
  std::uint64_t settled_clock() const override { return server().settled_clock(); }
  void AllMet() override;  // and go on as ordered
  void Describe(GroupChange& change) override;

  Result<void> HearRoles(const Besides& besides);
  Estate::Roles RolesNow() const;
  Server& server() const { return static_cast<Server&>(*inner_); }
  Result<void> CopyShards(const Besides& besides);
  Result<std::vector<std::vector<std::uint64_t>>> GatherApplied();
  void ShareOut(const std::vector<Report>& reports, const std::vector<std::vector<std::uint64_t>>& applied);

  Synchrony synchrony_;
  std::unique_ptr<fabric::Codec> codec_;
  std::unique_ptr<Estate> estate_;
  std::optional<bool> serves_alone_;      // this member; it is not known yet of who comes
  std::vector<bool> serve_alone_;         // those who do, by rank
  std::vector<std::vector<int>> chains_;  // as they are being made
  std::uint64_t first_step_ = 0;          // of the optimizer, at clock 0
  mutable std::uint64_t saved_clock_ = 0;
  mutable std::array<std::uint64_t, 3> saved_synchrony_{};
};

}  // namespace freshet::strategy::server
