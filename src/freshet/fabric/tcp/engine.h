#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "fabric/protocol/protocol.h"
#include "fabric/tcp/options.h"
#include "fabric/tcp/peer.h"

namespace freshet::fabric::tcp {

// The protocol over connections to every other member: turns move its bytes.
//
// Threads: one at a time; the caller has a lock. Failure: as Protocol says.
class Engine final : public Protocol, public FrameHandler {
 public:
  Engine(const TcpOptions& options, std::vector<Link> links, const base::Clock& clock);
  ~Engine() override;

  int descriptor() const { return epoll_.get(); }  // ready when Turn has something to do

  bool Turn() override;
  // Before the caller sleeps on descriptor(): false when there is something to do first. And after.
  bool PrepareSleep();
  void Awake();
  void Interrupt() override;
  base::Clock::Duration Tick() override;
  // After SayGoodbye: Turn until this holds, and what was sent has reached the others' machines.
  bool Quiet();

  std::uint64_t bytes_sent() const override;
  std::uint64_t bytes_shared() const override;
  int sharing() const;  // how many peers long messages reach through shared memory
  int near() const;     // how many members, this one included, run on this host

  Result<void> OnFrame(Peer& peer, const Header& header, std::span<const std::byte> payload) override;
  Operation* ReceiveOf(Peer& peer, std::uint64_t id) override { return Protocol::ReceiveOf(peer.rank(), id); }
  void OnMoved(Operation& operation) override { Moved(operation); }

 private:
  bool Open(int rank) const override { return peers_[static_cast<std::size_t>(rank)]->open(); }
  void Shut(int rank) override;
  void Send(int to, const Note& note, std::span<const std::byte> payload, Operation* operation) override;
  void SendBulk(Operation& send) override { peer(send.peer).SendBulk(send); }
  void ExpectBulk(Operation&) override {}
  void Push(int to) override { Flush(peer(to)); }
  bool Idle(int to) const override { return peers_[static_cast<std::size_t>(to)]->Idle(); }
  bool Forget(const Operation& operation) override { return peer(operation.peer).Forget(operation); }
  void OnLost(int) override { Interrupt(); }
  void OnStop() override { Interrupt(); }

  Peer& peer(int rank) { return *peers_[static_cast<std::size_t>(rank)]; }
  void Flush(Peer& peer);
  void Poll(Peer& peer, bool writing);
  void Handle(Peer& peer, const Result<bool>& outcome, bool& any);

  base::Descriptor epoll_;
  base::Descriptor interrupt_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace freshet::fabric::tcp
