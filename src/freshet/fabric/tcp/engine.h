#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "fabric/fabric.h"
#include "fabric/tcp/matching.h"
#include "fabric/tcp/options.h"
#include "fabric/tcp/peer.h"

namespace freshet::fabric::tcp {

// The protocol between the members of a group, without threads and without waiting: transfers are started, turns move
// bytes, ticks keep time, and what is done can be taken.
//
// Short messages go at once, as long as the receiver has not too many of them lying about (a window of bytes, given
// back as they are taken). Longer ones, and short ones beyond the window, are offered and wait until a receive has
// asked for them, so that their bytes travel straight to their place and a socket is never left unread.
//
// Threads: one at a time; the caller has a lock. Failure: the first loss of a member is final, see Fail.
class Engine final : public FrameHandler {
 public:
  Engine(const TcpOptions& options, std::vector<Link> links, const base::Clock& clock);
  ~Engine() override;

  int descriptor() const { return epoll_.get(); }  // ready when Turn has something to do

  Result<std::uint64_t> StartSend(int to, Tag tag, std::span<const std::byte> bytes);
  Result<std::uint64_t> StartReceive(Operation::Kind kind, int from, Tag tag, Landing landing);
  bool Done(std::uint64_t id) const;
  // What has become of a finished transfer; it is forgotten, unless it lends memory.
  Result<Arrived> Take(std::uint64_t id);
  void Release(std::uint64_t id);
  // Gives up a transfer that did not finish in time, and says what it was.
  Error Timeout(std::uint64_t id, base::Clock::Duration waited);

  // Moves what can be moved; true when something was.
  bool Turn();
  // Before the caller sleeps on descriptor(): false when there is something to do first. And after.
  bool PrepareSleep();
  void Awake();
  void Interrupt();  // ends such a sleep
  // Heartbeats out, silences noticed. To be called at least every heartbeat; gives the time until the next is due.
  base::Clock::Duration Tick();

  // This member gives up, and tells the others.
  void Abort(const std::string& why);
  // Ends everything here: transfers under way get this error, later ones too.
  void Stop(Error why);
  // Says goodbye to all; nothing may be sent after it. Then Turn until Quiet: what was sent has reached the others'
  // machines.
  void SayGoodbye();
  bool Quiet();

  const std::optional<Error>& failure() const { return failure_; }
  const std::string& host(int rank) const { return peers_[static_cast<std::size_t>(rank)]->host(); }
  std::uint64_t bytes_sent() const;
  std::uint64_t bytes_shared() const;
  int sharing() const;  // how many peers long messages reach through shared memory
  int near() const;     // how many members, this one included, run on this host

  Result<void> OnFrame(Peer& peer, const Header& header, std::span<const std::byte> payload) override;
  Operation* ReceiveOf(Peer& peer, std::uint64_t id) override;
  void OnMoved(Operation& operation) override;

 private:
  static constexpr std::size_t kWindowBytes = 8 << 20;  // of short messages that a receiver keeps, for each peer
  static constexpr std::size_t kEagerCost = 128;        // of one beside its bytes, so that empty ones count too
  static constexpr std::size_t kOffers = 1 << 16;       // of long messages, for each peer

  Peer& peer(int rank) { return *peers_[static_cast<std::size_t>(rank)]; }
  Operation& Add(Operation::Kind kind, int rank, Tag tag);
  Operation* SendOf(const Peer& peer, std::uint64_t id);
  Result<void> CheckRank(int rank, std::string_view doing) const;

  Result<void> OnMessage(Peer& peer, Matching::Message message, std::span<const std::byte> content);
  void OnCancel(Peer& peer, const Header& header);
  void OnRefuse(Peer& peer, const Header& header);
  void OnAbort(Peer& peer, const Header& header, std::span<const std::byte> payload);
  void OnGoodbye(Peer& peer);
  void Accept(Operation& receive, const Matching::Message& message, std::span<const std::byte> content);
  bool Fits(Operation& receive, const Matching::Message& message);
  void Credit(Peer& peer, std::size_t bytes);

  void Flush(Peer& peer);
  void Poll(Peer& peer, bool writing);
  void Handle(Peer& peer, const Result<bool>& outcome, bool& any);
  void Lose(Peer& peer, const std::string& why);
  void Tell(int culprit, const std::string& text);
  void Fail(int culprit, std::string text);  // tells the others
  bool AnyoneLeft() const;
  std::string Name(int rank) const;  // "rank 3 (host b)"
  std::string LeftText(int rank) const;
  std::string Wanted(const Operation& operation) const;

  const TcpOptions options_;
  const base::Clock& clock_;
  Descriptor epoll_;
  Descriptor interrupt_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::unordered_map<std::uint64_t, Operation> operations_;
  std::uint64_t next_id_ = 1;
  Matching matching_;
  std::deque<Buffer> spare_;  // of ended borrows
  std::optional<Error> failure_;
  base::Clock::Duration last_tick_;
};

}  // namespace freshet::fabric::tcp
