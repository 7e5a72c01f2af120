#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "fabric/codecs/codec.h"
#include "strategy/passage.h"
#include "strategy/server/copy.h"
#include "strategy/server/placement.h"
#include "strategy/server/shard.h"
#include "strategy/strategy.h"

namespace freshet::strategy::server {

// What a member of a parameter server has from one time that all meet to the next, whoever is lost meanwhile: its copy of
// the parameters, its shards, and for which workers it does the rows of an update. Workers and shards keep the numbers
// they had when all met; which ranks stand for them changes with the group.
//
// Where losses are survived (`keeps`), a shard is with several members in a chain, pushes are kept until servers say that
// they have them, and rows that somebody may have to learn from instead of another.
//
// Threads: one, but for the shards, which are the server's to guard.
struct Estate : Passage {
  // Who works and who serves, by ranks; all do both, or each one of them.
  struct Roles {
    std::vector<int> working, serving;
    // The last `servers` serve, the first ones work; all do both where that is 0.
    static Roles Of(int servers, int size);
    // Those who have something, the first of whom answers for it, and who is to have it, too: others who serve, in turn from
    // the first, and workers where they do not suffice.
    std::vector<int> Chain(std::vector<int> holders, int replicas) const;
  };
  Estate(const StrategyOptions& options, const Learner& learner, const Synchrony& synchrony,
         optimize::Gradient own_gradient, fabric::Codec* codec, const Roles& roles, int own_rank, bool keeps,
         std::unique_ptr<NearRows> near = nullptr);
  Estate(const Estate&) = delete;
  Estate& operator=(const Estate&) = delete;

  struct Kept {
    std::uint64_t clock = 0;
    std::vector<std::byte> letter;
  };
  // The rows of one worker's part of every update.
  struct Share {
    std::uint64_t clock = 0;              // its updates
    std::vector<std::deque<Kept>> kept;   // pushes, by shard
    std::vector<std::uint64_t> had = {};  // by shard: updates of who was lost, that it had
  };
  struct Holding {
    std::unique_ptr<Shard> shard;
    std::uint64_t letters = 0;  // that it has taken in
    std::uint64_t shown = 0;    // of its updates, on the panel
  };

  // Those that are held and not there yet begin with what the learner has.
  Result<void> MakeShards(const StrategyOptions& options, const Learner& learner, const Synchrony& synchrony);
  bool HasShards() const;
  // When all have met, and nothing is on its way: they go on in that one.
  void SetSynchrony(const Synchrony& synchrony);
  // All are at this clock, and have the same.
  void MeetAt(std::uint64_t clock);
  // Of all workers, when each has made so many updates: what they need not make again.
  void Forget(std::size_t shard, std::uint64_t complete);

  const bool keeps;
  const int rank;  // of this member, when all met
  const int workers, shards;
  const int number;                      // of this member, as a worker; as many as there are: it is none
  std::vector<int> worker_at;            // rank, by worker
  std::vector<std::vector<int>> chains;  // ranks, by shard; the first one answers

  const std::unique_ptr<NearRows> near;  // what a worker has of a large model; null: there is room for all of it
  fabric::Codec* const codec;            // in whose form gradients travel; null: as they are
  optimize::Gradient gradient;
  bool ahead;  // answers are not waited for (Copy)
  Placement placement;
  Copy copy;
  std::map<int, Share> shares;      // by worker
  std::map<int, Holding> holdings;  // by shard

  std::uint64_t first_step = 0;  // of the optimizer, at clock 0

 private:
  bool MayRunAhead(const Learner& learner) const;
  bool RunsAhead(const Synchrony& synchrony, bool may) const;

  const bool may_run_ahead_;
  std::vector<std::uint64_t> complete_;  // by shard
};

}  // namespace freshet::strategy::server
