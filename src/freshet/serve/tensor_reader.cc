#include "serve/tensor_reader.h"

#include <algorithm>

namespace freshet::serve {
namespace {

constexpr std::size_t kMostIdBytes = 128;
constexpr std::string_view kParameters = "parameters";

Error Bad(std::string text) { return {Code::kBadInput, std::move(text)}; }

Error Bad(const Where& where, std::string_view text) { return Bad(where.Text().append(text)); }

std::string AllDatatypes() {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(Datatype::kBytes); ++i) names.emplace_back(Name(static_cast<Datatype>(i)));
  return Join(names, ", ");
}

// An array says how long it is up to this; longer ones have to be counted.
constexpr std::size_t kCountedTo = 0xffffff;
std::uint64_t LengthOf(simdjson::dom::array array) {
  if (const std::size_t size = array.size(); size < kCountedTo) return size;
  return static_cast<std::uint64_t>(std::distance(array.begin(), array.end()));
}

Result<void> ReadShape(simdjson::dom::array shape, InputTensor& tensor) {
  tensor.count = 1;
  bool whole = true, negative = false, overflow = false;
  for (const simdjson::dom::element size : shape) {
    std::int64_t number = 0;
    whole &= size.get(number) == simdjson::SUCCESS;
    negative |= number < 0;
    if (tensor.dimensions == InputTensor::kMostSizes)
      return Bad(tensor.where(), Str("shape has more than ", InputTensor::kMostSizes, " sizes"));
    tensor.sizes[tensor.dimensions++] = static_cast<std::uint64_t>(number);
    overflow |= __builtin_mul_overflow(tensor.count, static_cast<std::uint64_t>(number), &tensor.count);
  }
  if (whole && !negative && !overflow && tensor.dimensions > 0) [[likely]]
    return {};
  std::vector<std::string> sizes;
  for (const simdjson::dom::element size : shape) sizes.push_back(Shown(size));
  return Bad(tensor.where(), Str("shape [", Join(sizes, ","), "] ",
                                 !whole                   ? "has a size that is no whole number"
                                 : negative               ? "has a negative size"
                                 : tensor.dimensions == 0 ? "is empty, expected the number of rows first"
                                                          : "has more values than can be counted"));
}

// Whether arrays within arrays have the sizes that the shape says, down to the values.
bool FitsShape(simdjson::dom::array data, const InputTensor& tensor, std::size_t dimension) {
  if (LengthOf(data) != tensor.sizes[dimension]) return false;
  if (dimension + 1 == tensor.dimensions) return true;
  return std::all_of(data.begin(), data.end(), [&](simdjson::dom::element element) {
    simdjson::dom::array inner;
    return element.get(inner) == simdjson::SUCCESS && FitsShape(inner, tensor, dimension + 1);
  });
}

Result<void> CheckLength(InputTensor& tensor) {
  const auto first = tensor.data.begin();
  tensor.nested = tensor.dimensions > 1 && first != tensor.data.end() && (*first).is_array();
  if (tensor.nested) {
    if (FitsShape(tensor.data, tensor, 0)) return {};
    return Bad(tensor.where(), Str("data is not nested as shape ", tensor.ShapeText(), " says"));
  }
  const std::uint64_t found = LengthOf(tensor.data);
  if (found == tensor.count) [[likely]]
    return {};
  return Bad(tensor.where(), Str("shape ", tensor.ShapeText(), " needs ", tensor.count,
                                 tensor.count == 1 ? " value, got " : " values, got ", found));
}

// The one parameter we know of a tensor, a request or an output; others are nobody's mistake.
Result<JsonField> ReadParameter(const JsonField& parameters, std::string_view name, Where where) {
  JsonField field{name};
  if (!parameters.found) return field;
  const simdjson::dom::object object = TRY(ObjectIn(parameters, where));
  where.part = kParameters;
  TRY(FindFields(object, {&field, 1}, UnknownKeys::kIgnored, where));
  return field;
}

}  // namespace

std::uint64_t InputTensor::row_size() const {
  std::uint64_t product = 1;
  for (std::size_t i = 1; i < dimensions; ++i) product *= sizes[i];  // a part of count, unless there are no rows
  return product;
}

std::string InputTensor::ShapeText() const {
  std::string text = "[";
  for (std::size_t i = 0; i < dimensions; ++i) text += Str(i == 0 ? "" : ",", sizes[i]);
  return text + "]";
}

Result<void> TensorReader::Read(const Body& body, const Limits& limits) {
  inputs_.clear();
  outputs_.clear();
  has_binary_ = body.json_bytes.has_value();
  if (has_binary_ && *body.json_bytes > body.bytes.size())
    return Bad(Str("Inference-Header-Content-Length is ", *body.json_bytes, ", but the body has ", body.bytes.size(),
                   " bytes"));
  const std::size_t json_bytes = static_cast<std::size_t>(body.json_bytes.value_or(body.bytes.size()));
  binary_ = body.bytes.substr(json_bytes);
  const simdjson::dom::object root = TRY(json_.Parse(body.bytes.substr(0, json_bytes)));

  std::array<JsonField, 4> fields = {JsonField{"id"}, JsonField{"parameters"}, JsonField{"inputs"},
                                     JsonField{"outputs"}};
  const auto& [id, parameters, inputs, outputs] = fields;
  TRY(FindFields(root, fields, UnknownKeys::kIgnored));
  has_id_ = id.found;
  id_ = id.found ? TRY(StringIn(id)) : "";
  if (id_.size() > kMostIdBytes) return Bad(Str("id has ", id_.size(), " bytes, expected at most ", kMostIdBytes));
  const JsonField binary = TRY(ReadParameter(parameters, "binary_data_output", {}));
  binary_outputs_ = binary.found && TRY(BoolIn(binary, {.part = kParameters}));

  const simdjson::dom::array all = TRY(ArrayIn(inputs));
  if (LengthOf(all) > limits.inputs)
    return Bad(Str("inputs has ", LengthOf(all), " tensors, expected at most ", limits.inputs));
  TRY(ReadInputs(all));
  if (!outputs.found) return {};
  const simdjson::dom::array wanted = TRY(ArrayIn(outputs));
  if (LengthOf(wanted) > limits.outputs)
    return Bad(Str("outputs has ", LengthOf(wanted), " tensors, expected at most ", limits.outputs));
  return ReadOutputs(wanted);
}

