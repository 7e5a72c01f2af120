#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/onnx/document.h"
#include "optimize/parameters.h"

namespace freshet::model::onnx {

// Builds the graph of a document, value by value. Names that are taken get a number.
class Builder {
 public:
  explicit Builder(Document& document) : document_(document) {}

  // A step with one output; returns the name of that. `name` is the node's and, unless `output` says otherwise, the
  // output's.
  std::string Node(std::string_view op, std::vector<std::string> inputs, std::vector<Attribute> attributes = {},
                   std::string_view name = "", std::string_view output = "");
  // A step with several outputs; "" for one that nobody wants. Returns their names.
  std::vector<std::string> Nodes(std::string_view op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                                 std::vector<Attribute> attributes = {}, std::string_view name = "",
                                 std::string_view domain = "");

  // Constants; each returns its name.
  std::string Floats(std::string_view name, std::vector<std::int64_t> dims, std::vector<float> values);
  std::string Ints(std::string_view name, std::vector<std::int64_t> values);
  std::string Scalar(std::string_view name, float value);
  // A block of parameters, borrowed where it lies in one piece.
  std::string Block(const optimize::Parameters& parameters, std::size_t b, std::vector<std::int64_t> dims);

  // Inputs and outputs of the graph; the batch is added in front of the dimensions.
  std::string Input(std::string_view name, Type type, std::vector<std::int64_t> dims);
  void Output(std::string_view name, Type type, std::vector<std::int64_t> dims);

  Document& document() { return document_; }

 private:
  std::string Unique(std::string_view wanted);
  std::string Keep(std::string_view name, Type type, std::vector<std::int64_t> dims, std::string bytes);

  Document& document_;
  std::set<std::string> names_;
};

}  // namespace freshet::model::onnx
