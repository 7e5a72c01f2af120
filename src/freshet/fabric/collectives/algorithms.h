#pragma once

#include <cstddef>
#include <span>

#include "fabric/collectives/transfers.h"

namespace freshet::fabric {

// The ways to make a sum, one file each, among the team of some transfers; all its members call the same one with
// the same length. They leave the same bytes with every member: each number is added up in one place (or in one order),
// in an order that depends on places alone, and copied from there.

// central.cc: place 0 adds up what the others send, in order, and sends the sum back.
Result<void> CentralAllReduce(Transfers& transfers, std::span<float> values);
Result<void> CentralReduce(Transfers& transfers, std::span<float> values);     // place 0 ends with the sum
Result<void> CentralBroadcast(Transfers& transfers, std::span<float> values);  // of place 0

// ring.cc: chunk c begins at place c + 1 and is added to from place to place, until it is whole at place c; then the
// whole chunks go around once more.
Result<void> RingAllReduce(Transfers& transfers, std::span<float> values, std::size_t piece_bytes);
Result<void> RingReduceScatter(Transfers& transfers, std::span<float> values, std::size_t piece_bytes);
Result<void> RingAllGather(Transfers& transfers, std::span<float> values, std::size_t piece_bytes);

// tree.cc: a binary tree with place 0 (or `root`) at its top.
Result<void> TreeAllReduce(Transfers& transfers, std::span<float> values, std::size_t piece_bytes);
Result<void> TreeBroadcast(Transfers& transfers, std::span<std::byte> bytes, int root, std::size_t piece_bytes);

// halving.cc: pairs at half the distance each time swap halves of what they still hold, and back.
Result<void> HalvingAllReduce(Transfers& transfers, std::span<float> values);

// direct.cc: each member borrows its chunk from all others, adds up, and gives the sum to all.
Result<void> DirectAllReduce(Transfers& transfers, std::span<float> values);

// hierarchical.cc: to the first member of each host, among those, and back. Takes tags of its own from `tag` on.
Result<void> HierarchicalAllReduce(Fabric& fabric, Tag tag, std::span<float> values, std::size_t piece_bytes);

}  // namespace freshet::fabric
