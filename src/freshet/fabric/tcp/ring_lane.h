#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "base/result.h"
#include "fabric/protocol/operation.h"
#include "fabric/tcp/shared_ring.h"

namespace freshet::fabric::tcp {

class FrameHandler;
class Peer;

// Long messages between two processes of a host, one after another through shared memory: the id of the receive and the
// length (u64 each), then the bytes. These never leave the machine's memory and carry no checksum.
//
// Threads: one at a time. Failure: kCorrupt when the other side breaks the format.
class RingLane {
 public:
  explicit RingLane(SharedMemory& memory) : writer_(memory.writer()), reader_(memory.reader()) {}

  void Push(Operation& operation) { out_.push_back(&operation); }
  // Moves a bounded number of bytes each way; true when some moved.
  Result<bool> Turn(Peer& peer, FrameHandler& handler);
  // Whether the other side sleeps and must be told of what the last turns did.
  bool TakeWake() { return writer_.TakeWake() | reader_.TakeWake(); }
  bool Sleep(bool sleeping);
  bool Forget(const Operation& operation);
  std::uint64_t bytes_written() const { return bytes_written_; }

 private:
  using Head = std::array<std::byte, 16>;
  Result<bool> Write(FrameHandler& handler);
  Result<bool> Read(Peer& peer, FrameHandler& handler);
  Result<void> BeginMessage(Peer& peer, FrameHandler& handler);

  RingWriter writer_;
  RingReader reader_;
  std::deque<Operation*> out_;
  Head head_out_;
  std::size_t head_sent_ = 0;
  std::uint64_t bytes_written_ = 0;

  Head head_in_;
  std::size_t head_received_ = 0;
  Operation* landing_on_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace freshet::fabric::tcp
