#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace freshet::data {

// Those who read other shares of one data set, each in its own process, with whom a reader agrees on how rows become
// features. All make the same calls in the same order.
//
// Blocking: Tell, until all have said theirs. Failure: kPeerLost or kTimeout when one does not.
class Others {
 public:
  virtual ~Others() = default;
  // What each of all says, in the order of ranks, this one's included. `about` names the question: an answer to another
  // one is refused.
  virtual Result<std::vector<std::string>> Tell(std::string_view about, const std::string& mine) = 0;
  // How a message names a rank.
  virtual std::string Name(std::size_t rank) const = 0;
  // The error (kInvalid) to return where all see the same contradiction and give up by themselves.
  virtual Error Refuse(std::string why) = 0;
};

}  // namespace freshet::data
