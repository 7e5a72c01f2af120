#include "inspect_network.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/model_file.h"
#include "model/network/description.h"
#include "model/network/layer_costs.h"
#include "model/network/network.h"
#include "model/network/picture.h"
#include "model/network/program.h"
#include "model/network/remarks.h"
#include "model/network/zoo.h"
#include "table.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::ordered_json;
using model::network::Facts;
using model::network::Graph;
using model::network::Shape;

// "3x227x227".
Result<Shape> ShapeFrom(const std::string& text) {
  Shape shape;
  for (const std::string_view part : Split(text, 'x')) {
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), extent);
    if (error != std::errc{} || end != part.data() + part.size() || extent < 1 || shape.size() == 3)
      return Error{Code::kInvalid, Str("--input: found ", Quoted(text), ", expected 1 to 3 numbers, like 3x227x227")};
    shape.push_back(extent);
  }
  return shape;
}

// What a step of training computes for a row: forward and backward.
double StepFlops(const Graph& graph, const std::vector<Facts>& facts) {
  double sum = 0;
  for (std::size_t i = 1; i < facts.size(); ++i)
    sum += facts[i].flops * (1 + model::network::BackwardTimes(graph, facts, i));
  return sum;
}

std::string HeadText(const Graph& graph, std::size_t layer) {
  for (const model::network::Head& head : graph.heads)
    if (static_cast<std::size_t>(head.layer) == layer)
      return head.weight == 1 ? ", head" : Str(", head of weight ", head.weight);
  return "";
}

Json LayersOf(const Graph& graph, const std::vector<Facts>& facts, std::uint64_t batch) {
  Json layers = Json::array();
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const auto bytes = static_cast<std::uint64_t>(facts[i].elements()) * sizeof(float) * batch;
    layers.push_back({{"name", graph.layers[i].name},
                      {"op", NameOf(graph.layers[i].op)},
                      {"what", Summary(graph.layers[i]) + HeadText(graph, i)},
                      {"output", facts[i].shape},
                      {"parameters", facts[i].parameters()},
                      {"flops", facts[i].flops},
                      {"output_bytes", bytes}});
  }
  return layers;
}

Result<void> DrawTo(Door& door, const std::string& path, const Graph& graph, const std::vector<Facts>& facts) {
  const bool svg = path.ends_with(".svg");
  if (!svg && !path.ends_with(".dot"))
    return Error{Code::kInvalid, Str("--draw: found ", Quoted(path), ", expected a file that ends in .svg or .dot")};
  const std::string picture = svg ? ToSvg(graph, facts) : ToDot(graph, facts);
  return base::WriteAtomic(door.files, path, [&](base::OutputFile& file) { return file.Write(picture); });
}

// Numbers that the rule remembers for each parameter.
Result<int> SlotsOf(const std::string& rule) {
  optimize::HeapMemory memory;
  optimize::OptimizerOptions options;
  options.kind = rule;
  return TRY(optimize::Optimizer::Make(options, memory))->slots();
}

// Memory of one training step, as far as it can be known beforehand.
Result<Json> BytesOf(const Graph& graph, std::uint64_t parameters, int slots, const NetworkFlags& flags) {
  const auto program =
      TRY(model::network::Program::Compile(graph, {.rows = static_cast<std::size_t>(flags.batch), .training = true}));
  const std::uint64_t weights = parameters * sizeof(float);
  return Json{{"weights", weights},
              {"gradient", weights},
              {"optimizer_state", weights * static_cast<std::uint64_t>(slots)},
              {"arena", program->arena_bytes()}};
}

}  // namespace

void NetworkFlags::Register(base::Settings& settings) {
  std::vector<std::string> names;
  for (const auto& entry : model::network::Zoo()) names.emplace_back(entry.name);
  settings.Group("Networks");
  settings.Add("network", &network, Str("a text (.toml), a saved model, or one of ", Join(names, ", ")),
               {.value = "NET"});
  settings.Add("input", &input, "shape of its rows, like 3x227x227; empty: what the network was made for",
               {.value = "SHAPE"});
  settings.Add("classes", &classes, "scores it gives; 0: what the network was made for",
               {.value = "N", .most = 1 << 24});
  settings.Add("batch", &batch, "rows of a training step, for the memory it needs",
               {.value = "N", .least = 1, .most = 65536});
  settings.Add("optimizer", &optimizer, "whose state is counted", {.value = "NAME"});
  settings.Add("draw", &draw, "write a picture of it (.svg, or .dot for Graphviz)", {.value = "FILE"});
  settings.Add("toml", &toml, "print the text that describes it, to begin one's own from");
  ring.Register(settings);
}

