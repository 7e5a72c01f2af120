#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace freshet::fabric {

inline constexpr int kAnyRank = -1;

// Whom a receive takes its message from: one member, whoever is first (kAnyRank), or the first of some. Borrows the
// ranks, for the call it is made for.
class From {
 public:
  From(int rank) : rank_(rank) {}  // NOLINT(google-explicit-constructor): one rank is the usual case
  explicit From(std::span<const int> ranks) : rank_(kAnyRank), among_(ranks) {}

  int rank() const { return rank_; }  // kAnyRank: one of several
  const std::optional<std::span<const int>>& among() const { return among_; }

 private:
  int rank_;
  std::optional<std::span<const int>> among_;
};

// Which message is meant: a receive takes the first message of its sender (or of any) that has its tag, in the order
// they were sent. Tags from kReserved on belong to Collectives.
using Tag = std::uint64_t;
inline constexpr Tag kReserved = Tag{1} << 32;

// A send or receive under way.
struct Transfer {
  std::uint64_t id = 0;
};

// What a transfer brought.
struct Arrived {
  int from = 0;
  std::size_t bytes = 0;
  std::span<const std::byte> view;  // of StartBorrow only: where the bytes lie, until Release
};

// What it means that a member is lost: the choice of who makes a group, the same in all its members.
enum class OnLoss {
  kEndGroup,  // the end of the group, for all its members and with the same reason
  kReport,    // transfers with that member fail, all others go on, and Fabric::Lost tells of it
};

// A member that is lost to another, in a group that reports losses.
struct Loss {
  int rank = 0;
  bool left = false;  // in order, with a goodbye; else it died, fell silent or gave up
  Error why;          // kPeerLost; names rank and host
};

// One member's connection to a group of `size` workers that exchange bytes. Everything else about working together
// (all-reduce and its topologies, compression, strategies) is written over these few calls.
//
// Sending is matched with receiving by (sender, tag) within a generation: a message of an earlier group is never taken
// for one of this group. Messages of one sender and tag arrive in the order they were sent, whole and unchanged. A
// message longer than its receiver's span is an error of the receiver (kInvalid), and of a sender that still waits.
//
// Threads:   calls may come from several threads of a member at once; a transfer is waited for by one.
// Ownership: spans given to Start… stay valid and untouched (sends) or unread (receives) until Wait has returned.
// Blocking:  Start… do not wait for a peer. Wait does, at most `timeout` (0: the fabric's own), then gives kTimeout
//            that names rank, host and what was waited for.
// Failure:   kPeerLost names the rank and host that is gone and why, if it said so. It is final. In a group that ends
//            with a loss (OnLoss), every transfer under way and every later call of every member gives it. In one that
//            reports losses, it is what becomes of transfers with that member and no others: a receive from several
//            goes on as long as one of them is there, and what the lost had sent may still be received if it was here
//            before. Losses are each member's own: who is lost to one is so to another when that one notices, too.
class Fabric {
 public:
  virtual ~Fabric() = default;

  virtual std::string_view name() const = 0;  // threads, tcp, mpi
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::uint64_t generation() const = 0;
  virtual const std::string& host(int rank) const = 0;  // where that member runs
  virtual const base::Clock& clock() const = 0;         // by which it waits

  virtual Result<Transfer> StartSend(int to, Tag tag, std::span<const std::byte> bytes) = 0;
  // The same with so many bytes behind these that are not there (base/hollow.h): where time is simulated they take
  // theirs, and nobody gets them. Elsewhere there are none.
  virtual Result<Transfer> StartHollowSend(int to, Tag tag, std::span<const std::byte> bytes, std::size_t hollow);
  virtual Result<Transfer> StartReceive(From from, Tag tag, std::span<std::byte> into) = 0;
  // Adds what arrives to `into`, float by float, without a copy in between where the fabric can.
  virtual Result<Transfer> StartReceiveAdd(From from, Tag tag, std::span<float> into) = 0;
  // Lends what a peer sends, in the peer's own memory where the fabric can; the peer's send ends with Release.
  virtual Result<Transfer> StartBorrow(From from, Tag tag) = 0;
  virtual void Release(Transfer borrowed) = 0;

  virtual Result<Arrived> Wait(Transfer transfer, base::Clock::Duration timeout = {}) = 0;
  virtual bool Done(Transfer transfer) = 0;  // would Wait return at once?
  // Which of these is done, for Wait to take; the others stay as they are, also after a kTimeout. Deadlines as Wait's.
  virtual Result<std::size_t> WaitAny(std::span<const Transfer> transfers, base::Clock::Duration timeout = {}) = 0;

  // Those this member has lost, in the order it learned of them, but for the first `known`. Each is told once and
  // stays. None in a group that ends with a loss. Does not block.
  virtual std::vector<Loss> Lost(std::size_t known = 0) const = 0;
  // In a group that has ended with a loss, the member that died or fell silent, where the fabric can tell it from one
  // that gave up. Does not block.
  virtual std::optional<int> Missed() const { return std::nullopt; }
  // A transfer that is done when more than `known` of these are lost, and brings the rank of the one after them: waited
  // for beside others, it wakes a thread for a loss.
  virtual Result<Transfer> StartLoss(From of, std::size_t known) = 0;

  // Runs a job on the fabric's own thread, after those posted before: progress while the caller computes. Jobs may use
  // the fabric, wait, and post others. All that were posted have run when the fabric's destructor returns; those that
  // it finds see their transfers fail at once. Once it has begun, only jobs may post.
  virtual void Post(std::function<void()> job) = 0;

  // This member gives up: every other member gets kPeerLost with this reason. Where losses are reported it is lost to
  // them, and all are to it.
  virtual void Abort(const Error& why) = 0;

  // Bytes this member has sent to others so far: over sockets as they travelled, headers included and what went through
  // shared memory excluded; between threads what others have read of its memory.
  virtual std::uint64_t bytes_sent() const = 0;
  // And what went to others of its host through shared memory, where sockets would else have carried it.
  virtual std::uint64_t bytes_shared() const { return 0; }

  // A sum over all members by the engine's own means, in place; each member's values must have the same length, and the
  // order of additions must not depend on timing. False when this fabric has none.
  virtual bool has_native() const { return false; }
  // Whether that is the fastest way for all sizes, as far as one can say without measuring.
  virtual bool prefers_native() const { return false; }
  virtual Result<void> NativeAllReduce(std::span<float> values) {
    (void)values;
    return Error{Code::kInvalid, "this fabric has no all-reduce of its own"};
  }

  // Somebody above works on what is sent or has come, for so many bytes of floats: "add", "copy", "encode NAME",
  // "decode NAME"; "apply" to parameters; "rows" that were sorted, sent and summed. Where time is simulated it takes some.
  virtual void Spend(std::string_view work, std::size_t bytes) { (void)work, (void)bytes; }

  // The short forms: Start and Wait in one.
  Result<void> Send(int to, Tag tag, std::span<const std::byte> bytes);
  Result<Arrived> Receive(From from, Tag tag, std::span<std::byte> into);
};

inline std::span<const std::byte> AsBytes(std::span<const float> values) { return std::as_bytes(values); }
inline std::span<std::byte> AsBytes(std::span<float> values) { return std::as_writable_bytes(values); }
inline std::span<const std::byte> AsBytes(const std::vector<float>& values) { return std::as_bytes(std::span(values)); }
inline std::span<std::byte> AsBytes(std::vector<float>& values) { return std::as_writable_bytes(std::span(values)); }

}  // namespace freshet::fabric
