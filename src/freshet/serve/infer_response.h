#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "serve/infer_request.h"

namespace freshet::serve {

// Which model answers.
struct Answerer {
  std::string_view model_name, model_version;
};

// Replaces `body` with the answer to a request: JSON, followed by the bytes of those outputs that were wanted in
// binary. `scores` are what Model::Predict wrote, Model::scores() a row, in the units of the labels; they are
// overwritten by Loss::Link. Returns how many bytes the JSON has when others follow (the header
// Inference-Header-Content-Length; the content type is then application/octet-stream), and nothing when all is JSON.
// kDiverged when a score is not finite. Any thread; allocates nothing once `body` has grown, but for the labels of many
// rows.
Result<std::optional<std::size_t>> WriteInferResponse(const Answerer& answerer, const Signature& signature,
                                                      const InferRequest& request, std::span<float> scores,
                                                      std::string& body);

// {"error": text}, as every failed call answers.
std::string ErrorBody(std::string_view text);

}  // namespace freshet::serve