Result<Graph> NetworkFlags::Open(Door& door) const {
  model::network::Fit fit{.classes = static_cast<std::int64_t>(classes)};
  if (!input.empty()) fit.input = TRY(ShapeFrom(input));
  if (network.ends_with(".toml")) {
    const std::string text = TRY(base::ReadAll(door.files, network));
    std::vector<std::uint32_t> lines;
    Graph graph = TRY(model::network::GraphFromToml(text, fit, &lines)
                          .While(Str("reading ", network, " (--input and --classes give what it leaves to the data)")));
    for (const std::string& remark : Remarks(graph, TRY(model::network::Infer(graph)), "", lines))
      door.log.Warn("network", "text", network, "remark", remark);
    if (fit.input.empty() || fit.input == graph.input) return graph;
    return Error{Code::kInvalid,
                 Str("--input ", input, ": ", network, " says its input is ", model::network::ShapeText(graph.input),
                     "; write input = \"data\" there to leave it open")};
  }
  for (const auto& entry : model::network::Zoo())
    if (entry.name == network)
      return model::network::MakeZoo(network, fit.input.empty() ? entry.input : fit.input,
                                     classes > 0 ? fit.classes : entry.classes);
  if (!door.files.Exists(network)) return model::network::MakeZoo(network, fit.input, fit.classes);
  optimize::HeapMemory memory;
  const auto trained = TRY(model::LoadModel(door.files, network, memory));
  if (const Graph* const graph = model::network::GraphOf(*trained.model)) return *graph;
  return Error{Code::kInvalid, Str(network, ": a ", trained.model->config().kind, " model, not a network")};
}

Result<Json> NetworkFlags::Describe(Door& door, const Graph& graph) const {
  const std::vector<Facts> facts = TRY(model::network::Infer(graph));
  if (!draw.empty()) TRY(DrawTo(door, draw, graph, facts));
  std::uint64_t parameters = 0, statistics = 0;
  double flops = 0;
  for (const Facts& fact : facts) {
    parameters += fact.parameters();
    flops += fact.flops;
    for (const optimize::Block& block : fact.blocks) statistics += block.follow > 0 ? block.rows * block.width : 0;
  }
  const int slots = TRY(SlotsOf(optimizer));
  const Json bytes = TRY(BytesOf(graph, parameters, slots, *this));
  Json ringed;
  if (ring.members > 0) ringed = TRY(ring.Describe(graph, batch, slots));
  Json described{{"input", graph.input},
                 {"target", NameOf(graph.target)},
                 {"batch", batch},
                 {"layers", LayersOf(graph, facts, batch)},
                 {"parameters", parameters},
                 {"statistics", statistics},
                 {"flops_forward_row", flops},
                 {"flops_step_row", StepFlops(graph, facts)},
                 {"optimizer", optimizer},
                 {"bytes", bytes}};
  if (ring.members > 0) described["ring"] = std::move(ringed);
  return described;
}

std::string NetworkText(const Json& network) {
  std::vector<std::vector<std::string>> rows = {{"layer", "what", "output", "parameters", "MFLOP", "memory"}};
  for (const Json& layer : network["layers"]) {
    const auto parameters = layer["parameters"].get<std::uint64_t>();
    rows.push_back({layer["name"].get<std::string>(), layer["what"].get<std::string>(),
                    model::network::ShapeText(layer["output"].get<Shape>()), parameters == 0 ? "" : Grouped(parameters),
                    Fixed(layer["flops"].get<double>() / 1e6, 2), HumanBytes(layer["output_bytes"].get<double>())});
  }
  const double batch = network["batch"].get<double>();
  const auto statistics = network["statistics"].get<std::uint64_t>();
  const auto bytes = [&](const char* key) { return HumanBytes(network["bytes"][key].get<double>()); };
  return Str(Table(rows, 3), "\nparameters  ", Grouped(network["parameters"].get<std::uint64_t>()),
             statistics == 0 ? "" : Str(", ", Grouped(statistics), " of them running statistics"), "\narithmetic  ",
             Fixed(network["flops_forward_row"].get<double>() / 1e9, 3), " GFLOP forward a row, ",
             Fixed(network["flops_step_row"].get<double>() * batch / 1e9, 2), " GFLOP a training step of ", batch,
             " rows\nmemory      ", bytes("weights"), " weights, ", bytes("gradient"), " gradient, ",
             bytes("optimizer_state"), " state of ", network["optimizer"].get<std::string>(), ", ", bytes("arena"),
             " for a training step of ", batch, " rows\n", network.contains("ring") ? RingText(network["ring"]) : "");
}

Result<void> InspectNetwork(Door& door, const NetworkFlags& flags, bool json) {
  const Graph graph = TRY(flags.Open(door));
  if (flags.toml) return Print(door.files, ToToml(graph));
  Json network = TRY(flags.Describe(door, graph));
  if (!json) return Print(door.files, NetworkText(network));
  Json out = {{"schema", 1}, {"network", flags.network}};
  out.update(network);
  return Print(door.files, out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace freshet::cli
