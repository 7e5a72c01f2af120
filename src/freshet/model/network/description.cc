// TOML to Graph. Everything wrong is said with its line.

#include "model/network/description.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/toml.h"
#include "model/network/description_ascii.h"
#include "model/network/description_fields.h"

namespace freshet::model::network {
namespace text {
namespace {

constexpr std::string_view kCommonKeys[] = {"name", "from", "activation", "head", "place"};

Error Wrong(const toml::source_region& at, const std::string& what) {
  return {Code::kInvalid, Str("network, line ", at.begin.line, ": ", what)};
}
Error Wrong(const toml::node& node, const std::string& what) { return Wrong(node.source(), what); }

// "did you mean …?", or everything there is.
std::string Suggest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? Str("expected one of ", Join(candidates, ", ")) : Str("did you mean ", nearest, "?");
}

Result<toml::table> Parsed(std::string_view text) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& problem) {
    return Wrong(problem.source(), std::string(problem.description()));
  }
}

class Reading {
 public:
  explicit Reading(const Fit& fit) : fit_(fit) {}

  Result<Graph> Run(std::string_view text, std::vector<std::uint32_t>* lines) {
    if (text.size() > kMostTextBytes)
      return Error{Code::kInvalid, Str("network: ", text.size(), " bytes of text; at most ", kMostTextBytes)};
    TRY(Top(TRY(Parsed(TRY(ToAscii(text))))));
    TRY(Check());
    if (lines != nullptr) *lines = std::move(lines_);
    return std::move(graph_);
  }

 private:
  Result<void> Top(const toml::table& table) {
    for (const auto& [key, node] : table) {
      const std::vector<std::string> known = {"input", "input-name", "target", "layers", "heads"};
      if (std::find(known.begin(), known.end(), key.str()) == known.end())
        return Wrong(key.source(), Str("key ", Quoted(key.str()), " is unknown; ", Suggest(key.str(), known)));
    }
    graph_ = Graph(TRY(Input(table)));
    if (const toml::node* const name = table.get("input-name")) graph_.layers[0].name = TRY(Word(*name, "a name"));
    Call(graph_.layers[0].name, 0);
    lines_.push_back(1);
    if (const toml::node* const target = table.get("target")) graph_.target = TRY(TargetOf(*target));
    const toml::node* const layers = table.get("layers");
    if (layers == nullptr || !layers->is_array())
      return Error{Code::kInvalid, "network: layers = [ … ] is missing; see docs/networks.md for the form"};
    if (layers->as_array()->size() >= kMostLayers)
      return Wrong(*layers, Str(layers->as_array()->size(), " layers; at most ", kMostLayers - 1));
    for (const toml::node& layer : *layers->as_array()) TRY(One(layer));
    return Heads(table.get("heads"));
  }

  // 1 to 3 whole numbers.
  static Result<Shape> ShapeOf(const toml::node& node, std::string_view key, std::string_view otherwise = "") {
    if (node.is_integer()) return Shape{node.as_integer()->get()};
    Shape shape;
    if (const toml::array* const array = node.as_array())
      for (const toml::node& extent : *array)
        if (extent.is_integer() && shape.size() < 3) shape.push_back(extent.as_integer()->get());
    if (shape.empty() || shape.size() != node.as_array()->size())
      return Wrong(node, Str(key, ": expected 1 to 3 whole numbers", otherwise));
    return shape;
  }

  Result<Shape> Input(const toml::table& table) const {
    const toml::node* const node = table.get("input");
    if (node == nullptr)
      return Error{Code::kInvalid,
                   "network: input is missing; write input = [channels, height, width], "
                   "[steps, features], [features] or \"data\""};
    if (node->is_string() && node->as_string()->get() == "data") {
      if (fit_.input.empty()) return Wrong(*node, "input = \"data\", but no data is given here; say its shape");
      return fit_.input;
    }
    return ShapeOf(*node, "input", ", or \"data\"");
  }

  static Result<std::string> Word(const toml::node& node, std::string_view what) {
    if (node.is_string() && !node.as_string()->get().empty()) return node.as_string()->get();
    return Wrong(node, Str("expected ", what, " in quotes"));
  }

  static Result<Target> TargetOf(const toml::node& node) {
    const std::string word = TRY(Word(node, "a target"));
    std::vector<std::string> known;
    for (const Target target : {Target::kLabel, Target::kInput, Target::kNext}) {
      if (word == NameOf(target)) return target;
      known.emplace_back(NameOf(target));
    }
    return Wrong(node, Str("target ", Quoted(word), " is unknown; ", Suggest(word, known)));
  }

  // One table of the list: a layer, and its activation.
  Result<void> One(const toml::node& node) {
    const toml::table* const table = node.as_table();
    if (table == nullptr) return Wrong(node, "expected a layer, like {dense = 10}");
    const Form& form = *TRY(FindForm(*table));
    TRY(CheckKeys(*table, form));
    Layer layer;
    layer.op = form.op;
    TRY(SetMain(layer, form, *table->get(NameOf(form.op))));
    for (const Field& field : form.fields)
      if (const toml::node* const value = table->get(field.key)) {
        TRY(Set(layer, field.member, field.key, *value));
        if (field.key == "pad") layer.pad_end = layer.pad;
      }
    if (!Joins(form.op)) layer.inputs = {last_};
    if (const toml::node* const from = table->get("from")) layer.inputs = {TRY(Find(*from))};
    const toml::node* const name = table->get("name");
    if (name != nullptr) layer.name = TRY(Word(*name, "a name"));
    return Put(std::move(layer), *table);
  }

