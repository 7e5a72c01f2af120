#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "fabric/fabric.h"
#include "fabric/protocol/matching.h"
#include "fabric/protocol/note.h"
#include "fabric/protocol/operation.h"

namespace freshet::fabric {

// What members of different processes tell each other, without threads and without waiting: transfers are started,
// notes come in, ticks keep time, and what is done can be taken. An engine derives from it and carries its notes and
// long messages.
//
// Short messages go at once, as long as the receiver has not too many of them lying about (a window of bytes, given
// back as they are taken). Longer ones, and short ones beyond the window, are offered and wait until a receive has
// asked for them, so that their bytes travel straight to their place and no engine is left with bytes nobody wants.
//
// Threads: one at a time; the caller has a lock. Failure: the first loss of a member is final, see Fail; where losses
// are reported (OnLoss), it ends what has to do with that member, see ReportLoss.
class Protocol {
 public:
  struct Settings {
    int rank = 0;
    std::vector<std::string> hosts;  // of all members, by rank
    std::size_t eager_bytes = 0;     // the longest message sent without asking
    std::uint64_t max_message_bytes = 0;
    base::Clock::Duration heartbeat{};
    int heartbeat_misses = 0;  // a member silent for this many is lost
    OnLoss on_loss = OnLoss::kEndGroup;
  };
  Protocol(Settings settings, const base::Clock& clock);
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;
  virtual ~Protocol() = default;

  int rank() const { return settings_.rank; }
  int size() const { return static_cast<int>(members_.size()); }
  const std::string& host(int rank) const { return settings_.hosts[static_cast<std::size_t>(rank)]; }
  const std::optional<Error>& failure() const { return failure_; }
  const std::vector<Loss>& losses() const { return losses_; }  // where they are reported
  std::optional<int> missed() const { return missed_; }        // as Fabric::Missed
  // Rises with every loss and with the end.
  std::size_t ends() const { return losses_.size() + (failure_.has_value() ? 1 : 0); }

  // `hollow`: so many more that are not there, of an engine that knows how long they take.
  Result<std::uint64_t> StartSend(int to, Tag tag, std::span<const std::byte> bytes, std::size_t hollow);
  Result<std::uint64_t> StartReceive(Operation::Kind kind, const From& from, Tag tag, Landing landing);
  Result<std::uint64_t> StartLoss(const From& of, std::size_t known);
  bool Done(std::uint64_t id) const;
  // What has become of a finished transfer; it is forgotten, unless it lends memory.
  Result<Arrived> Take(std::uint64_t id);
  void Release(std::uint64_t id);
  // Gives up a transfer that did not finish in time, and says what it was. One that is half way is a loss.
  Error Timeout(std::uint64_t id, base::Clock::Duration waited);
  // The same of several, none of which is given up.
  Error TimeoutAny(std::span<const Transfer> transfers, base::Clock::Duration waited) const;

  // Moves what can be moved; true when something was.
  virtual bool Turn() = 0;
  // Ends the sleep of who waits for the engine to have something to do, where its engine lets one sleep.
  virtual void Interrupt() {}
  // Heartbeats out, silences noticed. To be called at least every heartbeat; gives the time until the next is due.
  virtual base::Clock::Duration Tick();
  // This member gives up, and tells the others.
  void Abort(const std::string& why);
  // Ends everything here: transfers under way get this error, later ones too.
  void Stop(Error why);
  // Says goodbye to all; nothing may be sent after it.
  void SayGoodbye();

  virtual std::uint64_t bytes_sent() const = 0;  // as Fabric counts them
  virtual std::uint64_t bytes_shared() const { return 0; }

 protected:
  // What the engine tells: a note has come (an error: it was no good, and its sender is to be lost); something of this
  // member was heard; it is gone; all bytes of a message have landed, or were taken over by the engine.
  Result<void> OnNote(int from, const Note& note, std::span<const std::byte> payload);
  void Heard(int from) { member(from).heard = true; }
  void Lose(int lost, const std::string& why);
  bool reports() const { return settings_.on_loss == OnLoss::kReport; }
  void Fail(int culprit, std::string text);  // the group is over; tells the others. Or reports the culprit's loss
  void Moved(Operation& operation) { operation.Finish(); }
  // The receive a member's bytes belong to; null when it is gone and they go nowhere.
  Operation* ReceiveOf(int from, std::uint64_t id);
  // Has it said goodbye?
  bool left(int rank) const { return members_[static_cast<std::size_t>(rank)].left; }
  // Was its loss reported?
  bool lost(int rank) const { return members_[static_cast<std::size_t>(rank)].lost; }
  bool Waits() const;                // is any transfer not done?
  std::string Name(int rank) const;  // "rank 3 (host b)"
  std::string LeftText(int rank) const;

