#pragma once

#include <memory>
#include <string>
#include <vector>

#include "serve/tensors.h"

namespace freshet::serve {

// An output as a client wants it.
struct WantedOutput {
  std::size_t index;  // in Signature::outputs
  bool binary;
};

// POST …/infer, understood. Reused from request to request, so that its memory is.
struct InferRequest {
  bool has_id = false;
  std::string id;                    // the client's, to be echoed; at most 128 bytes
  std::vector<WantedOutput> wanted;  // in the order asked for; all when none was
  data::Rows rows;                   // not standardised; without labels unless the client sent their column
  std::vector<data::NewName> names;  // users, items or categories the model has not met
};

// Turns bodies of inference requests (Open Inference Protocol v2, with binary tensors) into rows.
//
// Threads: one at a time; give each thread its own.
// Memory:  no allocation in steady state for dense and sparse rows; what a large body needed is given back at the next
//          small one.
// Failure: kBadInput naming the tensor, what was expected and what was found; the request is then anything. Sizes are
//          checked before memory is taken by them.
class InferParser {
 public:
  static constexpr std::size_t kMostTensors = 64;      // inputs, or as many as the model has columns; outputs
  static constexpr std::size_t kMostScores = 1 << 22;  // numbers in an answer

  InferParser();
  ~InferParser();
  InferParser(InferParser&&) noexcept;
  InferParser& operator=(InferParser&&) noexcept;

  Result<void> Parse(const Body& body, const Signature& signature, InferRequest& request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace freshet::serve