  Result<void> Put(Layer layer, const toml::table& table) {
    const auto line = table.source().begin.line;
    if (const toml::node* const place = table.get("place")) place_ = TRY(Word(*place, "who holds it"));
    layer.place = place_;
    last_ = graph_.Add(std::move(layer));
    lines_.push_back(line);
    const std::string name = graph_.layers.back().name;
    if (called_.contains(name)) return Wrong(table, Str("the name ", Quoted(name), " is taken; give it another"));
    if (const toml::node* const activation = table.get("activation")) {
      const Op op = TRY(ActivationOf(*activation));
      last_ = graph_.Plain(op, last_);
      graph_.layers.back().place = place_;
      lines_.push_back(line);
      Call(graph_.layers.back().name, last_);
    }
    Call(name, last_);  // others read what the activation makes of it
    if (const toml::node* const head = table.get("head")) heads_.push_back({last_, TRY(Number(*head, "head"))});
    return {};
  }

  static Result<const Form*> FindForm(const toml::table& table) {
    const Form* found = nullptr;
    std::vector<std::string> kinds;
    for (const Form& form : Forms()) {
      kinds.emplace_back(NameOf(form.op));
      if (!table.contains(NameOf(form.op))) continue;
      if (found != nullptr)
        return Wrong(table, Str("a layer is one thing: found ", NameOf(found->op), " and ", NameOf(form.op)));
      found = &form;
    }
    if (found != nullptr) return found;
    for (const auto& [key, node] : table)
      if (const std::string nearest = Nearest(key.str(), kinds); !nearest.empty())
        return Wrong(key.source(), Str("no layer is called ", Quoted(key.str()), "; did you mean ", nearest, "?"));
    return Wrong(table, Str("which layer is this? Expected one of ", Join(kinds, ", ")));
  }

  static Result<void> CheckKeys(const toml::table& table, const Form& form) {
    std::vector<std::string> known = {std::string(NameOf(form.op))};
    for (const Field& field : form.fields) known.emplace_back(field.key);
    for (const std::string_view key : kCommonKeys)
      if (key != "from" || !Joins(form.op)) known.emplace_back(key);
    for (const auto& [key, node] : table)
      if (std::find(known.begin(), known.end(), key.str()) == known.end())
        return Wrong(key.source(), Str("key ", Quoted(key.str()), " is unknown to the layer ", NameOf(form.op), "; ",
                                       Suggest(key.str(), known)));
    return {};
  }

  Result<void> SetMain(Layer& layer, const Form& form, const toml::node& value) const {
    const std::string_view key = NameOf(form.op);
    if (Joins(form.op)) {
      const toml::array* const names = value.as_array();
      if (names == nullptr) return Wrong(value, Str(key, ": expected the layers it joins, like [\"a\", \"b\"]"));
      for (const toml::node& name : *names) layer.inputs.push_back(TRY(Find(name)));
      return {};
    }
    const toml::value<bool>* const truth = value.as_boolean();
    if (form.main_has_default && truth != nullptr && truth->get()) return {};
    if (std::holds_alternative<std::monostate>(form.main)) return Wrong(value, Str(key, ": expected true"));
    TRY(Set(layer, form.main, key, value));
    if (IsPool(form.op)) layer.stride = layer.kernel;
    return {};
  }

  Result<void> Set(Layer& layer, const Member& member, std::string_view key, const toml::node& value) const {
    if (const auto* const truth = std::get_if<bool Layer::*>(&member)) {
      if (!value.is_boolean()) return Wrong(value, Str(key, ": expected true or false"));
      layer.*(*truth) = value.as_boolean()->get();
    } else if (const auto* const count = std::get_if<std::int64_t Layer::*>(&member)) {
      const bool by_data = *count == &Layer::outputs || *count == &Layer::vocabulary;
      layer.*(*count) = TRY(Count(value, key, by_data));
    } else if (const auto* const number = std::get_if<double Layer::*>(&member)) {
      layer.*(*number) = TRY(Number(value, key));
    } else if (const auto* const pair = std::get_if<Pair Layer::*>(&member)) {
      layer.*(*pair) = TRY(PairOf(value, key));
    } else if (const auto* const shape = std::get_if<Shape Layer::*>(&member)) {
      layer.*(*shape) = TRY(ShapeOf(value, key));
    }
    return {};
  }

  static Result<double> Number(const toml::node& value, std::string_view key) {
    if (value.is_integer()) return static_cast<double>(value.as_integer()->get());
    if (value.is_floating_point()) return value.as_floating_point()->get();
    return Wrong(value, Str(key, ": expected a number"));
  }