Result<void> TensorReader::ReadInputs(simdjson::dom::array inputs) {
  names_.clear();
  for (const simdjson::dom::element element : inputs) {
    inputs_.push_back(TRY(ReadInput(element)));
    names_.push_back(inputs_.back().name);
  }
  std::sort(names_.begin(), names_.end());
  const auto twice = std::adjacent_find(names_.begin(), names_.end());
  if (twice != names_.end()) return Bad(Where{"input", *twice}, "stands twice");
  if (inputs_.empty()) return Bad("inputs is empty, expected at least one tensor");
  if (!binary_.empty()) return Bad(Str("the body has ", binary_.size(), " bytes after the last binary tensor"));
  return {};
}

Result<InputTensor> TensorReader::ReadInput(simdjson::dom::element element) {
  const Where nameless{.what = "inputs", .index = inputs_.size()};
  simdjson::dom::object object;
  if (element.get(object) != simdjson::SUCCESS)
    return Bad(nameless, Str("found ", Shown(element), ", expected an object"));
  std::array<JsonField, 5> fields = {JsonField{"name"}, JsonField{"shape"}, JsonField{"datatype"},
                                     JsonField{"parameters"}, JsonField{"data"}};
  const auto& [name, shape, datatype, parameters, data] = fields;
  TRY(FindFields(object, fields, UnknownKeys::kIgnored, nameless));
  InputTensor tensor;
  tensor.name = TRY(StringIn(name, nameless));
  const Where where = tensor.where();
  const std::string_view type = TRY(StringIn(datatype, where));
  const std::optional<Datatype> known = FindDatatype(type);
  if (!known) return Bad(where, Str("datatype ", Quoted(type), ", expected one of ", AllDatatypes()));
  tensor.type = *known;
  TRY(ReadShape(TRY(ArrayIn(shape, where)), tensor));
  const JsonField size = TRY(ReadParameter(parameters, "binary_data_size", where));
  if (size.found) {
    if (data.found) return Bad(where, "has both data and binary_data_size, expected one of them");
    TRY(ReadBinaryData(size, tensor));
    return tensor;
  }
  tensor.data = TRY(ArrayIn(data, where));
  if (tensor.type == Datatype::kFp16) return Bad(where, "FP16 has no JSON form, expected binary data");
  TRY(CheckLength(tensor));
  return tensor;
}

Result<void> TensorReader::ReadBinaryData(const JsonField& size, InputTensor& tensor) {
  Where where = tensor.where();
  if (!has_binary_)
    return Bad(where, "has binary_data_size, but the request has no header Inference-Header-Content-Length");
  where.part = kParameters;
  const std::uint64_t bytes = TRY(WholeIn(size, where));
  if (bytes > binary_.size())
    return Bad(where, Str("binary_data_size is ", bytes, ", but ", binary_.size(), " bytes are left in the body"));
  // Each string has 4 bytes before it at least; the exact sizes come to light when they are read.
  const bool strings = tensor.type == Datatype::kBytes;
  std::uint64_t needed = 0;
  const bool overflow = __builtin_mul_overflow(tensor.count, strings ? 4 : BytesOf(tensor.type), &needed);
  if (overflow || (strings ? bytes < needed : bytes != needed))
    return Bad(tensor.where(), Str("shape ", tensor.ShapeText(), " of ", Name(tensor.type), " needs ",
                                   overflow  ? "more bytes than can be counted"
                                   : strings ? Str("at least ", needed, " bytes")
                                             : Str(needed, " bytes"),
                                   ", got ", bytes));
  tensor.binary = true;
  tensor.bytes = binary_.substr(0, bytes);
  binary_.remove_prefix(bytes);
  return {};
}

Result<void> TensorReader::ReadOutputs(simdjson::dom::array outputs) {
  for (const simdjson::dom::element element : outputs) {
    const Where nameless{.what = "outputs", .index = outputs_.size()};
    simdjson::dom::object object;
    if (element.get(object) != simdjson::SUCCESS)
      return Bad(nameless, Str("found ", Shown(element), ", expected an object"));
    std::array<JsonField, 2> fields = {JsonField{"name"}, JsonField{"parameters"}};
    const auto& [name, parameters] = fields;
    TRY(FindFields(object, fields, UnknownKeys::kIgnored, nameless));
    OutputTensor tensor{TRY(StringIn(name, nameless)), binary_outputs_};
    const Where where{"output", tensor.name};
    const JsonField binary = TRY(ReadParameter(parameters, "binary_data", where));
    if (binary.found) tensor.binary = TRY(BoolIn(binary, {"output", tensor.name, 0, kParameters}));
    for (const OutputTensor& other : outputs_)
      if (other.name == tensor.name) return Bad(where, "stands twice");
    outputs_.push_back(tensor);
  }
  return {};
}

}  // namespace freshet::serve
