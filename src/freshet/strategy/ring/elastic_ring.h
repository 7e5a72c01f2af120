#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "strategy/elastic_strategy.h"
#include "strategy/ring/kept_steps.h"
#include "strategy/ring/part_copies.h"
#include "strategy/ring/parted.h"

namespace freshet::strategy::ring {

// A ring of members that each hold a part of the model, which goes on when members are lost. Every few updates, at a point,
// each sends what it holds to the member after it (PartCopies), and rows of the steps since are kept. After a loss those who
// are left find the newest point of which they have every part, their own or a copy, bring these together, cut the model
// anew over who is there, and make the steps since again. Since all are handed all rows, the rows of an update do not depend
// on who is there, and the model is the one that nothing would have disturbed.
//
// The learner's parameters are the whole model as it was at one update, the *base*: where all began, when all last met (to
// end an epoch, to save, to let somebody in), or that from which they went on after a loss. As long as the steps since are
// kept, whoever has it can go on from there, however many are lost.
//
// Two neighbours lost at once, with all copies of one's part, end the job: kPeerLost, and the last checkpoint has
// everything.
class ElasticRing final : public ElasticStrategy {
 public:
  // kInvalid for options under which a loss could not be survived.
  static Result<std::unique_ptr<ElasticRing>> Make(ElasticOptions options, fabric::ElasticGroup& group,
                                                   const Learner& learner);

  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override;
  Result<std::optional<double>> Recover(const Error& why, const data::Batch& mine, std::span<float> scores) override;
  Result<void> Settle() override;
  Result<void> Collect() override { return Settle(); }

  void Ask(bool stop, bool save) override;
  bool stop_agreed() const override { return last_.stop; }
  bool save_agreed() const override { return last_.save; }
  bool admission_agreed() const override { return last_.admit; }
  void Forget() override { last_.stop = last_.save = false; }
  Result<void> Admit() override;

  Result<std::vector<double>> Sum(const std::vector<double>& mine) override;
  Result<void> Barrier() override;
  Result<void> Together(const std::function<Result<void>(fabric::Collectives& collectives)>& meeting) override;

  StepTimes times() const override;

 private:
  // What came of the last step.
  struct Outcome {
    bool updated = false, stop = false, save = false, admit = false;
  };
  // What a member tells the others when the group has changed. Updates are named by how many there had been.
  struct Report {
    std::uint64_t met = 0, made = 0;    // met: 0 of who comes
    std::optional<std::uint64_t> base;  // of the whole it has
    std::uint64_t from = 0;             // it can make the steps after that one again
    bool gives = false;
    Outcome last;
    std::uint64_t ring = 0, place = 0,
                  places = 0;                // the generation that its parts are of, its rank there, and how many
    std::vector<std::uint64_t> own, before;  // points of which it has its own part, and its neighbour's

    std::vector<std::uint64_t> Encode() const;
    static Result<Report> Decode(std::span<const std::uint64_t> in);
    bool Has(std::uint64_t part, std::uint64_t point) const;
  };
  using Reports = std::vector<Report>;
  // From where all go on.
  struct Point {
    std::uint64_t made = 0;
    bool whole = false;      // somebody has all of it
    std::uint64_t ring = 0;  // else the ring whose parts are there
  };
  using ElasticStrategy::ElasticStrategy;

  Strategy* inner() const override { return inner_.get(); }
  void EndInner(bool in_order) override;
  Result<void> Unite(const fabric::Roster* before) override;
  void ForgetTaken() override;
  void Describe(GroupChange& change) override;
  Result<void> MakeInner();
  Result<void> MakeInnerOrGiveUp();
  Result<void> GoOnAmongThose(const Reports& reports, const Point& point);

  Result<Reports> GatherReports();
  void CatchUp(const Report& ahead);
  static std::optional<Point> FindPoint(const Reports& reports);
  Error Hopeless() const;
  Result<void> GoBackTo(const Point& point, const Reports& reports);
  Result<void> HandOver(const Reports& reports, const Report& ahead);
  Result<void> MakeAgain(std::uint64_t after, bool points);
  Result<void> Updated(std::uint64_t made);
  Result<void> PutAll(const std::string& mine);
  Result<void> BringTogether();
  void SetBase(std::uint64_t made);
  void Settled();

  StrategyPtr inner_;
  Parted* parted_ = nullptr;  // the same
  fabric::Roster ring_;       // whose parts are kept
  PartCopies copies_;
  KeptSteps steps_;
  std::uint64_t made_ = 0;             // updates, since training began
  std::uint64_t from_ = 0;             // steps after that one are kept
  std::uint64_t point_ = 0;            // the last, or the base
  std::optional<std::uint64_t> base_;  // of the learner's parameters
  std::uint64_t base_step_ = 0;        // of the optimizer, there
  std::optional<Error> broken_;        // a copy did not come
  Outcome last_;
  std::uint64_t agreed_in_ = 0;  // the generation that agreed to let somebody in
  bool worked_ = false;    // it has done its part of the meeting it is in, and waits for the others to have done theirs
  bool settling_ = false;  // that is one after which all have the whole
  bool in_step_ = false;
  // The others had finished the step in which this member was: it owes the scores of its rows, which go there.
  std::optional<std::uint64_t> owed_;
  std::span<float> scores_;
  double loss_ = 0;
  std::uint64_t again_ = 0;  // steps that were made again after the last change
};

}  // namespace freshet::strategy::ring
