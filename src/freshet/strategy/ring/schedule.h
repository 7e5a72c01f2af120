#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace freshet::strategy::ring {

// The order in which members run the micro-batches of a step through their stages. Stage s lies with member s mod
// `members`, so that the way goes `stages` times round the ring. Micro-batches pass each stage in their order, forward
// and backward, whatever the schedule: gradients are added up as one worker adds up its parts (--accumulate).
//
//   flush        all forward, then all backward. Idle share (p-1) / (v·m + p-1) of p members with v stages each and m
//                micro-batches, where all stages take as long; each stage keeps all m micro-batches.
//   1f1b         one stage each: backward as soon as possible. As idle; at most p - i micro-batches at member i.
//   interleaved  the same of several stages each, micro-batches in groups of p: (p-1) / (v·m + p-1), of which m is
//                best a multiple of p.
//   stash        1f1b, but micro-batches of the next step go forward before the last of this one are back: idle at the
//                beginning and the end of a training only (NoFlush). A schedule of it is that of one step.
enum class Order { kFlush, kOneByOne, kInterleaved, kStash };
Result<Order> OrderOf(std::string_view name);

struct Action {
  bool backward = false;
  int stage = 0;
  std::size_t micro = 0;
  bool operator==(const Action&) const = default;
};

struct Schedule {
  std::vector<std::vector<Action>> actions;  // by member, in their order
  std::vector<std::size_t> depth;            // by stage: micro-batches that are forward and not yet backward, at most
};

// Whoever follows it waits only for what comes before in every order that all can follow: it never comes to a halt.
Schedule MakeSchedule(Order order, int members, int stages_each, std::size_t micros);

}  // namespace freshet::strategy::ring