  // What the engine does. None of these waits.
  virtual bool Open(int rank) const = 0;  // can this member be spoken to? Never to oneself
  virtual void Shut(int rank) = 0;        // from here on not
  // Queues a note. Its payload belongs to the operation, which has moved when all is gone; without one it is copied.
  virtual void Send(int to, const Note& note, std::span<const std::byte> payload, Operation* operation) = 0;
  // Queues the whole of a long message whose receiver is ready.
  virtual void SendBulk(Operation& send) = 0;
  // The same on the other side: this receive is about to ask for its bytes.
  virtual void ExpectBulk(Operation& receive) = 0;
  virtual void Push(int to) = 0;  // sends what is queued as far as that goes
  virtual bool Idle(int to) const = 0;
  // Nothing of this operation is touched from here on. False when its bytes are half way: then the group is over.
  virtual bool Forget(const Operation& operation) = 0;
  virtual void OnLost(int rank) = 0;                // its loss was reported: whoever sleeps has to look
  virtual void OnStop() = 0;                        // the end has come: whoever sleeps has to look
  virtual std::uint64_t sums() const { return 0; }  // of the engine's own that this member took part in

 private:
  static constexpr std::size_t kWindowBytes = 8 << 20;  // of short messages that a receiver keeps, for each member
  static constexpr std::size_t kEagerCost = 128;        // of one beside its bytes, so that empty ones count too
  static constexpr std::size_t kOffers = 1 << 16;       // of long messages, for each member

  // How things stand with another member.
  struct Member {
    bool left = false;
    bool lost = false;            // and reported
    std::size_t eager_out = 0;    // short messages sent and not known to be taken, in bytes
    std::size_t eager_in = 0;     // short messages kept for later
    std::size_t credit_due = 0;   // taken and not yet told
    std::size_t requests_in = 0;  // long messages on offer
    base::Clock::Duration last_heard{};
    base::Clock::Duration last_spoken{};
    bool heard = false;  // since the last tick
  };
  Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }

  Operation& Add(Operation::Kind kind, const From& from, Tag tag);
  Operation* SendOf(int to, std::uint64_t id);
  Result<void> CheckRank(int rank, std::string_view doing) const;
  Result<void> CheckFrom(const From& from, std::string_view doing) const;
  void Tell(int to, const Note& note) {
    if (Open(to)) Send(to, note, {}, nullptr);
  }

  Result<void> OnMessage(int from, Matching::Message message, std::span<const std::byte> content);
  void OnClear(int from, const Note& note);
  void OnCancel(int from, const Note& note);
  void OnRefuse(int from, const Note& note);
  Result<void> OnAbort(int from, const Note& note, std::span<const std::byte> payload);
  void OnGoodbye(int from);
  void Accept(Operation& receive, const Matching::Message& message, std::span<const std::byte> content);
  bool Fits(Operation& receive, const Matching::Message& message);
  void Credit(int to, std::size_t bytes);

  void TellAll(int culprit, bool gave_up, const std::string& text);
  void ReportLoss(int lost, std::string text);
  void EndLoss(Operation& wait) const;  // if it waits no longer
  // Can somebody still send or take it? And what to say if not.
  bool Reachable(const Operation& operation) const;
  Error Unreachable(const Operation& operation) const;
  const Error& LossOf(int lost) const;
  std::string Names(std::span<const int> ranks) const;
  std::string Wanted(const Operation& operation) const;

  const Settings settings_;
  const base::Clock& clock_;
  std::vector<Member> members_;
  std::unordered_map<std::uint64_t, Operation> operations_;
  std::uint64_t next_id_ = 1;
  Matching matching_;
  std::deque<Buffer> spare_;  // of ended borrows
  std::optional<Error> failure_;
  std::vector<Loss> losses_;
  std::optional<int> missed_;
  base::Clock::Duration last_tick_;
};

}  // namespace freshet::fabric
