#include "strategy/elastic_strategy.h"

#include "strategy/elastic.h"
#include "strategy/elastic_gossip.h"
#include "strategy/ring/elastic_ring.h"
#include "strategy/server/elastic_server.h"

namespace freshet::strategy {

Result<std::unique_ptr<ElasticStrategy>> ElasticStrategy::Make(ElasticOptions options, fabric::ElasticGroup& group,
                                                               const Learner& learner) {
  if (options.strategy.kind == "server")
    return std::unique_ptr<ElasticStrategy>(TRY(server::ElasticServer::Make(std::move(options), group, learner)));
  if (options.strategy.kind == "gossip")
    return std::unique_ptr<ElasticStrategy>(TRY(ElasticGossip::Make(std::move(options), group, learner)));
  if (options.strategy.kind == "ring")
    return std::unique_ptr<ElasticStrategy>(TRY(ring::ElasticRing::Make(std::move(options), group, learner)));
  return std::unique_ptr<ElasticStrategy>(TRY(Elastic::Make(std::move(options), group, learner)));
}

void ElasticStrategy::SetShow(Show show) {
  show_ = std::move(show);
  if (inner() != nullptr) inner()->SetShow(show_);
}

void ElasticStrategy::SetProgress(double progress) {
  progress_ = progress;
  if (inner() != nullptr) inner()->SetProgress(progress);
}

StepTimes ElasticStrategy::times() const {
  StepTimes times = before_;
  if (inner() != nullptr) times.Add(inner()->times());
  return times;
}

Strategy::World ElasticStrategy::World() const {
  return {*collectives_,  learner_.model, learner_.parameters, learner_.optimizer, learner_.memory,
          learner_.clock, learner_.trace, learner_.at,         learner_.panel};
}

void ElasticStrategy::Met() {
  ++met_;
  met_at_ = learner_.clock.Now();
  kept_ = {};
}

Result<std::string> ElasticStrategy::Take() {
  TRY(group_.Begin());
  while (true) {
    const auto united = Unite(nullptr);
    if (united.ok() && met_ == 0)
      return Error{Code::kPeerLost, "the group changed before it could hand anything over; start this worker again"};
    if (united.ok()) return std::exchange(kept_, {});
    if (!OfMembers(united.error())) return united.error();
    EndInner(false);
    ForgetTaken();
    TRY(group_.Regroup(met_, tier(), Admits::kNobody));
  }
}

Result<bool> ElasticStrategy::Regroup(const Error& why, Admits admits) {
  if (!OfMembers(why)) return why;
  const std::uint64_t met = met_;
  for (bool in_order = admits == Admits::kAll;; in_order = false) {
    const fabric::Roster last = group_.roster();
    EndInner(in_order);
    TRY(At("regroup.begin"));
    TRY(group_.Regroup(met_, tier(), admits, in_order, left_out_));
    ++losses_;
    TRY(At("regroup.decided"));
    const auto united = Unite(&last);
    TRY(At("regroup.levelled"));
    Tell(last, united.ok() && met_ == met && admits != Admits::kAll);
    if (united.ok()) return met_ != met;
    if (hopeless_) return *hopeless_;
    if (!OfMembers(united.error())) return united.error();
  }
}

void ElasticStrategy::Tell(const fabric::Roster& before, bool repeated) {
  const auto now = learner_.clock.Now();
  GroupChange change = GroupChange::Since(before, group_, left_out_);
  change.step = learner_.optimizer.step();
  change.repeated = repeated ? 1 : 0;
  change.seconds = base::Seconds(now - met_at_);
  Describe(change);
  history_.Add(change, left_out_ && !group_.roster().Has(*left_out_));
  if (learner_.trace != nullptr)
    learner_.trace->Add("membership", base::Trace::kTraining, met_at_, now,
                        {.step = change.step, .note = change.ToText()});
  if (options_.changed) options_.changed(change);
}

}  // namespace freshet::strategy
