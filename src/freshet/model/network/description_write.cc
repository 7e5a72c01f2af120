// Graph to TOML: one line for each layer, saying only what does not follow from the rest.

#include <algorithm>
#include <optional>

#include "model/network/description.h"
#include "model/network/description_fields.h"

namespace freshet::model::network {
namespace text {
namespace {

std::string Text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (byte < 0x20 || byte == 0x7f) {
      constexpr char kHex[] = "0123456789abcdef";
      out += Str("\\u00", kHex[byte >> 4], kHex[byte & 15]);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string Text(double number) {
  std::string text = Str(number);
  // A whole number this long would not fit TOML's integers.
  if (text.size() > 15 && text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string Text(const Pair& pair) { return pair[0] == pair[1] ? Str(pair[0]) : Str("[", pair[0], ", ", pair[1], "]"); }
std::string Text(const Shape& shape) {
  std::vector<std::string> extents;
  for (const std::int64_t extent : shape) extents.push_back(Str(extent));
  return Str("[", Join(extents, ", "), "]");
}
std::string Text(bool truth) { return Str(truth); }
std::string Text(std::int64_t number) { return Str(number); }

// The member of `layer` as text, or nothing when it is the same in `usual`.
std::optional<std::string> Difference(const Member& member, const Layer& layer, const Layer& usual) {
  return std::visit(
      [&](const auto& pointer) -> std::optional<std::string> {
        if constexpr (std::is_same_v<std::decay_t<decltype(pointer)>, std::monostate>) {
          return std::nullopt;
        } else {
          if (layer.*pointer == usual.*pointer) return std::nullopt;
          return Text(layer.*pointer);
        }
      },
      member);
}

class Writing {
 public:
  explicit Writing(const Graph& graph) : graph_(graph), usages_(graph.layers.size()) {
    for (std::size_t i = 0; i < graph.layers.size(); ++i)
      for (const int input : graph.layers[i].inputs) {
        Usage& usage = usages_[Number(input)];
        ++usage.readers;
        if (Number(input) + 1 != i || Joins(graph.layers[i].op)) usage.called = true;
      }
    for (const Head& head : graph.heads) usages_[Number(head.layer)].head = true;
    short_heads_ = HeadsFollow();
    if (!short_heads_)
      for (const Head& head : graph.heads) usages_[Number(head.layer)].called = true;
  }

  std::string Run() {
    std::string out = "input = [";
    for (std::size_t d = 0; d < graph_.input.size(); ++d) out += Str(d == 0 ? "" : ", ", graph_.input[d]);
    out += "]\n";
    if (graph_.layers[0].name != "input") out += Str("input-name = ", Text(graph_.layers[0].name), "\n");
    if (graph_.target != Target::kLabel) out += Str("target = ", Text(NameOf(graph_.target)), "\n");
    const std::string layers = Layers();
    return out + Heads() + layers;
  }

 private:
  struct Usage {
    int readers = 0;
    bool head = false;
    bool called = false;         // by its name, somewhere
    std::size_t written_as = 0;  // the layer whose line stands for it
  };
  static std::size_t Number(int layer) { return static_cast<std::size_t>(layer); }

  // Do the heads follow from the lines of the layers: first the last layer's, then the others in order?
  bool HeadsFollow() const {
    const auto& heads = graph_.heads;
    if (heads.empty() || Number(heads[0].layer) + 1 != graph_.layers.size() || heads[0].layer == 0) return false;
    for (std::size_t h = 1; h < heads.size(); ++h)
      if (heads[h].layer <= (h == 1 ? 0 : heads[h - 1].layer) || heads[h].layer >= heads[0].layer) return false;
    return true;
  }

  // Is layer i + 1 no more than the activation of layer i?
  bool ActivationFollows(std::size_t i) const {
    if (i == 0 || i + 1 >= graph_.layers.size() || usages_[i].readers != 1 || usages_[i].head) return false;
    const Layer& next = graph_.layers[i + 1];
    return IsActivation(next.op) && next.slope == 0 && !next.approximate && next.place == graph_.layers[i].place &&
           next.inputs == std::vector{static_cast<int>(i)} && next.name == DefaultName(i + 1);
  }
  std::string DefaultName(std::size_t i) const { return Str(NameOf(graph_.layers[i].op), i); }
  std::string Called(int layer) const { return Text(graph_.layers[usages_[Number(layer)].written_as].name); }

  std::string Names(const std::vector<int>& layers) const {
    std::vector<std::string> names;
    for (const int layer : layers) names.push_back(Called(layer));
    return Str("[", Join(names, ", "), "]");
  }

  std::string Layers() {
    std::string out = "layers = [\n";
    for (std::size_t i = 1; i < graph_.layers.size(); ++i) {
      const std::size_t first = i;
      usages_[i].written_as = first;
      if (ActivationFollows(i)) usages_[++i].written_as = first;
      out += Str("  {", Line(first, i), "},\n");
    }
    return out + "]\n";
  }

  std::string Line(std::size_t i, std::size_t last) const {
    const Layer& layer = graph_.layers[i];
    std::string out = Main(layer);
    const auto add = [&](std::string_view key, const std::string& value) { out += Str(", ", key, " = ", value); };
    Layer usual;
    usual.pad_end = layer.pad;
    if (IsPool(layer.op)) usual.stride = layer.kernel;
    for (const Field& field : FormOf(layer.op).fields)
      if (const auto value = Difference(field.member, layer, usual)) add(field.key, *value);
    if (!Joins(layer.op) && layer.inputs != std::vector{static_cast<int>(i) - 1}) add("from", Called(layer.inputs[0]));
    if (last != i) add("activation", Text(NameOf(graph_.layers[last].op)));
    if (layer.name != DefaultName(i) || usages_[last].called) add("name", Text(layer.name));
    if (layer.place != graph_.layers[i - 1].place) add("place", Text(layer.place));  // else as the one before
    if (!short_heads_) return out;
    for (const Head& head : graph_.heads)
      if (Number(head.layer) == last && !(head.layer == graph_.heads[0].layer && head.weight == 1))
        add("head", Text(head.weight));
    return out;
  }

  std::string Main(const Layer& layer) const {
    const Form& form = FormOf(layer.op);
    if (Joins(layer.op)) return Str(NameOf(layer.op), " = ", Names(layer.inputs));
    Layer usual;
    if (form.op == Op::kDropout || form.op == Op::kLrn ||
        IsPool(form.op)) {  // worth saying even when it is the default
      usual.rate = usual.size = -1;
      usual.kernel = {-1, -1};
    }
    return Str(NameOf(layer.op), " = ", Difference(form.main, layer, usual).value_or("true"));
  }

  std::string Heads() const {
    if (short_heads_) return "";
    std::vector<std::string> heads;
    for (const Head& head : graph_.heads)
      heads.push_back(Str("{layer = ", Called(head.layer), ", weight = ", Text(head.weight), "}"));
    return Str("heads = [", Join(heads, ", "), "]\n");
  }

  const Graph& graph_;
  std::vector<Usage> usages_;
  bool short_heads_ = false;
};

}  // namespace
}  // namespace text

std::string ToToml(const Graph& graph) { return text::Writing(graph).Run(); }

}  // namespace freshet::model::network
