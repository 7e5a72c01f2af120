#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fabric/membership/elastic_group.h"

namespace freshet::strategy {

// What one member saw of a change of its group.
struct GroupChange {
  struct Gone {
    std::string name, how;  // how: "" when nobody knows
  };
  std::uint64_t generation = 0;
  int before = 0, after = 0;    // members
  std::vector<Gone> gone = {};  // between the two
  std::vector<std::string> came = {};
  std::uint64_t step = 0;      // the optimizer's
  bool first = false;          // this member has rank 0 now
  std::uint64_t repeated = 0;  // steps that this member makes again, or has, with that in whose midst it was
  double seconds = 0;          // since it last met the others, or made a step by itself
  std::string note = {};       // what else has changed with it; "" for nothing

  // Who is gone and who has come since then. One may have been left out for being slow.
  static GroupChange Since(const fabric::Roster& before, const fabric::ElasticGroup& group,
                           std::optional<fabric::MemberId> left_out);
  // "membership 8 → 7: rank 3 on b is gone, killed by signal 9; step 512 repeated; 0.31 s"
  std::string ToText() const;
};

// What one member saw of all changes of its group.
struct GroupHistory {
  std::uint64_t changes = 0, lost = 0, came = 0, left_out = 0;  // members; those left out were too slow, and not lost
  std::uint64_t repeated = 0;                                   // steps that it made again
  std::uint64_t given_up = 0;  // rows that nobody has learned from (StrategyOptions::lossy)
  double seconds = 0;          // in which it made none, because of changes

  void Add(const GroupChange& change, bool one_left_out);
};

}  // namespace freshet::strategy
