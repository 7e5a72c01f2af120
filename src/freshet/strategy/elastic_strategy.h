#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

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
  // Steps, after which what a member alone remembers (of a ring: its part of the model) is copied to the next; 0: never.
  std::uint64_t copy_every = 16;
  std::function<void(const GroupChange&)> changed = {};  // told on every member
};

// A strategy whose members may come and go: by steps that all take together (elastic.h; ring/elastic_ring.h, whose
// members each have a part of the model), or each at its own pace (elastic_pace.h). Every time members meet is counted: after a loss, those who had not finished a meeting that others had
// get what came of it, and no one does anything twice.
//
// Ownership: borrows group and learner, which outlive it. Threads: as Strategy.
// Failure:   as ElasticGroup's, when this member cannot go on.
class ElasticStrategy : public Strategy {
 public:
  // By options.strategy.kind. Begins in the group, but for who comes. kInvalid for options under which a loss could not be
  // survived.
  static Result<std::unique_ptr<ElasticStrategy>> Make(ElasticOptions options, fabric::ElasticGroup& group,
                                                       const Learner& learner);

  int rank() const override { return group_.rank(); }
  int size() const override { return static_cast<int>(group_.roster().seats.size()); }
  bool changes() const override { return true; }
  bool interchangeable() const override { return true; }
  std::uint64_t generation() const override { return group_.roster().generation; }

  std::size_t piece() const override { return inner()->piece(); }
  data::Batch Share(const data::Batch& piece) const override { return inner()->Share(piece); }
  void SetShow(Show show) override;
  void SetProgress(double progress) override;
  void SetGive(Give give) override { give_ = std::move(give); }
  bool comes() const override { return met_ == 0; }
  Result<std::string> Take() override;

  // Anything that members do together, until it was done: by this member, or by all others, who then have what came of it.
  virtual Result<void> Together(const std::function<Result<void>(fabric::Collectives& collectives)>& meeting) = 0;

  StepTimes times() const override;
  void CountRead(base::Clock::Duration time) override { inner()->CountRead(time); }
  std::uint64_t losses() const { return losses_; }  // how often it went on in another generation
  const GroupHistory& history() const { return history_; }

 protected:
  using Admits = fabric::Membership::Admits;
  ElasticStrategy(ElasticOptions options, fabric::ElasticGroup& group, const Learner& learner)
      : options_(std::move(options)), group_(group), learner_(learner) {}

  // Members of a lower one come before those of a higher one in the next generation.
  virtual std::uint64_t tier() const { return 0; }
  // By which steps are made in this generation; null between two of them.
  virtual Strategy* inner() const = 0;
  // Leaves it. What is still on its way, of something that failed (not in order), ends first.
  virtual void EndInner(bool in_order) = 0;
  // What is left comes together again, in a generation that has just begun after that one (null: this member comes).
  virtual Result<void> Unite(const fabric::Roster* before) = 0;
  virtual void Describe(GroupChange& change) { (void)change; }  // what this strategy knows better
  virtual void ForgetTaken() {}                                 // the group has changed while this member came into it
  // Nobody can be without what this meeting began with.
  virtual void Met();

  Result<void> At(std::string_view place) const { return learner_.at ? learner_.at(place) : Result<void>(); }
  Strategy::World World() const;
  // Goes on with others, in another generation. True: they had finished the meeting in which this member was, and it
  // has what came of that.
  Result<bool> Regroup(const Error& why, Admits admits);

  ElasticOptions options_;
  fabric::ElasticGroup& group_;
  const Learner learner_;
  std::unique_ptr<fabric::Collectives> collectives_;
  std::uint64_t met_ = 0;  // 0: it has nothing yet
  Give give_;
  Show show_;
  double progress_ = 0;
  bool ask_stop_ = false, ask_save_ = false;
  bool gives_ = false;  // this member stands between two steps
  std::string kept_;    // what was given, until all have met again
  std::vector<double> sums_;
  std::optional<Error> hopeless_;             // nobody can go on
  std::optional<fabric::MemberId> left_out_;  // of the last change
  GroupHistory history_;
  base::Clock::Duration met_at_{0};
  StepTimes before_;  // of earlier generations

 private:
  void Tell(const fabric::Roster& before, bool repeated);

  std::uint64_t losses_ = 0;
};

// Is that an error of a group that has lost somebody?
inline bool OfMembers(const Error& why) { return why.code == Code::kPeerLost || why.code == Code::kTimeout; }

}  // namespace freshet::strategy
