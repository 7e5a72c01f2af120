#pragma once

#include <deque>

#include "strategy/letterbox.h"
#include "strategy/server/synchrony.h"
#include "strategy/strategy.h"

namespace freshet::strategy {

// What strategies share whose workers wait for nobody: each makes its steps when it can, and is told by letters what the
// others want. To stop, to save and to end an epoch is ordered by the first, in one order for all: whoever wants to stop
// or has no more rows tells it, and each follows an order behind the step it is in. So what all do together (a checkpoint,
// a sum, the end of an epoch) they begin in the same order, though not at the same moment.
class OwnPace : public Strategy {
 public:
  int rank() const override { return world_.collectives.fabric().rank(); }
  int size() const override { return world_.collectives.fabric().size(); }
  bool reads_all() const override { return options_.whole; }
  bool same_place() const override { return false; }

  data::Batch Share(const data::Batch& piece) const override;
  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override;
  Result<bool> StepDry() override;

  void Ask(bool stop, bool save) override;
  bool stop_agreed() const override { return agreed_ == Order::kStop; }
  bool save_agreed() const override { return agreed_ == Order::kSave; }
  bool admission_agreed() const override { return agreed_ == Order::kAdmit; }
  void Forget() override { agreed_.reset(); }
  void SetProgress(double progress) override { world_.optimizer.SetProgress(progress); }

  Result<std::vector<double>> Sum(const std::vector<double>& mine) override;
  Result<void> Barrier() override { return world_.collectives.Barrier(); }

  ~OwnPace() override { letters_->End(); }
  StepTimes times() const override;
  void CountRead(base::Clock::Duration time) override { times_.read += base::Seconds(time); }

  // What all are ordered to do: to stop, save or end the epoch; to meet, for those who want to share out work anew; to
  // let others in; and to go on in another synchrony.
  enum class Order : std::uint8_t { kStop = 1, kSave, kEndEpoch, kMeet, kAdmit, kChange };
  struct Due {
    std::uint64_t number = 0;  // rises from order to order
    std::uint64_t clock = 0;   // at which it is followed, or as soon as it is known
    Order order = Order::kStop;
    server::Synchrony synchrony = {};  // of an order to change it
  };
  // Where this member stands, for who goes on in another group: in an epoch that has no more rows for it, and the last order
  // that it has followed. There, all follow the last one that anybody has, and no later one that some may know of.
  struct Stand {
    Due followed;
    bool dry = false;
  };
  std::optional<Order> agreed() const { return agreed_; }  // what was ordered and is followed now
  Stand stand() const { return {followed_, dry_}; }
  void Resume(const Stand& own, const Due& last);
  // Follows what is ordered, without a step.
  Result<void> Attend();
  // Somebody should order all to meet, or to let others in.
  void Want(Order order) { wanted_ = order; }
  // Or to go on in this synchrony.
  void WantChange(const server::Synchrony& to) { wanted_change_ = to; }

 protected:
  // `letters_at_once`: as Letterbox's.
  OwnPace(const StrategyOptions& options, const World& world, std::size_t letters_at_once = 1);

  // This worker's step, with the summed loss of its rows. And what it does with a letter: the first byte, which says what it
  // is, is at least kFirstOwn.
  static constexpr std::byte kFirstOwn{16};
  // The last one that this member knows. It may be learned from the first's letter, or sooner from somebody else.
  const Due& last_order() const { return last_order_; }
  void Learn(const Due& due);

  // Before its first step since all met, and before the first letter is taken in.
  virtual Result<void> Begin() { return {}; }
  virtual Result<double> Work(const data::Batch& piece, const data::Batch& mine, std::span<float> scores) = 0;
  virtual Result<void> OnLetter(int from, std::span<const std::byte> bytes) = 0;

  // Called with what comes before it becomes a letter, on the fabric's own thread (Letterbox::Serve).
  virtual Result<bool> Serve(int from, std::span<const std::byte> bytes) {
    (void)from, (void)bytes;
    return false;
  }
  // On that thread, too, while it waits for letters: what is due by now; when more will be. And what has ended it.
  virtual std::optional<base::Clock::Duration> Tick() { return std::nullopt; }
  virtual void Deaf(const Error& why) { (void)why; }
  // Where workers may wait for each other they follow an order when they have come equally far: how far this one is,
  // and, of the first, where this order, which it gives now, can be followed by all. 0: wherever each is.
  virtual std::uint64_t clock() const { return 0; }
  virtual std::uint64_t furthest() const { return clock(); }  // of those for whom this member works
  virtual std::uint64_t meeting(const Due& order) {
    (void)order;
    return 0;
  }
  // Nobody waits for the others, and yet orders are to be followed by all at the same clock: the first asks everybody where
  // it is, who then waits there for the order.
  virtual bool gathers() const { return false; }
  // It has no more rows, or follows an order: nobody may wait for a step of this member from here on, until all meet. And:
  // it was ordered to stop, so that nobody may wait for anything.
  virtual Result<void> Rest() { return {}; }
  virtual Result<void> Leave() { return {}; }
  bool dry() const { return dry_; }
  virtual void EpochEnded() {}  // nobody has any more rows of it
  // Listens, if it does not yet.
  Result<void> Open();

  // Reads what has come, or waits for one letter.
  Result<void> ReadLetters();
  Result<void> AwaitLetter();
  Letterbox& letters() { return *letters_; }

  const StrategyOptions options_;
  const World world_;
  StepTimes times_;

 private:
  Result<void> Read(const Letterbox::Letter& letter);
  Result<void> Say(std::byte what) { return Say(0, what, nullptr, 0); }
  Result<void> Say(int to, std::byte what, const void* more, std::size_t bytes);
  Result<void> Hear(int from, std::byte what);
  Result<void> HearWhere(const Letterbox::Letter& letter);
  Result<std::uint64_t> WhereToMeet(const Due& order);
  Result<void> HearWish(const Letterbox::Letter& letter);
  Result<void> Give(Order order, const server::Synchrony& synchrony = {});
  // Sends what is asked for; of the first, gives orders. Then follows the next one.
  Result<void> Follow();

  std::shared_ptr<Letterbox> letters_;
  const std::uint64_t sent_before_, shared_before_;  // bytes, by others over the same fabric
  Due last_order_;
  Due followed_;            // the last one that was
  std::deque<Due> orders_;  // not followed yet
  bool wants_stop_ = false, said_stop_ = false, wants_save_ = false;
  std::optional<Order> wanted_, said_wanted_;
  std::optional<server::Synchrony> wanted_change_, said_change_;
  bool dry_ = false, said_dry_ = false;
  std::optional<Order> agreed_;
  bool ordered_stop_ = false;  // by the first
  int dry_ones_ = 0;           // members, in this epoch, as the first knows
  bool where_asked_ = false;   // by the first, who waits for the answer; this member then waits for an order
  int told_where_ = 0;         // members; and the furthest of them
  std::uint64_t furthest_ = 0;
};

Result<StrategyPtr> MakeGossip(const StrategyOptions& options, const Strategy::World& world);
Result<StrategyPtr> MakeServer(const StrategyOptions& options, const Strategy::World& world);
// Groups of workers, each of which is one worker of a parameter server.
Result<StrategyPtr> MakeServerGroups(const StrategyOptions& options, const Strategy::World& world);

}  // namespace freshet::strategy
