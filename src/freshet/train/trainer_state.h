#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/images/augment.h"
#include "strategy/alone.h"
#include "train/checkpoints.h"
#include "train/early_stopping.h"
#include "train/held_out.h"
#include "train/row_cache.h"
#include "train/strata.h"
#include "train/trainer.h"

namespace freshet::train {

// What a Trainer remembers while it runs: where it stands, and what it works with. Private to trainer*.cc.
struct Trainer::State : Standing {
  State(const base::Env& env, const model::Model& model, const optimize::Parameters& parameters,
        const data::Description& description, const TrainOptions& options);

  data::RowSource* source = nullptr;  // what Run was given
  bool length_known = true;           // of the source, so that progress has a fraction
  Watch watch;
  RowCache cache;
  Strata strata;
  bool strata_whole = false;  // holds everything: later epochs need not read
  std::optional<data::Augment> augment;
  std::vector<float> shown;            // what it makes of a batch
  std::vector<float> shown_of_others;  // rows of who is slow
  std::vector<float> scores;

  optimize::HeapMemory memory;  // of `alone` and `early`, which it outlives
  std::unique_ptr<strategy::Alone> alone;
  HeldOut held_out;
  EarlyStopping early;
  std::optional<Checkpoints> checkpoints;  // if there is a path for them, while it runs
  Report report;
};

}  // namespace freshet::train
