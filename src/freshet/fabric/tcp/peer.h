#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "fabric/protocol/operation.h"
#include "fabric/tcp/door.h"
#include "fabric/tcp/frame.h"
#include "fabric/tcp/ring_lane.h"

namespace freshet::fabric::tcp {

class Peer;

// What becomes of the frames of a peer.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  virtual Result<void> OnFrame(Peer& peer, const Header& header, std::span<const std::byte> payload) = 0;
  // The receive a peer's bytes belong to; null when it is gone and they go nowhere.
  virtual Operation* ReceiveOf(Peer& peer, std::uint64_t id) = 0;
  // All bytes of a message have landed, or were handed to the system.
  virtual void OnMoved(Operation& operation) = 0;
};

// The connection to one other member: frames out and in, long messages in pieces or through shared memory. Moves what
// it can and never waits.
//
// Threads:   one at a time.
// Ownership: borrows the operations, which are taken back by Forget.
// Failure:   an error of Read is the end of the connection. Writing never fails: what becomes of a broken connection is
//            seen by reading it, since the other side's last words may still be there.
class Peer {
 public:
  struct Settings {
    std::uint64_t generation = 0;
    bool checksum = true;  // of payloads; under TLS there is no need
  };
  Peer(int rank, Link link, Settings settings);

  int rank() const { return rank_; }
  const std::string& host() const { return home_.host; }
  const Home& home() const { return home_; }
  int socket() const { return conduit_.socket(); }
  bool open() const { return conduit_.open(); }
  bool shares_memory() const { return lane_.has_value(); }
  void Close() { conduit_.Close(); }

  // Queues a frame. Its payload belongs to the operation, which is over when all its bytes have gone; `text` is kept.
  void Send(Header header, std::span<const std::byte> payload = {}, Operation* operation = nullptr);
  void SendText(Header header, std::string text);
  // Queues the whole of a long message whose receiver is ready.
  void SendBulk(Operation& operation);

  // Writes until the socket is full; Blocked() tells whether something is left.
  void Flush(FrameHandler& handler);
  bool Blocked() const { return (!queue_.empty() || conduit_.unwritten()) && !broken_; }
  bool Idle() const { return queue_.empty() && bulk_.empty() && !conduit_.unwritten(); }
  // Reads what is there, within bounds; true when something was.
  Result<bool> Read(FrameHandler& handler);
  // There is something to read of which the socket does not tell.
  bool unread() const { return conduit_.open() && conduit_.unread(); }
  // Moves bytes through shared memory; true when some moved.
  Result<bool> TurnLane(FrameHandler& handler);
  // Says that this side sleeps or is awake; false when there is something to do first.
  bool SleepLane(bool sleeping) { return !lane_.has_value() || !conduit_.open() || lane_->Sleep(sleeping); }

  // Nothing of this operation is touched from here on. False when its bytes are half way: then nothing more can be
  // sent.
  bool Forget(const Operation& operation);

  std::uint64_t bytes_sent() const { return conduit_.bytes_sent(); }
  std::uint64_t bytes_shared() const { return lane_.has_value() ? lane_->bytes_written() : 0; }

  // Kept here for the engine.
  bool heard = false;  // since it looked last
  bool polled_for_writing = false;

 private:
  struct Outgoing {
    HeaderBytes header;
    std::span<const std::byte> payload;
    Operation* operation = nullptr;
    std::string text;
  };
  void PushNextPiece();
  void Sent(std::size_t bytes, FrameHandler& handler);
  Result<bool> ReadPiece(FrameHandler& handler);
  Result<bool> ReadFrames(FrameHandler& handler);
  Result<std::size_t> Receive(std::span<std::byte> direct);  // 0: nothing there
  Result<void> BeginFrame(FrameHandler& handler, const Header& header);
  Result<void> Landed(std::span<const std::byte> bytes, bool direct, FrameHandler& handler);
  Result<void> CheckPayload(const Header& header, std::uint32_t crc) const;
  std::span<const std::byte> Staged() const { return std::span(staging_).subspan(begin_, end_ - begin_); }

  const int rank_;
  const Home home_;
  const Settings settings_;
  const std::unique_ptr<SharedMemory> shared_;
  Conduit conduit_;
  std::optional<RingLane> lane_;

  std::deque<Outgoing> queue_;
  std::size_t sent_ = 0;         // of the first in the queue
  std::deque<Operation*> bulk_;  // through the socket
  std::uint64_t sequence_out_ = 0;
  bool broken_ = false;  // cannot be written any more

  std::vector<std::byte> staging_;  // what was read and not yet looked at: [begin_, end_)
  std::size_t begin_ = 0, end_ = 0;
  std::size_t received_ = 0;  // in this turn
  std::uint64_t sequence_in_ = 0;
  std::optional<Header> piece_;  // a piece of which bytes are still to come
  Operation* landing_on_ = nullptr;
  std::size_t piece_left_ = 0;
  std::uint32_t piece_crc_ = 0;
};

}  // namespace freshet::fabric::tcp
