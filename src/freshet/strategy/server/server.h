#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "strategy/own_pace.h"
#include "strategy/server/estate.h"
#include "strategy/server/waits.h"

namespace freshet::strategy::server {

// A member of a parameter server: the parameters lie in shards with some members, the servers; workers read the rows they
// need, compute, and push what they would change, and servers make the updates (Li et al., "Scaling Distributed Machine
// Learning with the Parameter Server"). How far workers may drift apart is the synchrony's to say. A member may be
// worker and server at once, which is how it is where no number of servers is given.
//
// A server answers on the fabric's own thread, whatever its member does meanwhile. When all meet (Settle), every worker
// tells the servers that it makes no more updates, every member gets every row, and all go on from one clock.
//
// Where nobody waits and all workers are handed all rows, a worker learns from the pieces it has tickets for, and gets the next
// ticket when it has done one: who is slow does fewer. Tickets are numbers of pieces of an epoch; the first server gives them
// out, each once, and everybody begins with two, so that one is always known.
//
// Where it takes longer than a step until the next one is known, who reads ahead asks for twice as many.
//
// Approximate workers read ahead (Copy), and stale ones of models of which a step needs some rows: it does not wait for an
// answer that is on its way, as long as what it has may be read. It waits for one that takes more steps than the fastest did: then it is the servers that have much to do,
// and to run on would only make them stale.
//
// Where losses are survived (Estate::keeps) a shard is with a chain of members (van Renesse and Schneider, "Chain Replication
// for Supporting High Throughput and Availability"): the first takes letters in and hands them on, and its answers leave
// when the last has them. Rows are then shared out evenly; a worker that is gone is stood for by another, who makes the
// updates that are missing from the rows it has kept. Servers that have them take no notice.
//
// Ownership: borrows the estate, which outlives it. Threads: as Strategy. Failure: the fabric's.
class Server : public OwnPace {
 public:
  static constexpr std::string_view kSynchrony = "server.synchrony";  // in a checkpoint: where it was changed
  static Result<void> Check(const StrategyOptions& options, const World& world);
  static void BeginPanel(Panel* panel, const StrategyOptions& options, const Synchrony& synchrony);
  // Could a job with these options go on in that?
  static Result<void> CheckSynchrony(const StrategyOptions& options, const Synchrony& synchrony);
  // In a group that ends with its first loss.
  using Maker = std::function<std::unique_ptr<Server>(const Synchrony& synchrony, Estate& estate)>;
  static Result<std::unique_ptr<Server>> Make(const StrategyOptions& options, const World& world);
  static Result<std::unique_ptr<Server>> MakeBy(const StrategyOptions& options, const World& world, const Maker& maker);
  Server(const StrategyOptions& options, const World& world, const Synchrony& synchrony, Estate& estate);
  ~Server() override;

  Result<std::optional<double>> Step(const data::Batch& piece, const data::Batch& mine,
                                     std::span<float> scores) override;
  Result<bool> StepDry() override;
  StepTimes times() const override;
  std::optional<Report> report() override;

  bool has_rows() const override { return estate_.number < estate_.workers; }
  int readers() const override { return estate_.workers; }
  std::size_t piece() const override;
  data::Batch Share(const data::Batch& piece) const override;
  void SetShow(Show show) override { show_ = std::move(show); }

  void Save(std::vector<data::Tensor>& tensors) const override;
  Result<void> Load(const data::TensorFile& file) override;
  Result<void> Settle() override;

  // All have met, and go on in that one; who takes which rows stays as it is until the epoch ends.
  void SetSynchrony(const Synchrony& synchrony);
  // In another group, with what is left of the estate: tells again what may not have been heard.
  Result<void> GoOn();
  // Makes the updates that are missing of workers it stands for.
  Result<void> CatchUp();
  std::uint64_t settled_clock() const { return settled_clock_; }
  // Where pieces are given out by tickets, in this epoch: the next one that is this worker's.
  std::optional<std::uint64_t> next_ticket() const;
  static bool GivesTickets(const StrategyOptions& options, const Synchrony& synchrony, const model::Model& model) {
    return options.whole && !synchrony.bounded() && model.Supervised();
  }

