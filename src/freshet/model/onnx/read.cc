// Field numbers are those of onnx.proto.

#include "model/onnx/read.h"

#include <bit>

#include "model/network/graph.h"
#include "model/onnx/read_tensor.h"
#include "model/onnx/wire.h"

namespace freshet::model::onnx {
namespace {

constexpr std::size_t kMostNodes = network::kMostLayers;
constexpr std::size_t kMostTensors = 8 * kMostNodes;
constexpr std::size_t kMostNames = 20 * kMostNodes;       // inputs and outputs of all nodes together
constexpr std::size_t kMostAttributes = 16 * kMostNodes;  // of all nodes together
constexpr std::size_t kMostMetadata = 1000;
constexpr std::size_t kMostDims = 8;
constexpr std::size_t kMostTexts = 100'000;

Error TooMany(std::string_view what, std::size_t most) {
  return {Code::kBadInput, Str("more than ", most, " ", what, "; freshet takes no larger graphs")};
}

class Reading {
 public:
  Result<Document> Model(std::string_view bytes) {
    document_.ir_version = document_.opset = 0;
    document_.producer.clear();
    std::optional<std::string_view> graph;
    WireReader reader(bytes);
    while (const auto field = TRY(reader.Next())) {
      if (field->number == 1) document_.ir_version = static_cast<std::int64_t>(field->value);
      if (field->number == 2) document_.producer = field->bytes;
      if (field->number == 7 && graph.has_value()) return Error{Code::kBadInput, "the file has two graphs"};
      if (field->number == 7) graph = field->bytes;
      if (field->number == 8) TRY(Opset(field->bytes));
      if (field->number == 14) TRY(Metadata(field->bytes));
    }
    if (!graph.has_value() || document_.ir_version < 1)
      return Error{Code::kBadInput, "not an ONNX file: it has no graph or no version"};
    if (document_.opset == 0)
      return Error{Code::kBadInput, "the file does not say which operator set (opset_import) it uses"};
    TRY(Count(*graph));
    TRY(Graph(*graph));
    return std::move(document_);
  }

 private:
  Result<void> Opset(std::string_view bytes) {
    std::string_view domain;
    std::int64_t version = 0;
    WireReader reader(bytes);
    while (const auto field = TRY(reader.Next())) {
      if (field->number == 1) domain = field->bytes;
      if (field->number == 2) version = static_cast<std::int64_t>(field->value);
    }
    if (domain.empty() || domain == "ai.onnx") document_.opset = version;
    if (domain == "ai.onnx.ml") document_.ml_opset = version;
    return {};
  }

  Result<void> Metadata(std::string_view bytes) {
    if (document_.metadata.size() >= kMostMetadata) return TooMany("entries of metadata", kMostMetadata);
    auto& entry = document_.metadata.emplace_back();
    WireReader reader(bytes);
    while (const auto field = TRY(reader.Next())) {
      if (field->number == 1) entry.first = field->bytes;
      if (field->number == 2) entry.second = field->bytes;
    }
    return {};
  }

  // Looks over the graph before anything is built.
  Result<void> Count(std::string_view bytes) {
    std::size_t nodes = 0, tensors = 0, values = 0;
    WireReader reader(bytes);
    while (const auto field = TRY(reader.Next())) {
      if (field->number == 1 && ++nodes > kMostNodes) return TooMany("nodes", kMostNodes);
      if (field->number == 5 && ++tensors > kMostTensors) return TooMany("tensors", kMostTensors);
      if ((field->number == 11 || field->number == 12) && ++values > 2 * kMostTensors)
        return TooMany("inputs and outputs", 2 * kMostTensors);
      if (field->number == 15) return Error{Code::kBadInput, "sparse_initializer: only dense tensors are known here"};
    }
    return {};
  }

  Result<void> Graph(std::string_view bytes) {
    WireReader reader(bytes);
    while (const auto field = TRY(reader.Next())) {
      if (field->number == 1) TRY(OneNode(field->bytes));
      if (field->number == 2) document_.name = field->bytes;
      if (field->number == 5) document_.initializers.push_back(TRY(ReadTensor(field->bytes)));
      if (field->number == 11) document_.inputs.push_back(TRY(OneValue(field->bytes)));
      if (field->number == 12) document_.outputs.push_back(TRY(OneValue(field->bytes)));
    }
    return {};
  }

