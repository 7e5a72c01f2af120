#pragma once

#include <optional>
#include <vector>

#include "strategy/ready_desk.h"
#include "strategy/server/server.h"

namespace freshet::strategy::server {

// Bulk workers that do not wait for the slowest of them (Chen et al., "Revisiting Distributed Synchronous SGD"), and yet
// learn from each row once. As soon as all but `backup` workers have pushed a clock, and a tenth of the time that took has
// passed, those who have share out the rows of those who have not, and push each share in parts; a shard takes what it
// has whole first, and drops the rest. Who was missing of a clock has no share of the next: the others have all of its
// rows from the start, until it has come back to where they are.
//
// Every gradient is made from the parameters of its clock: who sees in an answer that a shard has come past it knows that
// the missing have pushed all the same, and leaves their rows to them.
//
// An order of the first reaches all with what is decided of a clock (ReadyDesk::Announce), since who is late holds nobody up.
//
// Ownership, threads, failure: as Server.
class BackupServer final : public Server {
 public:
  static Result<void> Check(const StrategyOptions& options);
  static Result<void> CheckSynchrony(const StrategyOptions& options, const Synchrony& synchrony);
  BackupServer(const StrategyOptions& options, const World& world, const Synchrony& synchrony, Estate& estate);
  ~BackupServer() override { letters().End(); }

  data::Batch Share(const data::Batch& piece) const override;

 protected:
  Result<double> Work(const data::Batch& piece, const data::Batch& mine, std::span<float> scores) override;
  std::uint64_t meeting(const Due& order) override;
  Result<bool> Serve(int from, std::span<const std::byte> bytes) override;
  std::optional<base::Clock::Duration> Tick() override;
  void Deaf(const Error& why) override;

 private:
  // Which of the shares of the next piece is that worker's.
  std::optional<std::size_t> PlaceOf(int worker) const;
  data::Batch ShareOf(std::size_t place, const data::Batch& piece) const;
  PushHead Named(PushHead head, std::size_t place, std::size_t part, std::size_t parts) const;
  Result<void> DoSharesOf(const Go& go, const data::Batch& piece);

  ReadyRounds rounds_;
  std::vector<int> sharers_;  // workers that have a share of the next piece
};

}  // namespace freshet::strategy::server
