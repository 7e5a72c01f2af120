#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "serve/json_body.h"
#include "serve/tensors.h"

namespace freshet::serve {

// For the parsers of bodies only: this header brings simdjson with it.

// An input of a request. The shape has been checked against the data: there are `count` values, nested as it says or
// flat, or as many bytes as it needs. Values themselves have not been looked at.
struct InputTensor {
  static constexpr std::size_t kMostSizes = 8;

  std::string_view name;
  Datatype type = Datatype::kFp32;
  std::array<std::uint64_t, kMostSizes> sizes = {};
  std::size_t dimensions = 0;  // how many of the sizes there are; at least one
  std::uint64_t count = 0;     // product of the sizes
  bool binary = false;
  bool nested = false;
  simdjson::dom::array data = {};  // when not binary
  std::string_view bytes;          // when binary

  std::uint64_t rows() const { return sizes[0]; }
  std::uint64_t row_size() const;  // values in a row
  std::string ShapeText() const;   // [2,3]
  Where where() const { return {"input", name}; }
};

struct OutputTensor {
  std::string_view name;
  bool binary = false;
};

// Reads the bodies of infer and learn calls as far as every model's are alike: id, inputs, wanted outputs.
//
// Threads: one at a time. What it shows stays until the next Read, and as long as the body does.
class TensorReader {
 public:
  // The most inputs and outputs a body may have. kBadInput, before memory is taken by any number of the body.
  struct Limits {
    std::size_t inputs, outputs;
  };
  Result<void> Read(const Body& body, const Limits& limits);

  bool has_id() const { return has_id_; }
  std::string_view id() const { return id_; }
  const std::vector<InputTensor>& inputs() const { return inputs_; }
  const std::vector<OutputTensor>& outputs() const { return outputs_; }
  bool binary_outputs() const { return binary_outputs_; }  // unless an output says otherwise

 private:
  Result<void> ReadInputs(simdjson::dom::array inputs);
  Result<void> ReadOutputs(simdjson::dom::array outputs);
  Result<InputTensor> ReadInput(simdjson::dom::element element);
  Result<void> ReadBinaryData(const JsonField& size, InputTensor& tensor);

  JsonBody json_;
  bool has_id_ = false;
  std::string_view id_;
  bool binary_outputs_ = false;
  bool has_binary_ = false;  // the body has a part that is not JSON
  std::string_view binary_;  // what of it has not been claimed by a tensor yet
  std::vector<InputTensor> inputs_;
  std::vector<std::string_view> names_;  // of the inputs, to find one that stands twice
  std::vector<OutputTensor> outputs_;
};

}  // namespace freshet::serve