  Result<void> OneNode(std::string_view bytes) {
    Node& node = document_.nodes.emplace_back();
    WireReader reader(bytes);
    while (const auto field = TRY(reader.Next())) {
      if ((field->number == 1 || field->number == 2) && ++names_ > kMostNames)
        return TooMany("inputs and outputs of nodes", kMostNames);
      if (field->number == 1) node.inputs.emplace_back(field->bytes);
      if (field->number == 2) node.outputs.emplace_back(field->bytes);
      if (field->number == 3) node.name = field->bytes;
      if (field->number == 4) node.op = field->bytes;
      if (field->number == 5 && ++attributes_ > kMostAttributes) return TooMany("attributes", kMostAttributes);
      if (field->number == 5) node.attributes.push_back(TRY(OneAttribute(field->bytes)));
      if (field->number == 7) node.domain = field->bytes == "ai.onnx" ? std::string_view() : field->bytes;
    }
    return {};
  }

  static Result<Attribute> OneAttribute(std::string_view bytes) {
    Attribute attribute;
    WireReader reader(bytes);
    while (const auto field = TRY(reader.Next())) {
      switch (field->number) {
        case 1:
          attribute.name = field->bytes;
          break;
        case 2:
          attribute.f = std::bit_cast<float>(static_cast<std::uint32_t>(field->value));
          break;
        case 3:
          attribute.i = static_cast<std::int64_t>(field->value);
          break;
        case 4:
          attribute.s = field->bytes;
          break;
        case 5:
          attribute.t = TRY(ReadTensor(field->bytes));
          break;
        case 7:
          TRY(AppendFloats(*field, attribute.floats));
          break;
        case 8:
          TRY(AppendInts(*field, attribute.ints));
          break;
        case 9:
          attribute.strings.emplace_back(field->bytes);
          if (attribute.strings.size() > kMostTexts) return TooMany("texts of an attribute", kMostTexts);
          break;
        case 20:
          attribute.kind = static_cast<Attribute::Kind>(field->value);
          break;
        default:  // subgraphs and what is only for people: nothing that is read here has them
          break;
      }
    }
    if (attribute.t.has_value() && attribute.t->outside.has_value())
      return Error{Code::kBadInput, Str("attribute ", Quoted(attribute.name), ": only whole tensors, not those of ",
                                        "attributes, can lie in another file")};
    if (attribute.kind == Attribute::Kind::kTensor && !attribute.t.has_value())
      return Error{Code::kBadInput, Str("attribute ", Quoted(attribute.name), " is to be a tensor but has none")};
    return attribute;
  }

  static Result<Value> OneValue(std::string_view bytes) {
    Value value;
    value.type = Type::kNone;
    WireReader reader(bytes);
    while (const auto field = TRY(reader.Next())) {
      if (field->number == 1) value.name = field->bytes;
      if (field->number != 2) continue;
      WireReader type(field->bytes);
      while (const auto kind = TRY(type.Next()))
        if (kind->number == 1) TRY(TensorType(kind->bytes, value));
    }
    return value;
  }

  static Result<void> TensorType(std::string_view bytes, Value& value) {
    WireReader reader(bytes);
    while (const auto field = TRY(reader.Next())) {
      if (field->number == 1) value.type = static_cast<Type>(field->value);
      if (field->number != 2) continue;
      WireReader shape(field->bytes);
      while (const auto dim = TRY(shape.Next())) {
        if (dim->number != 1) continue;
        if (value.dims.size() >= kMostDims) return TooMany(Str("dimensions of ", Quoted(value.name)), kMostDims);
        value.dims.push_back(TRY(Dimension(dim->bytes)));
      }
    }
    return {};
  }

  // A fixed size, or -1 for one that has a name or nothing.
  static Result<std::int64_t> Dimension(std::string_view bytes) {
    std::int64_t size = -1;
    WireReader reader(bytes);
    while (const auto field = TRY(reader.Next())) {
      if (field->number != 1) continue;
      size = static_cast<std::int64_t>(field->value);
      if (size < 0) return Error{Code::kBadInput, Str("a dimension of size ", size)};
    }
    return size;
  }

  Document document_;
  std::size_t names_ = 0, attributes_ = 0;
};

}  // namespace

Result<Document> Read(std::string_view bytes) {
  if (bytes.size() > kMostBytes)
    return Error{Code::kBadInput, Str(HumanBytes(static_cast<double>(bytes.size())), "; ONNX files are below 2 GB")};
  return Reading().Model(bytes);
}

}  // namespace freshet::model::onnx