 protected:
  Result<void> Begin() override;
  Result<double> Work(const data::Batch& piece, const data::Batch& mine, std::span<float> scores) override;
  Result<void> OnLetter(int from, std::span<const std::byte> bytes) override;
  Result<bool> Serve(int from, std::span<const std::byte> bytes) override;
  std::uint64_t clock() const override { return estate_.clock(); }
  std::uint64_t furthest() const override;
  // Nobody can be further than this before it has read something that was pushed after the order, and so knows of it. Who
  // has come to the end of rows that all have is as far as the others will come.
  std::uint64_t meeting(const Due& order) override;
  bool gathers() const override { return estate_.keeps && !synchrony_.bounded(); }
  // Tells what was held back, and that there is no more to come: nobody waits for this worker any more.
  Result<void> Rest() override;
  Result<void> Leave() override { return estate_.keeps ? Result<void>() : Barrier(); }
  void EpochEnded() override;

  // A worker's update, in two halves: asks for what these rows need, and makes their gradient; then pushes it, and asks for
  // what is needed whatever comes next.
  struct Made {
    double loss = 0, weight = 0;
    std::vector<std::byte> digest;  // of the rows
  };
  Result<Made> Compute(int worker, const data::Batch& piece, const data::Batch& mine, std::span<float> scores);
  // The rows that a worker's update is of: `mine`, or those of all for whom it pushes.
  virtual data::Batch RowsOf(const data::Batch& piece, const data::Batch& mine) const { return (void)piece, mine; }
  // Of the loss of these at this clock, whose sum it gives; where a worker pushes for others, with what they add to it.
  virtual Result<double> Gradient(std::uint64_t clock, const data::Batch& mine, std::span<float> scores);
  Result<void> Push(int worker, const PushHead& head, const Made& made);
  PushHead Head(std::uint64_t clock, double weight) const;
  // The same of rows of another, beside this worker's own, when those were pushed and nothing was read since: nothing when
  // servers have come past that clock.
  Result<std::optional<Made>> ComputeForAnother(std::uint64_t clock, const data::Batch& rows);
  Result<void> PushForAnother(const PushHead& head, const Made& made);
  // To all that was asked.
  Result<void> AwaitAnswers();
  std::uint64_t newest() const { return newest_; }  // clock that any answer had
  data::Batch Shown(const data::Batch& rows) const { return show_ && rows.rows > 0 ? show_(rows) : rows; }
  Estate& estate() { return estate_; }
  const Estate& estate() const { return estate_; }

 private:
  static Result<void> CheckLarge(const StrategyOptions& options, const World& world);

  static constexpr std::string_view kTickets = "server.tickets";
  static constexpr std::size_t kMostOnTheirWay = 4;  // letters to each server
  static constexpr std::size_t kAtOnce = 4;          // that come in, so that one is on its way while another is added
  static constexpr std::uint64_t kMostAhead = 64;    // steps
  static constexpr std::size_t kPiece = 1 << 18;     // floats of a large model that all get at once
  static constexpr std::size_t kMostKept = 8;        // pushes to one server before it is asked whether it has them
  struct Sent {
    std::vector<std::byte> bytes;
    fabric::Transfer transfer;
  };
  struct Coming {
    int shard = 0;
    fabric::Transfer transfer;
  };
  struct Withheld {  // until the last of the chain has that letter
    int shard = 0;
    std::uint64_t letter = 0;
    Shard::Answer answer;
  };
  struct Agreement {
    bool anybody = false;                           // has begun since all met
    std::uint64_t clock = 0, step = 0, passed = 0;  // passed: pieces of the rows, counted as clocks
    std::vector<bool> dry;                          // by rank
    std::vector<std::uint64_t> rows;                // by block
  };

  int HostOf(int shard) const { return estate_.chains[static_cast<std::size_t>(shard)].front(); }
  bool Answers(int shard) const { return HostOf(shard) == rank(); }

  Result<void> At(std::string_view place) const { return world_.at ? world_.at(place) : Result<void>(); }
  // A worker's update, whose rows are `mine` of `piece`.
  Result<double> WorkFor(int worker, const data::Batch& piece, const data::Batch& mine, std::span<float> scores);
  Result<double> WorkForAnother(int worker, const data::Batch& piece);
  void SetProgress(double progress) override { progress_ = progress; }
  std::vector<std::byte> DigestOf(const data::Batch& mine);
  bool Dense() const { return estate_.gradient.buffer != nullptr; }
  std::vector<float>& ScoresOfOthers(std::size_t rows);
  // The parameters that this worker computes with, and rows by the numbers that theirs have there.
  optimize::Parameters& Here() const;
  Result<data::Batch> Near(const data::Batch& rows);

