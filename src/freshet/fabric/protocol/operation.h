#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "fabric/fabric.h"
#include "fabric/protocol/landing.h"

namespace freshet::fabric {

// Memory that is lent to a borrower.
struct Buffer {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;
};

// A send or receive under way, from Start to Wait (or Release).
struct Operation {
  enum class Kind { kSend, kReceive, kReceiveAdd, kBorrow, kLoss };

  std::uint64_t id = 0;
  Kind kind = Kind::kSend;
  int peer = 0;            // of a receive from several: kAnyRank until its message is known
  std::vector<int> among;  // and these several; empty: all
  Tag tag = 0;

  std::span<const std::byte> out;  // of a send
  std::size_t hollow = 0;          // and so many bytes behind it that are not there
  std::size_t moved = 0;           // bytes of it that are on their way
  Landing landing;                 // of the others
  Buffer lent;                     // of a borrow
  std::size_t bytes = 0;           // of the message, once known
  std::uint64_t peer_id = 0;       // what the other side calls this message; 0: it does not know of it yet
  std::size_t known = 0;           // of a wait for a loss: how many do not count

  bool matched = false;  // sender and receiver have found each other
  bool done = false;
  std::optional<Error> error;

  // Is this member meant?
  bool Takes(int rank) const {
    if (peer != kAnyRank) return peer == rank;
    return among.empty() || std::find(among.begin(), among.end(), rank) != among.end();
  }
  void Finish() { done = true; }
  void Finish(Error why) {
    done = true;
    if (!error.has_value()) error = std::move(why);
  }
};

}  // namespace freshet::fabric
