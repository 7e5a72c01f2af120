// Field numbers are those of onnx.proto. The graph is written last in the model, and its tensors last in the graph, so
// that the many small messages can be made first and the large tensors follow from where they lie.

#include "model/onnx/write.h"

#include "base/option.h"
#include "model/onnx/wire.h"

namespace freshet::model::onnx {
namespace {

// All of a tensor but its bytes, which end the message.
std::string TensorHead(const Tensor& tensor) {
  WireWriter out;
  for (const std::int64_t dim : tensor.dims) out.Int(1, dim);
  out.Int(2, static_cast<std::int64_t>(tensor.type));
  out.Bytes(8, tensor.name);
  out.Head(9, tensor.bytes.size());
  return out.message();
}

std::string Encoded(const Attribute& attribute) {
  WireWriter out;
  out.Bytes(1, attribute.name);
  switch (attribute.kind) {
    case Attribute::Kind::kFloat:
      out.Float(2, attribute.f);
      break;
    case Attribute::Kind::kInt:
      out.Int(3, attribute.i);
      break;
    case Attribute::Kind::kString:
      out.Bytes(4, attribute.s);
      break;
    case Attribute::Kind::kTensor:
      out.Bytes(5, TensorHead(*attribute.t) + std::string(attribute.t->bytes));
      break;
    case Attribute::Kind::kFloats:
      for (const float value : attribute.floats) out.Float(7, value);
      break;
    case Attribute::Kind::kInts:
      for (const std::int64_t value : attribute.ints) out.Int(8, value);
      break;
    case Attribute::Kind::kStrings:
      for (const std::string& value : attribute.strings) out.Bytes(9, value);
      break;
    case Attribute::Kind::kNone:
      break;
  }
  out.Int(20, static_cast<std::int64_t>(attribute.kind));
  return out.message();
}

std::string Encoded(const Node& node) {
  WireWriter out;
  for (const std::string& input : node.inputs) out.Bytes(1, input);
  for (const std::string& output : node.outputs) out.Bytes(2, output);
  out.Bytes(3, node.name);
  out.Bytes(4, node.op);
  for (const Attribute& attribute : node.attributes) out.Bytes(5, Encoded(attribute));
  if (!node.domain.empty()) out.Bytes(7, node.domain);
  return out.message();
}

std::string Encoded(const Value& value) {
  WireWriter shape;
  for (std::size_t d = 0; d < value.dims.size(); ++d) {
    WireWriter dim;
    if (value.dims[d] >= 0)
      dim.Int(1, value.dims[d]);
    else if (d == 0)
      dim.Bytes(2, "N");
    shape.Bytes(1, dim.message());
  }
  WireWriter tensor, type, out;
  tensor.Int(1, static_cast<std::int64_t>(value.type));
  tensor.Bytes(2, shape.message());
  type.Bytes(1, tensor.message());
  out.Bytes(1, value.name);
  out.Bytes(2, type.message());
  return out.message();
}

std::string EncodedOpset(std::string_view domain, std::int64_t version) {
  WireWriter out;
  out.Bytes(1, domain);
  out.Int(2, version);
  return out.message();
}

// The model without its graph.
void AddModel(const Document& document, WireWriter& out) {
  out.Int(1, document.ir_version);
  out.Bytes(2, document.producer);
  out.Bytes(8, EncodedOpset("", document.opset));
  if (document.ml_opset > 0) out.Bytes(8, EncodedOpset("ai.onnx.ml", document.ml_opset));
  for (const auto& [key, value] : document.metadata) {
    WireWriter entry;
    entry.Bytes(1, key);
    entry.Bytes(2, value);
    out.Bytes(14, entry.message());
  }
}

// The graph without its tensors.
std::string EncodedGraph(const Document& document) {
  WireWriter out;
  for (const Node& node : document.nodes) out.Bytes(1, Encoded(node));
  out.Bytes(2, document.name);
  for (const Value& input : document.inputs) out.Bytes(11, Encoded(input));
  for (const Value& output : document.outputs) out.Bytes(12, Encoded(output));
  return out.message();
}

}  // namespace

Result<void> Write(const Document& document, base::OutputFile& file) {
  const std::string graph = EncodedGraph(document);
  std::vector<std::string> heads;
  std::uint64_t graph_bytes = graph.size();
  for (const Tensor& tensor : document.initializers) {
    const std::string head = TensorHead(tensor);
    WireWriter framed;
    framed.Head(5, head.size() + tensor.bytes.size());
    heads.push_back(framed.message() + head);
    graph_bytes += heads.back().size() + tensor.bytes.size();
  }
  WireWriter model;
  AddModel(document, model);
  model.Head(7, graph_bytes);
  if (const std::uint64_t bytes = model.message().size() + graph_bytes; bytes > kMostBytes)
    return Error{Code::kInvalid,
                 Str("the model would make an ONNX file of ", HumanBytes(static_cast<double>(bytes)),
                     "; such files must stay below 2 GB. Train with fewer features (", Option("bits"), ") or factors")};
  TRY(file.Write(model.message()));
  TRY(file.Write(graph));
  for (std::size_t i = 0; i < heads.size(); ++i) {
    TRY(file.Write(heads[i]));
    TRY(file.Write(document.initializers[i].bytes));
  }
  return {};
}

}  // namespace freshet::model::onnx
