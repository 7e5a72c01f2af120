#include "model/network/picture.h"

#include "model/network/picture_boxes.h"

namespace freshet::model::network {
namespace {

std::string Times(const Pair& pair) { return Str(pair[0], " × ", pair[1]); }

std::string Window(const Layer& layer) {
  std::string out = Times(layer.kernel);
  if (layer.stride != Pair{1, 1}) {
    out += " / ";
    out += layer.stride[0] == layer.stride[1] ? Str(layer.stride[0]) : Times(layer.stride);
  }
  return out;
}

// Does it belong into the box of what it reads?
bool TouchesUp(Op op) {
  return op == Op::kRelu || op == Op::kTanh || op == Op::kSigmoid || op == Op::kSoftmax || op == Op::kDropout ||
         op == Op::kClip || op == Op::kHardSwish || op == Op::kGelu || op == Op::kLogSoftmax;
}

std::string DotText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

}  // namespace

std::string ShapeText(const Shape& shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += Str(text.empty() ? "" : " × ", extent);
  return text;
}

std::string Summary(const Layer& layer) {
  std::string out(NameOf(layer.op));
  switch (layer.op) {
    case Op::kDense:
      return Str(out, " ", layer.outputs, layer.per_step ? " per step" : "");
    case Op::kConvolution:
      return Str(out, " ", layer.outputs, ", ", Window(layer),
                 layer.groups > 1 ? Str(", ", layer.groups, " groups") : "");
    case Op::kMaxPool:
    case Op::kAveragePool:
      return Str(out, " ", Window(layer));
    case Op::kLrn:
      return Str(out, " ", layer.size);
    case Op::kRelu:
      return layer.slope == 0 ? out : Str("leaky ", out, " ", layer.slope);
    case Op::kDropout:
      return Str(out, " ", layer.rate);
    case Op::kEmbedding:
      return Str(out, " ", layer.vocabulary, " to ", layer.outputs);
    case Op::kLstm:
    case Op::kGru:
      return Str(out, " ", layer.outputs, layer.sequence ? " per step" : "");
    case Op::kClip:
      return Str(out, " ", layer.least, " to ", layer.most);
    case Op::kAffine:
    case Op::kReshape:
      return Str(out, " ", ShapeText(layer.shape));
    default:
      return out;
  }
}

namespace picture {

std::vector<Box> Boxes(const Graph& graph, const std::vector<Facts>& facts) {
  const std::size_t count = graph.layers.size();
  std::vector<int> readers(count, 0);
  std::vector<std::string> heads(count);
  for (const Layer& layer : graph.layers)
    for (const int input : layer.inputs) ++readers[static_cast<std::size_t>(input)];
  for (const Head& head : graph.heads) {
    std::string& text = heads[static_cast<std::size_t>(head.layer)];
    text = head.weight == 1 ? "head" : Str("head, weight ", head.weight);
  }
  std::vector<Box> boxes;
  std::vector<std::size_t> box_of(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Layer& layer = graph.layers[i];
    const std::size_t before = layer.inputs.empty() ? 0 : static_cast<std::size_t>(layer.inputs[0]);
    const std::string out = Str(ShapeText(facts[i].shape), heads[i].empty() ? "" : Str(" · ", heads[i]));
    if (i > 0 && TouchesUp(layer.op) && before > 0 && readers[before] == 1 && heads[before].empty()) {
      Box& box = boxes[box_of[i] = box_of[before]];
      box.lines[box.lines.size() - 2] += Str(", ", Summary(layer));
      box.lines.back() = out;
      box.head = !heads[i].empty();
      continue;
    }
    Box box{{}, layer.op, {}, !heads[i].empty()};
    if (layer.name != Str(NameOf(layer.op), i) && layer.name != NameOf(layer.op)) box.lines.push_back(layer.name);
    box.lines.push_back(Summary(layer));
    box.lines.push_back(out);
    for (const int input : layer.inputs) box.from.push_back(box_of[static_cast<std::size_t>(input)]);
    box_of[i] = boxes.size();
    boxes.push_back(std::move(box));
  }
  return boxes;
}

const char* ColourOf(Op op) {
  switch (op) {
    case Op::kInput:
      return "#e2e2e2";
    case Op::kConvolution:
      return "#cfe3f7";
    case Op::kDense:
      return "#fbdcc0";
    case Op::kMaxPool:
    case Op::kAveragePool:
    case Op::kGlobalAveragePool:
      return "#d3ecd2";
    case Op::kLrn:
    case Op::kBatchNorm:
    case Op::kAffine:
      return "#e5daf3";
    case Op::kConcat:
    case Op::kSum:
    case Op::kProduct:
      return "#fdf3bf";
    case Op::kEmbedding:
    case Op::kLstm:
    case Op::kGru:
      return "#f8d2d8";
    default:
      return "#ffffff";
  }
}

}  // namespace picture

std::string ToDot(const Graph& graph, const std::vector<Facts>& facts) {
  std::string out =
      "digraph network {\n"
      "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=11];\n";
  const std::vector<picture::Box> boxes = picture::Boxes(graph, facts);
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    std::string label;
    for (const std::string& line : boxes[b].lines) label += Str(label.empty() ? "" : "\\n", DotText(line));
    out += Str("  n", b, " [label=\"", label, "\", fillcolor=\"", picture::ColourOf(boxes[b].op), "\"",
               boxes[b].head ? ", penwidth=2" : "", "];\n");
    for (const std::size_t from : boxes[b].from) out += Str("  n", from, " -> n", b, ";\n");
  }
  return out + "}\n";
}

}  // namespace freshet::model::network
