#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/row_builder.h"
#include "model/model.h"

namespace freshet::serve {

// Types of the Open Inference Protocol. FP16 has no JSON form; BYTES are strings.
enum class Datatype {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFp16,
  kFp32,
  kFp64,
  kBytes
};
std::string_view Name(Datatype type);
std::optional<Datatype> FindDatatype(std::string_view name);
std::size_t BytesOf(Datatype type);  // of one value in binary form; 0 for kBytes, whose values differ in length

// A tensor as model metadata names it; -1 in the shape stands for any size.
struct TensorSpec {
  std::string name;
  Datatype type;
  std::vector<std::int64_t> shape;
};

// What a model can answer. Score: after Loss::Link, so a probability, probabilities, or a value; label: the name of the
// most likely class; cluster: the number of the nearest centre.
enum class Output { kScore, kLabel, kCluster };

// What a model takes and gives, as tensors.
//   dense rows      x FP32 [-1, features]
//   sparse rows     indptr INT64 [-1], indices INT64 [-1], values FP32 [-1]
//   tables          one tensor a column by name, [-1]; when all columns are numbers, x or the columns
//   ratings         user BYTES [-1], item BYTES [-1]
// and score FP32 [-1, 1 or classes], for classification also label BYTES [-1]; for clusters cluster INT64 [-1].
//
// Ownership: borrows the description and the model, which outlive it. Make one for each version that is served.
// Threads:   const; any thread, as long as nobody changes the description.
class Signature {
 public:
  // With `open`, labels that no class has may be learned.
  Signature(const data::Description& description, const model::Model& model, bool open = false);

  const data::Description& description() const { return builder_.description(); }
  const model::Model& model() const { return model_; }
  bool open() const { return open_; }
  const data::RowBuilder& builder() const { return builder_; }
  const std::vector<TensorSpec>& inputs() const { return inputs_; }
  const std::vector<TensorSpec>& outputs() const { return outputs_; }
  const std::vector<Output>& kinds() const { return kinds_; }  // of the outputs, one each

  // Appends `"inputs":[…],"outputs":[…]`, as GET /v2/models/{name} shows them.
  void AppendMetadata(std::string& json) const;

 private:
  const model::Model& model_;
  const bool open_;
  const data::RowBuilder builder_;
  std::vector<TensorSpec> inputs_, outputs_;
  std::vector<Output> kinds_;
};

// A request's body. With the binary tensor extension, JSON of `json_bytes` (the header Inference-Header-Content-Length)
// and then the tensors' bytes, in order; else JSON only.
struct Body {
  std::string_view bytes;
  std::optional<std::uint64_t> json_bytes = {};
};

// The value of an Inference-Header-Content-Length header.
Result<std::uint64_t> ParseJsonBytes(std::string_view header);

// Appends text as a JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD.
void AppendJsonString(std::string_view text, std::string& json);

}  // namespace freshet::serve
