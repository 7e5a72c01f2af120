#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace freshet::data {

struct Description;
struct View;
class Moments;

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

// The labels that any has seen in the head of its share, each once.
Result<std::vector<std::string>> AgreeOnLabels(Others& others, const std::vector<std::string>& seen);
// One format for all: that of rank 0. Refuses any other.
Result<void> AgreeOnFormat(Others& others, std::string_view format);
// One description for all: where heads may rightly differ (what the first feature is called) the one that fits all;
// refuses what contradicts that of rank 0, and what is learned from the order of rows (names).
Result<void> AgreeOnDescription(Others& others, Description& description);
// Moments of what all have seen: each shows some rows of its own, of as many columns as the moments have.
Result<void> AgreeOnMoments(Others& others, const std::vector<float>& rows, Moments& moments);
// What is shown of images: as rank 0 found it.
Result<void> AgreeOnView(Others& others, View& view);

}  // namespace freshet::data
