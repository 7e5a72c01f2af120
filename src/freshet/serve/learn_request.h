#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/infer_request.h"

namespace freshet::serve {

// POST …/learn, understood: rows with labels, and what else came with them. Reused, so that its memory is.
struct LearnRequest {
  bool has_id = false;
  std::string id;                    // of the request
  data::Rows rows;                   // not standardised; every row has a label; weights and times if they were sent
  std::vector<data::NewName> names;  // users, items or categories the model has not met
  std::vector<std::string> ids;      // of the rows, given by the client, to be learned once; empty: none were given
  std::vector<data::NewLabel> new_labels;  // that the model has not met, where it may learn such
};

// POST …/feedback: the labels of rows that were predicted before under this id.
struct FeedbackRequest {
  std::string id;
  std::optional<std::string> owner;  // the name of the token that asked; none: whoever did
  std::vector<float> labels;         // as the model sees them; one, or one a row of that request
  std::vector<data::NewLabel> new_labels;
};

// Turns the bodies of learn and feedback calls into rows and labels. A learn call has the inputs of an infer call and
//   labels   any type of numbers or BYTES [n]   required, unless the label's column is among the inputs; not for
//   clusters weights  FP32 [n]                           0 or more times    INT64 [n]                          seconds
//   since 1970 ids      BYTES [n]                          1 to 128 bytes of UTF-8 each
// A model that has an input of such a name reads it as that input.
//
// Threads, memory and failure as InferParser.
class LearnParser {
 public:
  static constexpr std::size_t kMostIdBytes = 128;

  LearnParser();
  ~LearnParser();
  LearnParser(LearnParser&&) noexcept;
  LearnParser& operator=(LearnParser&&) noexcept;

  Result<void> Parse(const Body& body, const Signature& signature, LearnRequest& request);
  // {"id": "42", "label": …} or {"id": "42", "labels": […]}; labels are numbers, strings or booleans. "owner" may say
  // whose prediction that was.
  Result<void> ParseFeedback(std::string_view body, const Signature& signature, FeedbackRequest& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The small bodies. Strict: a key that is not known, missing or of another type is kBadInput.

// {"version": "123", "discard": …?, "relearn": bool?}: go back to a version, forget observations, and perhaps learn the
// others since then again. What to forget is [from, to), of sequences, or {"sequences": [from, to]?, "times": [from,
// to]?, "ids": ["…", …]?}, of which one at least is there.
struct RollBackRequest {
  static constexpr std::size_t kMostIds = 10'000;

  std::string version;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> discard;  // sequences [from, to)
  std::optional<std::pair<std::int64_t, std::int64_t>> times;      // seconds since 1970, [from, to)
  std::vector<std::string> ids;
  bool relearn = false;
};
Result<RollBackRequest> ParseRollBack(std::string_view body);

// {} or nothing at all.
Result<void> ParseIterate(std::string_view body);

// {"path": "…", "relearn": bool?}: a model file takes over, and perhaps learns what the journal holds again.
struct DeployRequest {
  std::string path;
  bool relearn = false;
};
Result<DeployRequest> ParseDeploy(std::string_view body);

// {"path": "…"}
struct DatasetRequest {
  std::string path;
};
Result<DatasetRequest> ParseDataset(std::string_view body);

// {"user": "42", "k": 10?, "seen": ["7", …]?}: the k best items for a user, without those seen. Names may be whole
// numbers too.
struct RecommendRequest {
  static constexpr std::uint64_t kMost = 10'000;

  std::string user;
  std::uint64_t k = 10;  // 1 … kMost
  std::vector<std::string> seen;
};
Result<RecommendRequest> ParseRecommend(std::string_view body);

// {"version": "123", "pinned": bool}
struct PinRequest {
  std::string version;
  bool pinned = true;
};
Result<PinRequest> ParsePin(std::string_view body);

}  // namespace freshet::serve
