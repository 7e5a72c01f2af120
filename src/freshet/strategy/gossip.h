#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/random.h"
#include "strategy/averager.h"
#include "strategy/local.h"
#include "strategy/own_pace.h"
#include "strategy/passage.h"

namespace freshet::strategy {

// What a member that gossips has from one time that all meet to the next, whoever is lost meanwhile. Workers keep the
// numbers they had when all met; which ranks they have changes with the group.
//
// Where losses are survived (`keeps`), a worker's share of the pieces is learned from in their order, by itself or by who
// goes on in its place. What was learned from a share up to some piece is heard by whom it has come to, by letters of that
// worker or of others who had heard it; and pieces are kept until all that was learned from them is.
struct GossipWork : Passage {
  // As long as there are as many workers it goes on with what `before` had to compute with.
  static Result<std::unique_ptr<GossipWork>> Make(const StrategyOptions& options, const Learner& learner, int number,
                                                  int workers, bool keeps, std::unique_ptr<GossipWork> before);

  struct Answer {  // of an exchange in pairs
    std::uint64_t exchange = 0;
    std::vector<std::byte> letter;
  };
  struct Asked {
    int worker = 0;
    std::uint64_t exchange = 0;
  };

  // All are at this clock, and have the same.
  void MeetAt(std::uint64_t clock, std::uint64_t updates_of_piece);
  void HearAll();      // all have come to the mean of all
  void ForgetHeard();  // pieces that nobody will have to learn from again

  const int number;   // of this member, as a worker
  const int workers;  // that there were when all met
  const bool keeps;
  Local local;
  base::Random random;
  bool begun = false;
  double weight = 1;                      // of all workers they add up to their number, with what is on its way
  std::uint64_t updates = 0;              // that what it has has seen
  std::vector<int> numbers = {};          // workers, by rank
  std::set<int> shares = {};              // that it learns from
  std::vector<std::uint64_t> heard = {};  // by share: the clock up to which that is in what it has
  std::uint64_t exchanges = 0;            // that it began
  std::optional<Asked> asked = {};        // who has not answered yet
  std::map<int, Answer> answers = {};     // by worker: those that may not have come
};

// Gossip: no sum, and nobody whom all wait for (gossip.cc).
//
// Ownership: borrows the work, which outlives it. Threads: as Strategy. Failure: the fabric's.
class Gossip final : public OwnPace {
 public:
  static Result<void> Check(const StrategyOptions& options, const Learner& learner);
  // In a group that ends with its first loss.
  static Result<std::unique_ptr<Gossip>> Make(const StrategyOptions& options, const World& world);
  // `neighbours`: ranks that it may write to.
  Gossip(const StrategyOptions& options, const World& world, GossipWork& work, std::vector<int> neighbours);

  std::size_t piece() const override;
  data::Batch Share(const data::Batch& piece) const override;
  void SetShow(Show show) override { show_ = std::move(show); }
  Result<void> Settle() override;
  // In another group, with what is left of the work: says again what may not have come.
  Result<void> GoOn();

 protected:
  Result<void> Begin() override;
  Result<double> Work(const data::Batch& piece, const data::Batch& mine, std::span<float> scores) override;
  Result<void> OnLetter(int from, std::span<const std::byte> bytes) override;
  std::uint64_t clock() const override { return work_.clock(); }
  std::uint64_t furthest() const override;
  bool gathers() const override { return work_.keeps; }
  Result<void> Rest() override { return CatchUp(); }

 private:
  struct Head;  // of a letter

  Result<void> At(std::string_view place) const { return world_.at ? world_.at(place) : Result<void>(); }
  data::Batch ShareOf(int worker, const data::Batch& piece) const;
  Result<double> LearnFrom(int share, const data::Batch& mine, std::span<float> scores);
  Result<void> LearnFor(int worker, const data::Batch& piece);
  // Learns from what is left to others' shares of the pieces that it has passed.
  Result<void> CatchUp();
  void ByWeight(const std::vector<float>& before);
  Result<void> Write();

  std::vector<float> Packed() const;
  std::vector<std::byte> Letter(Head head, const std::vector<float>& floats) const;
  Result<Head> HeadOf(std::span<const std::byte> bytes) const;
  Result<std::span<const float>> FloatsOf(const Head& head, std::span<const std::byte> bytes);
  template <class Each>
  void Merge(std::span<const float> theirs, const Each& each);
  Result<void> Answer(int from, const Head& head, std::span<const float> theirs);
  Result<void> TellTaken(int to, std::uint64_t exchange);
  Result<bool> AnybodyIsApart();
  Result<void> TakeMean();

  std::unique_ptr<GossipWork> own_work_;  // where nobody else has it
  GossipWork& work_;
  const std::vector<int> neighbours_;
  Averager averager_;
  Show show_;
  int visitors_ = 0;                                  // since the last step
  std::vector<std::uint64_t> sent_, came_, written_;  // letters, by rank
  std::vector<std::uint64_t> sizes_, theirs_heard_;  // of the letter that is read: floats of each block; what was heard
  std::vector<float> scores_of_others_;
};

}  // namespace freshet::strategy
