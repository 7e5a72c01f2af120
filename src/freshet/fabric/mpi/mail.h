#pragma once

#include <mpi.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "fabric/protocol/note.h"

namespace freshet::fabric::mpi {

inline constexpr std::size_t kEagerBytes = 16 * 1024;  // the longest message that travels within its note
inline constexpr int kMailTag = 0;                     // of notes; other tags are those of long messages

// Notes between the members of a communicator. Receives from anybody are always posted, so that MPI never has to keep
// notes itself while somebody looks; they are taken in the order in which MPI matched them, so those of one sender come
// in the order sent.
//
// Threads:   one at a time.
// Ownership: borrows the communicator. Notes are copied.
// Blocking:  never.
// Failure:   MPI's own errors, as kPeerLost. A note of another generation is dropped.
class Mail {
 public:
  Mail(MPI_Comm communicator, std::uint64_t generation);
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;
  ~Mail();

  Result<void> Open();  // from here on notes are received
  Result<void> Send(int to, const Note& note, std::span<const std::byte> payload);

  struct Letter {
    int from = 0;
    bool good = true;  // false: what came is no note of ours
    Note note = {};
    std::span<const std::byte> payload = {};  // until the next Receive
  };
  // The next that has come, if any.
  Result<std::optional<Letter>> Receive();

  // Lets go of notes that are out.
  Result<void> Turn();
  bool Empty() const { return unsent_ == 0; }
  bool Empty(int to) const { return out_[static_cast<std::size_t>(to)].empty(); }
  std::uint64_t bytes_sent() const { return bytes_sent_; }

  // MPI is not called again: what it still has stays its own for ever.
  void Abandon();

 private:
  using Packet = std::unique_ptr<std::byte[]>;
  struct Outgoing {
    MPI_Request request;
    Packet packet;
  };
  struct Slot {
    MPI_Request request = MPI_REQUEST_NULL;
    Packet packet;
  };
  Result<void> Post(Slot& slot);
  std::optional<Letter> Read(int from, std::span<const std::byte> bytes) const;
  Packet NewPacket();

  const MPI_Comm communicator_;
  const std::uint64_t generation_;
  std::vector<std::deque<Outgoing>> out_;  // by receiver
  std::size_t unsent_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::vector<Packet> spare_;

  std::vector<Slot> slots_;
  std::size_t first_ = 0;  // the slot that is filled first
  bool taken_ = false;     // its packet was handed out
  bool abandoned_ = false;
};

}  // namespace freshet::fabric::mpi
