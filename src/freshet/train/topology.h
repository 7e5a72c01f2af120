#pragma once

#include <string>

#include "base/files.h"
#include "fabric/collectives/collectives.h"

namespace freshet::train {

// By which algorithms the sums of a run go, and who chose them.
struct Topology {
  std::string algorithm = {};  // of all sums; auto: by size, from the table
  std::string table = {};      // as the option algorithm-table takes it; "" unless auto
  std::string chosen = {};     // of the table: fixed, measured, given (by the option) or resumed (from the checkpoint)
  bool usual = true;           // the table is the one this fabric has when nobody says anything
};

struct TopologyWishes {
  std::string table;       // what the option algorithm-table says, "" for nothing
  std::string checkpoint;  // of a run that may be resumed; "" for none
  bool measure = false;
};

// Settles the table of `collectives` with all members, who all call it: what was told, else what the checkpoint of an
// earlier run says (so that it goes on to the same bytes), else a measured one if wished for, else a fixed one. Rank 0
// decides. kInvalid for a table that this fabric cannot follow.
Result<Topology> SettleTopology(base::Files& files, base::Clock& clock, fabric::Collectives& collectives,
                                const TopologyWishes& wishes);

// What rank 0 says, to all, who all call it.
Result<std::string> FromRankZero(fabric::Collectives& collectives, const std::string& text);

}  // namespace freshet::train