  Result<std::int64_t> Count(const toml::node& value, std::string_view key, bool by_data) const {
    if (value.is_integer()) return value.as_integer()->get();
    if (!by_data) return Wrong(value, Str(key, ": expected a whole number"));
    const std::string word = value.is_string() ? value.as_string()->get() : "";
    if (word == "classes") {
      if (fit_.classes > 0) return fit_.classes;
      return Wrong(value, Str(key, " = \"classes\", but their number is not known here; say it"));
    }
    if (word != "input") return Wrong(value, Str(key, ": expected a whole number, \"classes\" or \"input\""));
    std::int64_t elements = 1;
    for (const std::int64_t extent : graph_.input) {
      if (extent < 1 || extent > kMostElements / elements) return Wrong(value, "the input is too large");
      elements *= extent;
    }
    return elements;
  }

  static Result<Pair> PairOf(const toml::node& value, std::string_view key) {
    if (value.is_integer()) return Pair{value.as_integer()->get(), value.as_integer()->get()};
    const toml::array* const array = value.as_array();
    if (array == nullptr || array->size() != 2 || !array->get(0)->is_integer() || !array->get(1)->is_integer())
      return Wrong(value, Str(key, ": expected a whole number, or two: [vertical, horizontal]"));
    return Pair{array->get(0)->as_integer()->get(), array->get(1)->as_integer()->get()};
  }

  static Result<Op> ActivationOf(const toml::node& node) {
    const std::string word = TRY(Word(node, "an activation"));
    std::vector<std::string> known;
    for (const Form& form : Forms()) {
      if (!IsActivation(form.op)) continue;
      if (word == NameOf(form.op)) return form.op;
      known.emplace_back(NameOf(form.op));
    }
    return Wrong(node, Str("activation ", Quoted(word), " is unknown; ", Suggest(word, known)));
  }

  void Call(const std::string& name, int layer) { called_.emplace(name, layer); }

  Result<int> Find(const toml::node& node) const {
    const std::string word = TRY(Word(node, "the name of a layer"));
    if (const auto at = called_.find(word); at != called_.end()) return at->second;
    std::vector<std::string> names;
    for (const auto& [name, layer] : called_) names.push_back(name);
    const std::string nearest = Nearest(word, names);
    return Wrong(node, Str("no layer before this one is called ", Quoted(word),
                           nearest.empty() ? "; name one by name = \"…\"" : Str("; did you mean ", nearest, "?")));
  }

  Result<void> Heads(const toml::node* node) {
    if (node != nullptr) return ListedHeads(*node);
    graph_.heads = {{last_, 1}};
    if (!heads_.empty() && heads_.back().layer == last_) {
      graph_.heads = {heads_.back()};
      heads_.pop_back();
    }
    graph_.heads.insert(graph_.heads.end(), heads_.begin(), heads_.end());
    return {};
  }

  Result<void> ListedHeads(const toml::node& node) {
    const toml::array* const array = node.as_array();
    if (!heads_.empty()) return Wrong(node, "say heads here or at their layers (head = weight), not both");
    if (array == nullptr) return Wrong(node, "heads: expected a list, like [{layer = \"scores\", weight = 1}]");
    for (const toml::node& one : *array) {
      const toml::table* const table = one.as_table();
      const toml::node* const layer = table == nullptr ? nullptr : table->get("layer");
      const toml::node* const weight = table == nullptr ? nullptr : table->get("weight");
      if (layer == nullptr || table->size() != (weight == nullptr ? 1u : 2u))
        return Wrong(one, "a head: expected {layer = \"name\", weight = number}");
      graph_.AddHead(TRY(Find(*layer)), weight == nullptr ? 1 : TRY(Number(*weight, "weight")));
    }
    return {};
  }

  // Does it make sense? The line at fault is that of the first layer with which the layers so far do not.
  Result<void> Check() const {
    const auto facts = Infer(graph_);
    if (facts.ok()) return {};
    std::size_t good = 0, bad = graph_.layers.size() + 1;
    while (bad - good > 1) {
      const std::size_t middle = good + (bad - good) / 2;
      (Infer(Beginning(middle)).ok() ? good : bad) = middle;
    }
    if (bad > graph_.layers.size()) return facts.error();
    return Error(facts.error()).While(Str("reading line ", lines_[bad - 1], " of the network's text"));
  }

  Graph Beginning(std::size_t layers) const {
    Graph part;
    part.input = graph_.input;
    part.layers.assign(graph_.layers.begin(), graph_.layers.begin() + static_cast<std::ptrdiff_t>(layers));
    part.AddHead(static_cast<int>(layers) - 1);
    return part;
  }

  const Fit& fit_;
  Graph graph_;
  std::vector<std::uint32_t> lines_;   // of every layer
  std::map<std::string, int> called_;  // what a name stands for
  std::vector<Head> heads_;            // said at layers
  int last_ = 0;
  std::string place_;  // of the layers from here on
};

}  // namespace
}  // namespace text

Result<Graph> GraphFromToml(std::string_view toml, const Fit& fit, std::vector<std::uint32_t>* lines) {
  return text::Reading(fit).Run(toml, lines);
}

}  // namespace freshet::model::network
