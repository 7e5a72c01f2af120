#pragma once

#include <string>

#include "base/files.h"
#include "fabric/collectives/collectives.h"
#include "model/model.h"
#include "strategy/strategy.h"

namespace freshet::train {

// What a strategy that was left open ("auto") comes to for one model and one group: all-reduce, which learns what a single
// worker would, by the topology and in the buckets that are fastest.
struct Choice {
  fabric::Algorithm algorithm =
      fabric::Algorithm::kAuto;  // kAuto: as the topology says; what is sent does not depend on it
  std::size_t bucket_bytes = 0;
  std::string how = {};  // it was chosen, in words

  std::string ToText() const;  // for checkpoints and FromText
  static Result<Choice> FromText(const std::string& text);
};

struct ChoiceWishes {
  strategy::StrategyOptions strategy;  // batch, threads and all that is not chosen
  std::string checkpoint;              // of a run that may be resumed, with what it chose; "" for none
  double seconds = 0.1;                // for each measurement
};

// Measures what exchanging costs in this group and what a batch of this model costs, simulates training in every way it
// could go (simulate/plan.h), and takes the fastest. All members call it; rank 0 decides. A topology that was named stays.
Result<Choice> ChooseStrategy(base::Files& files, base::Clock& clock, fabric::Collectives& collectives,
                              const model::Model& model, const ChoiceWishes& wishes);

}  // namespace freshet::train
