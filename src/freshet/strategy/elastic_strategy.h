#pragma once

#include <functional>
#include <memory>

#include "fabric/membership/elastic_group.h"
#include "strategy/group_change.h"
#include "strategy/strategy.h"

namespace freshet::strategy {

struct ElasticOptions {
  StrategyOptions strategy = {};
  fabric::Collectives::Options how = {};
  bool comes = false;  // into a group that trains already
  // Who takes so many times as long as the others (their median) for so many seconds in a row is left out, where
  // enough are left; 0: nobody is.
  double evict_factor = 0, evict_seconds = 10;
  std::uint64_t copy_every = 16;  // steps, after which what a member alone remembers is copied to the next; 0: never
  std::function<void(const GroupChange&)> changed = {};  // told on every member
};

// A strategy whose members may come and go: by steps that all take together (elastic.h), or with a parameter server
// (server/elastic_server.h). Every time members meet is counted: after a loss, those who had not finished a meeting that
// others had get what came of it, and no one does anything twice.
class ElasticStrategy : public Strategy {
 public:
  // By options.strategy.kind. Begins in the group, but for who comes. kInvalid for options under which a loss could not be
  // survived. Borrows group and learner, which outlive it.
  static Result<std::unique_ptr<ElasticStrategy>> Make(ElasticOptions options, fabric::ElasticGroup& group,
                                                       const Learner& learner);

  bool changes() const override { return true; }
  // Anything that members do together, until it was done: by this member, or by all others, who then have what came of it.
  virtual Result<void> Together(const std::function<Result<void>(fabric::Collectives& collectives)>& meeting) = 0;
  virtual std::uint64_t losses() const = 0;  // how often it went on in another generation
  virtual const GroupHistory& history() const = 0;
};

// Is that an error of a group that has lost somebody?
inline bool OfMembers(const Error& why) { return why.code == Code::kPeerLost || why.code == Code::kTimeout; }

}  // namespace freshet::strategy
