#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "inspect_network.h"
#include "inspect_state.h"
#include "model/model_file.h"
#include "model/network/description.h"
#include "model/network/network.h"
#include "results.h"
#include "verb.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::ordered_json;

// The name of a feature of a linear model over a table, where it has one.
std::string FeatureName(const data::Description& description, std::uint64_t feature) {
  if (!description.columns.empty() && feature < description.features)
    if (const auto names = description.NumberNames(); feature < names.size()) return names[feature];
  if (!description.dictionaries.empty() && feature >= description.features &&
      feature - description.features < description.dictionaries[0].size()) {
    const std::string_view key =
        description.dictionaries[0].Name(static_cast<std::uint32_t>(feature - description.features));
    const std::size_t equals = std::min(key.find('='), key.size());
    std::size_t category = 0;
    for (const data::Column& column : description.columns)
      if (column.kind == data::Column::Kind::kCategory && Str(category++) == key.substr(0, equals))
        return Str(column.name, key.substr(equals));
  }
  return Str(feature + static_cast<std::uint64_t>(description.format == "libsvm" ? description.index_base : 1));
}

Json TopWeights(const model::TrainedModel& trained, std::size_t count) {
  Json top = Json::array();
  if (!trained.model->traits().weighs_features) return top;
  const auto weights = trained.parameters.Values(0);
  std::vector<std::uint32_t> order(weights.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::uint32_t a, std::uint32_t b) { return std::abs(weights[a]) > std::abs(weights[b]); });
  for (std::size_t i = 0; i < count; ++i)
    top.push_back({{"feature", FeatureName(trained.description, order[i])}, {"weight", weights[order[i]]}});
  return top;
}

// 180,921 or 0.0023: as many digits as say something.
std::string Legible(double number) {
  const double size = std::abs(number);
  if (size >= 1000 && size < 1e15)
    return Str(number < 0 ? "-" : "", Grouped(static_cast<unsigned long long>(std::llround(size))));
  return Str(static_cast<float>(number));
}

std::string TargetText(const data::Target& target) {
  if (target.moving())
    return Str("follows the first ", Grouped(data::Target::kSettledRows), " labels, so far mean ",
               Legible(target.mean()), ", deviation ", Legible(target.deviation()));
  return Str("mean ", Legible(target.mean()), ", deviation ", Legible(target.deviation()));
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  std::vector<std::string> paths;
  std::uint64_t top = 10, records = 0;
  bool json = false;
  base::Settings settings;
  settings.Group("What");
  settings.Add("model", &paths, "the model file, or the directory of a deployment (STATE/MODEL)",
               {.letter = 'i', .value = "FILE", .positional = true});
  settings.Add("top", &top, "how many of the largest weights to show", {.value = "N"});
  settings.Add("records", &records, "of a deployment: show so many of the last records of its journal", {.value = "N"});
  settings.Add("json", &json, "as one JSON object");
  NetworkFlags network;
  network.Register(settings);
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (paths.empty() && settings.Given("network")) return InspectNetwork(door, network, json);
  if (paths.size() != 1) return Error{Code::kInvalid, "name one model file, or a network by --network"};
  if (settings.Given("network"))
    return Error{Code::kInvalid,
                 Str("name a network by --network or a model file, not both: found ", Quoted(paths[0]))};
  if (std::filesystem::is_directory(paths[0])) return InspectState(door, paths[0], records, json);
  optimize::HeapMemory memory;
  const auto trained = TRY(model::LoadModel(door.files, paths[0], memory));
  Json out;
  out["schema"] = 1;
  out["model"] = Json::parse(trained.model->config().ToJson());
  out["parameters"] = trained.parameters.size();
  out["blocks"] = Json::array();
  for (std::size_t b = 0; b < trained.parameters.blocks(); ++b) {
    const auto block = trained.parameters.block(b);
    out["blocks"].push_back({{"name", block.name}, {"rows", block.rows}, {"width", block.width}});
  }
  out["input"] = Json::parse(trained.description.ToJson());
  for (const char* key : {"rows", "epochs", "crc32c"})
    if (trained.metadata.contains(key)) out[key] = trained.metadata.at(key);
  out["top_weights"] = TopWeights(trained, top);
  const auto* const graph = model::network::GraphOf(*trained.model);
  if (graph != nullptr && network.toml) return Print(door.files, model::network::ToToml(*graph));
  if (graph != nullptr) out["network"] = TRY(network.Describe(door, *graph));
  if (json) return Print(door.files, JsonLine(out));

  const auto& config = trained.model->config();
  std::string text =
      Str("model    ", config.kind, ", ", config.loss, " loss, ", Grouped(trained.parameters.size()),
          " parameters, trained on ", trained.metadata.contains("rows") ? trained.metadata.at("rows") : "?", " rows\n");
  if (graph != nullptr) {
    text += NetworkText(out["network"]);
  } else {
    for (const auto& block : out["blocks"])
      text += Str("block    ", block["name"].get<std::string>(), "  ", Grouped(block["rows"].get<std::uint64_t>()),
                  " × ", block["width"].get<std::uint64_t>(), "\n");
  }
  const data::Description& input = trained.description;
  text += Str("input    ", input.format, input.dense ? Str(", ", input.features, " numbers a row") : ", sparse rows",
              input.decimal == ',' ? ", decimal comma" : "", input.standardise ? ", standardised" : "",
              input.bits > 0 ? Str(", hashed to ", input.bits, " bits") : "", "\n");
  if (!input.labels.names.empty()) text += Str("labels   ", Printable(Join(input.labels.names, ", ")), "\n");
  if (input.target.any()) text += Str("target   ", TargetText(input.target), "\n");
  for (const auto& weight : out["top_weights"])
    text += Str("weight   ", Fixed(weight["weight"].get<double>(), 4), "  ",
                Printable(weight["feature"].get<std::string>()), "\n");
  return Print(door.files, text);
}

}  // namespace

extern const Verb kInspect = {
    "inspect", "what is in a model file, a network, or the state of a deployment", "MODEL | STATE/NAME | --network NET",
    "  freshet inspect a9a.model\n"
    "  freshet inspect --json a9a.model | jq .blocks\n"
    "  freshet inspect freshet-state/ctr --records 5    its versions and the end of its journal\n"
    "  freshet inspect --network alexnet --batch 256    layers, parameters, arithmetic and memory\n"
    "  freshet inspect --network googlenet --draw googlenet.svg\n"
    "  freshet inspect --network googlenet --ring 4     who would hold and send what on a ring of workers\n"
    "  freshet inspect --network lenet5 --toml > mine.toml\n"
    "  freshet inspect --network mine.toml --draw mine.dot\n",
    Run};

}  // namespace freshet::cli
