#pragma once

#include <deque>

#include "strategy/letterbox.h"
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
  bool stop_agreed() const override { return stop_agreed_; }
  bool save_agreed() const override { return save_agreed_; }
  void Forget() override { stop_agreed_ = save_agreed_ = false; }
  void SetProgress(double progress) override { world_.optimizer.SetProgress(progress); }

  Result<std::vector<double>> Sum(const std::vector<double>& mine) override;
  Result<void> Barrier() override { return world_.collectives.Barrier(); }

  ~OwnPace() override { letters_->End(); }
  StepTimes times() const override;
  void CountRead(base::Clock::Duration time) override { times_.read += base::Seconds(time); }

 protected:
  // `letters_at_once`: as Letterbox's.
  OwnPace(const StrategyOptions& options, const World& world, std::size_t letters_at_once = 1);

  // This worker's step, with the summed loss of its rows. And what it does with a letter: the first byte, which says what it
  // is, is at least kFirstOwn.
  static constexpr std::byte kFirstOwn{16};
  enum class Order : std::uint8_t { kStop = 1, kSave, kEndEpoch };
  struct Due {
    std::uint64_t number = 0;  // rises from order to order
    std::uint64_t clock = 0;   // at which it is followed, or as soon as it is known
    Order order = Order::kStop;
  };
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
  // Where workers may wait for each other they follow an order when they have come equally far: how far this one is,
  // and, of the first, where an order that it gives now can be followed by all. 0: wherever each is.
  virtual std::uint64_t clock() const { return 0; }
  virtual std::uint64_t meeting() const { return 0; }
  // It has no more rows, or follows an order: nobody may wait for a step of this member from here on, until all meet. And:
  // it was ordered to stop, so that nobody may wait for anything.
  virtual Result<void> Rest() { return {}; }
  virtual Result<void> Leave() { return {}; }
  bool dry() const { return said_dry_; }
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
  Result<void> Say(std::byte what);
  Result<void> Hear(int from, std::byte what);
  Result<void> Give(Order order);
  // Sends what is asked for; of the first, gives orders. Then follows the next one.
  Result<void> Follow();

  std::shared_ptr<Letterbox> letters_;
  Due last_order_;
  std::deque<Due> orders_;  // not followed yet
  bool wants_stop_ = false, said_stop_ = false, wants_save_ = false, said_dry_ = false;
  bool stop_agreed_ = false, save_agreed_ = false, epoch_ended_ = false;
  bool ordered_stop_ = false;  // by the first
  int dry_ = 0;                // members, in this epoch, as the first knows
};

Result<StrategyPtr> MakeGossip(const StrategyOptions& options, const Strategy::World& world);
Result<StrategyPtr> MakeServer(const StrategyOptions& options, const Strategy::World& world);

}  // namespace freshet::strategy
