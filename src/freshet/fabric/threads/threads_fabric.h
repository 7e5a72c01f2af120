#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fabric/fabric.h"

namespace freshet::fabric {

struct ThreadsOptions {
  std::uint64_t generation = 1;
  OnLoss on_loss = OnLoss::kEndGroup;
  base::Clock::Duration timeout = std::chrono::seconds(60);  // of a Wait that names none, and of NativeAllReduce
  std::vector<std::string> hosts = {};  // one per rank, to try out what depends on them; empty: "localhost" for all
  int cores = 0;                        // that the members share; 0: those this process may use
};

// A group of workers in one process, each with a thread (or more) of its own. Nothing is copied on the way: a receive
// copies or adds straight from the sender's memory, a borrow shows it, and NativeAllReduce adds up where the values
// lie.
//
// A message is taken while its receiver is inside a call of the fabric (any Start…, Wait or Done will do), and a send
// ends when it was taken: there is no buffer in between. So two members that both Send before they Receive wait for
// ever; they Start both.
//
// Threads:   as Fabric. Post starts one thread per member, at the first call; the member's destructor joins it.
// Ownership: borrows the clock. Members may outlive the group object; each frees its share.
// Blocking:  a send whose bytes are being copied or are lent at its deadline ends when the peer is done with them, even
//            if that is later: the memory is in use. So release what was borrowed before waiting for sends.
// Failure:   a member that is destroyed has left: whoever still needs it gets kPeerLost, which is then the end of the
//            group; members that do not need it finish what they are at. A NativeAllReduce that times out is the end
//            of the group too, since the others cannot finish it. Where losses are reported, members are lost that have
//            left or given up; a NativeAllReduce that failed is then the end of those sums alone.
// bytes_sent: bytes of this member's memory that others have read (or will have, of sends under way).
class ThreadsGroup {
 public:
  ThreadsGroup(int size, const base::Clock& clock, ThreadsOptions options = {});

  int size() const { return static_cast<int>(members_.size()); }
  Fabric& member(int rank) { return *members_[static_cast<std::size_t>(rank)]; }
  // Hands a member over, to be destroyed on its own; member(rank) is then no more.
  std::unique_ptr<Fabric> Take(int rank) { return std::move(members_[static_cast<std::size_t>(rank)]); }

 private:
  std::vector<std::unique_ptr<Fabric>> members_;
};

}  // namespace freshet::fabric
