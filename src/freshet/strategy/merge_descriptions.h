#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "data/description.h"
#include "fabric/collectives/collectives.h"

namespace freshet::strategy {

// What a worker has learned of its own rows by looking at them, beside the description whose dictionaries grew.
struct Survey {
  // Where each name was first met, by dictionary and number: its file and the bytes before it, or anything else that
  // rises in the order of the whole input. Empty: what has a lower rank comes first.
  std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> first_met;
  data::Moments moments;  // of these rows alone; of no columns where there are none
};

// Every worker has read rows of its own: leaves all with one description. Names are numbered in the order in which the
// whole input has them, as one worker would have numbered them; moments are those of all rows.
//
// All call it together, with descriptions that were the same before their rows were read. Failure: as the fabric's.
Result<void> MergeDescriptions(fabric::Collectives& collectives, const Survey& mine, data::Description& description);

}  // namespace freshet::strategy
