#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "fabric/fabric.h"

namespace freshet::fabric {

class Group;

// The messages of one member: those it sends, those it waits for, and those that lie in its inbox.
//
// A send is a slot of the sender, pushed onto the receiver's inbox without a lock; the slot says where the bytes lie.
// The receiver's threads, whenever they are in a call, empty the inbox, match slots with receives in order, and copy or
// add outside the lock, straight from the sender's memory. The slot's state then tells the sender that it may go on:
//
//   kOpen -> kTaken -> kDone or kTooLong    the receiver took it; while kTaken its bytes are being read, or are lent
//   kOpen -> kCancelled                     the sender gave up before; the receiver drops it when it comes across it
//
// A receive goes through the same states, kTaken while a thread copies for it.
//
// Threads, ownership, blocking, failure: as Fabric.
class Mailroom {
 public:
  Mailroom(Group& group, int rank) : group_(group), rank_(rank) {}
  Mailroom(const Mailroom&) = delete;
  Mailroom& operator=(const Mailroom&) = delete;

  Result<Transfer> Send(int to, Tag tag, std::span<const std::byte> bytes);
  enum class Use { kCopy, kAdd, kLend, kLoss };
  Result<Transfer> Receive(const From& from, Tag tag, std::span<std::byte> into, Use use);
  Result<Arrived> Wait(Transfer transfer, base::Clock::Duration timeout);
  Result<std::size_t> WaitAny(std::span<const Transfer> transfers, base::Clock::Duration timeout);
  bool Done(Transfer transfer);
  Result<Transfer> StartLoss(const From& of, std::size_t known);
  void Release(Transfer lent);

  // Ends everything under way; returns when no peer reads this member's memory.
  void Close();

  std::uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }
  void CountSent(std::uint64_t bytes) { bytes_sent_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  enum class State : std::uint8_t { kFree, kOpen, kTaken, kDone, kTooLong, kCancelled };
  struct Slot {
    std::atomic<State> state{State::kFree};
    bool sends = false;
    Use use = Use::kCopy;
    std::uint64_t id = 0;
    int owner = 0;
    int peer = 0;
    std::vector<int> among;  // of a receive from several: these; empty: all
    std::size_t known = 0;   // of a wait for a loss: how many do not count
    Tag tag = 0;
    std::byte* bytes = nullptr;  // where they lie (sends) or go
    std::size_t size = 0;
    Slot* next = nullptr;    // in an inbox
    Slot* parcel = nullptr;  // of a receive: the send it was matched with
    Arrived arrived;
  };

  Slot* NewSlot() REQUIRES(mutex_);
  Slot* Find(Transfer transfer) REQUIRES(mutex_);  // null when it is over
  void Free(Slot* slot) REQUIRES(mutex_);
  Slot* Match(const Slot& receive) REQUIRES(mutex_);  // takes the first message for it, or null
  void EmptyInbox() REQUIRES(mutex_);
  void Serve();                 // does all the copying there is to do
  void Deliver(Slot* receive);  // the copying of one
  void End(Slot* slot,
           State state) const;  // the last touch of a slot by who is not its owner

  static bool Final(State state) { return state >= State::kDone; }
  static bool Takes(const Slot& receive, int from);
  bool Breaks(int sender) const;             // may be taking back what it has sent
  bool Unreachable(const Slot& slot) const;  // all it means are gone
  bool Lost(const Slot& slot) const;         // nobody will ever end it
  bool Ready(const Slot& slot) const;        // waiting for it is over
  std::optional<int> LossFor(const Slot& slot) const;
  bool Cancel(Slot* slot);  // false: it has ended by itself
  Result<Arrived> Finish(Slot* slot);
  Error WhyNot(const Slot& slot, base::Clock::Duration timeout);
  std::string Doing(const Slot& slot) const;
  Result<void> Allowed(const From& peer) const;

  Group& group_;
  const int rank_;
  std::atomic<Slot*> inbox_{nullptr};  // newest first
  std::atomic<int> matched_count_{0};
  std::atomic<std::uint64_t> bytes_sent_{0};

  base::Mutex mutex_;
  std::deque<Slot> slots_ GUARDED_BY(mutex_);
  std::vector<Slot*> free_ GUARDED_BY(mutex_);
  std::uint64_t next_id_ GUARDED_BY(mutex_) = 1;
  std::list<Slot*> open_ GUARDED_BY(mutex_);      // receives without a message, in the order started
  std::list<Slot*> waiting_ GUARDED_BY(mutex_);   // messages without a receive, in the order they came
  std::deque<Slot*> matched_ GUARDED_BY(mutex_);  // receives whose message is there, to be served
};

}  // namespace freshet::fabric
