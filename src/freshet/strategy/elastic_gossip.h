#pragma once

#include <memory>
#include <vector>

#include "strategy/elastic_pace.h"
#include "strategy/gossip.h"
#include "strategy/neighbours.h"

namespace freshet::strategy {

// Gossip in a group that outlives its members: those who are left go on from what each has. What a lost member had learned
// and somebody has heard is with that one, who goes on with its share of the rows from there: so that of every row all who
// are left have learned once. What it has not heard of is learned again, and what letters were on their way is settled:
//
// - pairs:    what both of those who are left move by still adds up to nothing: an answer that has not come is sent again.
//             A loss costs half a way: that which somebody has gone towards the lost, who did not come to meet it.
// - push-sum: weights of those who are left are scaled to add up to their number again. A share that was on its way has
//             the parameters that its sender still has, so that the mean is that of who is left, by the weights they have.
// - walk:     a visitor that was on its way is lost, but not who sent it.
//
// Who goes on in a graph as it is written keeps the vertex it has; who comes gets the first that nobody is. Where the graph
// falls apart without the lost its pieces are connected, and that is told.
class ElasticGossip final : public ElasticPace {
 public:
  static Result<std::unique_ptr<ElasticGossip>> Make(ElasticOptions options, fabric::ElasticGroup& group,
                                                     const Learner& learner);
  ~ElasticGossip() override { inner_ = nullptr; }  // which takes letters in to its work until then

 private:
  struct Beside;  // what a report tells of who gossips
  using ElasticPace::ElasticPace;

  Passage* work() override { return work_.get(); }
  bool begun() const override { return work_->begun; }
  void Tell(Report& mine) const override;
  Result<void> Hear(const std::vector<Report>& reports) override;
  void ForgetWork() override { work_ = nullptr; }
  Result<void> NewWork(int rank, int size, std::uint64_t clock) override;
  Result<void> TakeOver(const std::vector<Report>& reports) override;
  Result<std::unique_ptr<OwnPace>> NewInner() override;
  Result<void> GoOn() override { return static_cast<Gossip&>(*inner_).GoOn(); }
  std::uint64_t settled_clock() const override { return work_->clock(); }
  void Describe(GroupChange& change) override;
  Result<void> MeetNeighbours(const std::vector<int>& vertices);
  void ShareOut(const std::vector<Report>& reports, const std::vector<Beside>& besides);

  std::unique_ptr<GossipWork> work_;
  std::uint64_t vertex_ = 0;  // of the graph
  Remaining neighbours_;      // in this generation
};

}  // namespace freshet::strategy
