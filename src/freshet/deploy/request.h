#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/row_builder.h"
#include "data/rows.h"

namespace freshet::deploy {

// What became of observations that were posted.
struct LearnReply {
  std::uint64_t accepted = 0, duplicates = 0, expired = 0;
  std::uint64_t last_sequence = 0;  // of those accepted
  bool durable = false;             // on the disk already
};
using LearnDone = std::function<void(Result<LearnReply>)>;

// Rows that were posted: to be learned, to be noted as predicted, or the labels of such.
struct Request {
  enum class Kind { kObservations, kFeedback, kPrediction } kind = Kind::kObservations;
  data::Rows rows;                   // none of a feedback, before it is being written
  std::vector<data::NewName> names;  // by entry, ascending
  std::vector<std::string> ids;      // of the rows, or none
  std::string id;                    // of the request: feedback, prediction
  std::optional<std::string> owner;  // of the predicted rows; none: whoever holds the id of a feedback
  std::vector<float> labels;         // feedback
  std::vector<data::NewLabel> new_labels;
  std::vector<float> scores;  // prediction
  LearnDone done;             // none of a prediction

  // While it is being written.
  LearnReply reply;
  std::optional<Error> error;
  std::size_t ids_added = 0;
  std::vector<std::string> answered;  // feedback: ids of the owner's predictions that got their labels
};

}  // namespace freshet::deploy