  void KeepPushes(Estate::Share& share, std::uint64_t clock, const Copy::Letters& letters) const;
  Copy::Letters AskAboutKept(const Estate::Share& share);
  static std::vector<std::byte> Append(const std::vector<std::vector<std::byte>*>& letters);
  // What goes to one shard goes as one letter.
  Copy::Letters Bundle(int worker, std::vector<Copy::Letters> all);
  // Letters whose answers are expected already.
  Result<void> SendAll(Copy::Letters letters_by_shard);

  // On the fabric's own thread, or from this member to itself.
  Result<void> Handle(int from, std::span<const std::byte> bytes);
  Result<void> TakeIn(int shard, int worker, std::span<const std::byte> letter, bool first) REQUIRES(mutex_);
  Result<void> Release(int shard, std::uint64_t up_to) REQUIRES(mutex_);
  Result<void> Answer(Shard::Answer answer) REQUIRES(mutex_);
  Result<void> Write(int to, fabric::Tag tag, std::vector<std::byte> bytes) REQUIRES(mutex_);

  Result<void> TakeAnswer(std::span<const std::byte> bytes);
  Result<void> AwaitOwnAnswers();
  // Those that are here, and more until that is enough.
  Result<void> TakeAnswers(const std::function<bool()>& enough);
  Result<void> ListenForAnswers();
  std::vector<std::size_t> NextOfEach() const;
  Result<void> AwaitAnswer(std::size_t i);

  std::uint64_t StepsAhead() const;
  Result<void> AwaitWhatMayBeRead(std::uint64_t clock, const std::function<Result<void>()>& ask);
  void LearnAhead(double weight);
  Result<void> AwaitTicket();
  void Spend(const Effort& effort);

  // Where it was ordered: all meet, and go on in another synchrony.
  Result<void> Change();
  bool Ticketed() const;
  void CheckLedger(std::uint64_t passed) const;
  Result<Agreement> Agree();
  Result<void> ShareAll(const Agreement& agreed);
  void KeepOwn(std::size_t b, bool state);
  // When all have everything: what was hot goes to servers that had less to do.
  Result<void> MoveHot();

  Synchrony synchrony_;
  std::unique_ptr<fabric::Codec> own_codec_;  // where nobody else has them
  std::unique_ptr<Estate> own_estate_;
  Estate& estate_;
  const fabric::Tag answer_tag_;
  model::Workspace workspace_;
  data::Rows digest_;
  model::Model::Observes observes_{};                        // what servers want to see of the rows of this step
  std::vector<std::deque<base::Clock::Duration>> expected_;  // answers, by shard: when they were asked for
  std::optional<base::Clock::Duration> fastest_;             // of the answers of others
  std::vector<Coming> coming_;                               // those that are listened for
  Show show_;
  std::vector<float> scores_of_others_;
  std::uint64_t settled_clock_ = 0;
  double progress_ = 0;
  std::uint64_t moved_ = 0;  // ranges
  Waits waits_;
  std::uint64_t newest_ = 0;
  bool began_ = false, away_ = false;
  std::uint64_t step_ = 0;  // of the model, when all last met

  bool ticketed_ = false;
  std::uint64_t passed_ = 0;           // pieces of this epoch that this worker has come past, where it has tickets
  std::deque<std::uint64_t> tickets_;  // those it is to learn from next, ascending
  std::uint64_t tickets_wanted_ = 2, tickets_coming_ = 0;
  mutable std::vector<std::int64_t> saved_;
  mutable std::uint64_t saved_clock_ = 0;
  mutable std::array<std::uint64_t, 3> saved_synchrony_{};

  mutable base::Mutex mutex_;                         // also guards the estate's holdings
  std::uint64_t next_ticket_ GUARDED_BY(mutex_) = 0;  // of the first server
  std::deque<Sent> sent_ GUARDED_BY(mutex_);          // on their way, from that thread
  std::deque<Withheld> withheld_ GUARDED_BY(mutex_);
};

}  // namespace freshet::strategy::server
