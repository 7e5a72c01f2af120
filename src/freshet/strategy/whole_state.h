#pragma once

#include <string>
#include <string_view>

#include "strategy/strategy.h"

namespace freshet::strategy {

// All of a learner's parameters, what its optimizer remembers of them, and how many steps it has made, as bytes for another
// who trains the same model.
std::string EncodeWhole(const Learner& learner);

// Takes them over. Who reads other rows than another, or stands elsewhere in them, may have met features that the other has
// not, or the other way round: what nobody has learned is the same for all. kCorrupt for bytes of another model and, where
// all must have met the same (`same_rows`), of another size.
Result<void> AdoptWhole(const Learner& learner, std::string_view bytes, bool same_rows);

}  // namespace freshet::strategy
