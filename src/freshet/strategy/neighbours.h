#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace freshet::strategy {

constexpr int kMostVertices = 4096;  // as many as there may be members

// Whom each member may write to, by rank: `ring` (the one before and the one behind), `random` (everybody), `exponential`
// (those 1, 2, 4, … places away, both ways), or a graph as it is written: 0-1,1-2,2-0. Who may write to another may be
// written to by it.
//
// Failure: kInvalid for what is none of these, for ranks that there are not, and for graphs of several pieces.
Result<std::vector<std::vector<int>>> Neighbours(const std::string& graph, int members);

// The same where members come and go, each of which is a vertex of a graph as it is written, by rank; nobody is the others,
// whose edges are not there. Those that are named are made of the members that there are.
struct Remaining {
  std::vector<std::vector<int>> lists;
  std::vector<std::pair<int, int>> added;  // ranks: between pieces that nothing connects any more
};
Result<Remaining> NeighboursOf(const std::string& graph, const std::vector<int>& vertices);

}  // namespace freshet::strategy
