#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "strategy/elastic_strategy.h"
#include "strategy/own_pace.h"
#include "strategy/passage.h"

namespace freshet::strategy {

// What strategies share whose members come and go and each work at their own pace. Every piece of the rows is passed by
// all, each of whom takes its share, so that whenever they meet they stand at the same row: to stop, to save, to end an
// epoch, to let somebody in. When one is lost, what it had not done of its share is done by others; soon after that all
// meet and share out the work anew.
//
// What a member has from one such meeting to the next, whoever is lost meanwhile, is its work; what it makes its steps by
// is of one generation.
class ElasticPace : public ElasticStrategy {
 public:
  bool in_step() const override { return false; }
  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override;
  Result<bool> StepDry() override;
  Result<void> Settle() override;

  void Ask(bool stop, bool save) override;
  bool stop_agreed() const override { return agreed_ == OwnPace::Order::kStop; }
  bool save_agreed() const override { return agreed_ == OwnPace::Order::kSave; }
  bool admission_agreed() const override { return agreed_ == OwnPace::Order::kAdmit; }
  void Forget() override { agreed_.reset(); }
  Result<void> Admit() override;

  Result<std::vector<double>> Sum(const std::vector<double>& mine) override;
  Result<void> Barrier() override;
  Result<void> Together(const std::function<Result<void>(fabric::Collectives& collectives)>& meeting) override;

 protected:
  using ElasticStrategy::ElasticStrategy;

  // What a member tells the others when the group has changed.
  struct Report {
    std::uint64_t met = 0, begun = 0, gives = 0, base = 0;  // met: 0 of who comes
    OwnPace::Due followed;
    std::vector<std::uint64_t> shares;  // of the rows of a piece, by number, which it learns from
    std::vector<std::uint64_t> own;     // what its strategy tells beside that

    std::vector<std::uint64_t> Encode() const;
    static Result<Report> Decode(std::span<const std::uint64_t> in);
    bool Has(int share) const;
  };
  static Error Damaged();

  // The work of this member; of who comes there is none yet.
  virtual Passage* work() = 0;
  virtual bool begun() const = 0;  // it has done some of it
  virtual void Tell(Report& mine) const = 0;
  virtual Result<void> Hear(const std::vector<Report>& reports) { return (void)reports, Result<void>(); }
  virtual void ForgetWork() = 0;
  // All have met: work is shared out anew, among those of that group.
  virtual Result<void> NewWork(int rank, int size, std::uint64_t clock) = 0;
  // In a new generation, with what is left of the work. What follows from the reports is the same for all.
  virtual Result<void> TakeOver(const std::vector<Report>& reports) = 0;
  virtual Result<std::unique_ptr<OwnPace>> NewInner() = 0;
  virtual Result<void> GoOn() = 0;                  // tells again what may not have been heard
  virtual std::uint64_t settled_clock() const = 0;  // at which all have met, by those steps
  virtual void AllMet() {}                          // all that was done before that is done

  Strategy* inner() const override { return inner_.get(); }
  // An update that was taken over is not made again: what it had come to goes on.
  void Describe(GroupChange& change) override { change.repeated = 0; }
  void Met() override;
  Result<void> MakeInner();

  std::unique_ptr<OwnPace> inner_;  // works on its own threads, too: a kind ends it before the work that it has
  OwnPace::Stand stand_;
  std::uint64_t settled_clock_ = 0;
  bool share_out_wanted_ = false;  // since somebody was lost

 private:
  void EndInner(bool in_order) override;
  void ForgetTaken() override;
  Result<void> Unite(const fabric::Roster* before) override;
  Result<std::vector<Report>> GatherReports();
  Result<void> FinishMeeting(std::uint64_t met);
  Result<void> HandOver(const std::vector<Report>& reports);
  // It follows an order to meet.
  bool Meets() const { return agreed_ == OwnPace::Order::kMeet || agreed_ == OwnPace::Order::kChange; }

  int settled_rank_ = 0, settled_size_ = 0;  // of this member and of the group, when all met to share out work
  std::optional<OwnPace::Order> agreed_;
  bool worked_ = false;    // it has done its part of the meeting it is in, and waits for the others to have done theirs
  bool settling_ = false;  // the meeting after which work is shared out anew
};

}  // namespace freshet::strategy
