#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace freshet::model::onnx {

// What an ONNX file says, as plain values: the part of its schema that models of ours need.

enum class Type { kNone = 0, kFloat = 1, kInt32 = 6, kInt64 = 7, kString = 8, kBool = 9, kDouble = 11 };
std::string_view NameOf(Type type);
std::size_t BytesOf(Type type);  // of one element; 0 for types whose data is not read

// Where the data of a tensor lies, when it is in another file (external_data).
struct OutsideData {
  std::string file;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length = {};  // without one: all that follows
};

// Numbers with a name. The bytes, little-endian and row-major, are borrowed (from the file that was read, from the
// parameters to be written) unless `own` keeps them. There are none yet while they are outside, and for types that no
// model of ours reads.
struct Tensor {
  std::string name;
  Type type = Type::kFloat;
  std::vector<std::int64_t> dims;
  std::string_view bytes = {};
  std::shared_ptr<const std::string> own = {};
  std::optional<OutsideData> outside = {};

  std::size_t elements() const;
  bool IsReal() const;                     // kFloat or kDouble, and all there
  bool IsWhole() const;                    // kInt64, kInt32 or kBool, and all there
  std::vector<float> Floats() const;       // IsReal
  std::vector<std::int64_t> Ints() const;  // IsWhole
};

struct Attribute {
  enum class Kind { kNone = 0, kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kFloats = 6, kInts = 7, kStrings = 8 };
  std::string name;
  Kind kind = Kind::kNone;
  float f = 0;
  std::int64_t i = 0;
  std::string s = {};
  std::optional<Tensor> t = {};
  std::vector<float> floats = {};
  std::vector<std::int64_t> ints = {};
  std::vector<std::string> strings = {};
};
Attribute IntAttribute(std::string name, std::int64_t value);
Attribute FloatAttribute(std::string name, double value);
Attribute StringAttribute(std::string name, std::string value);
Attribute IntsAttribute(std::string name, std::vector<std::int64_t> values);
Attribute FloatsAttribute(std::string name, std::vector<float> values);
Attribute StringsAttribute(std::string name, std::vector<std::string> values);

// A step of the computation: named values in, named values out.
struct Node {
  std::string op, name, domain;
  std::vector<std::string> inputs, outputs;  // "" stands for an optional one that is left out
  std::vector<Attribute> attributes;

  const Attribute* Find(std::string_view attribute) const;
  std::string Label() const;  // how an error names it: Conv 'conv1'
};

// An input or output of the graph. A dimension below 0 is not fixed; the first, the batch, is written as "N".
struct Value {
  std::string name;
  Type type = Type::kFloat;
  std::vector<std::int64_t> dims;
};

struct Document {
  std::int64_t ir_version = 7;
  std::int64_t opset = 13;
  std::int64_t ml_opset = 0;  // of ai.onnx.ml; 0: not used
  std::string producer = "freshet";
  std::string name = "model";  // of the graph
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<Value> inputs, outputs;
  std::vector<std::pair<std::string, std::string>> metadata;
};

// A file must be smaller than this (2 GB): protocol buffers can hold no more.
inline constexpr std::uint64_t kMostBytes = (std::uint64_t{1} << 31) - 1;

}  // namespace freshet::model::onnx
