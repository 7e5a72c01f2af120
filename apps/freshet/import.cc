#include "model/onnx/import.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/beneath.h"
#include "data/open.h"
#include "model/model_file.h"
#include "model/network/description.h"
#include "model/onnx/outside.h"
#include "model/onnx/read.h"
#include "results.h"
#include "verb.h"

namespace freshet::cli {
namespace {

using model::onnx::Imported;

struct ImportFlags {
  std::vector<std::string> paths;
  std::string out, loss = "auto", labels, like, format = "auto", label;
  double scale = 0;
  bool json = false;
  bool one_row = false;
};

// The names of the classes: a list, or a file with one a line.
Result<std::vector<std::string>> LabelsFrom(base::Files& files, const std::string& text) {
  std::vector<std::string> labels;
  if (text.empty()) return labels;
  const bool listed = !files.Exists(text);
  const std::string content = listed ? text : TRY(base::ReadAll(files, text));
  for (const std::string_view part : Split(content, listed ? ',' : '\n'))
    if (!Trim(part).empty()) labels.push_back(data::CanonicalLabel(Trim(part)));
  return labels;
}

Result<std::string> LossFor(const std::string& asked, const Imported& imported, std::int64_t scores) {
  if (asked != "auto") return std::string(TRY(model::FindLoss(asked))->name());
  if (!imported.loss.empty()) return imported.loss;
  return std::string(scores > 1 ? "softmax" : "squared");
}

// The labels of a model with so many scores.
Result<data::Labels> LabelsFor(const model::Loss& loss, std::vector<std::string> names, std::int64_t scores) {
  data::Labels labels;
  labels.kind = loss.task();
  const auto classes = static_cast<std::size_t>(labels.kind == data::Labels::Kind::kBinary ? 2 : scores);
  if (labels.kind == data::Labels::Kind::kReal) return labels;
  if (names.empty())
    for (std::size_t k = 0; k < classes; ++k) names.push_back(Str(k));
  if (names.size() != classes)
    return Error{Code::kInvalid, Str("--labels names ", names.size(), " classes; the network has ", classes)};
  labels.names = std::move(names);
  labels.Index();
  return labels;
}

// Without data to go by: images as MNIST's files have them, else tables of numbers with the label in the last column.
data::Description PlainDescription(const model::network::Shape& input) {
  std::uint64_t features = 1;
  for (const std::int64_t extent : input) features *= static_cast<std::uint64_t>(extent);
  data::Description description;
  description.dense = true;
  description.features = features;
  description.format = input.size() == 3 ? "idx" : "csv";
  if (input.size() == 3) {
    description.shape.assign(input.begin(), input.end());
    return description;
  }
  description.delimiter = ",";
  for (std::uint64_t j = 0; j < features; ++j) description.columns.push_back({Str("x", j + 1)});
  description.columns.push_back({"label", data::Column::Kind::kLabel});
  return description;
}

// As the rows of a file are.
Result<data::Description> DescriptionLike(Door& door, const ImportFlags& flags, const data::Labels& labels,
                                          const data::Description& plain) {
  base::ThreadPool pool(1);
  data::Input input;
  input.paths = {flags.like};
  input.options.format = flags.format;
  input.options.label = flags.label;
  input.options.standardise = false;
  input.options.task = labels.kind;
  input.options.classes = labels.names;
  data::Description description;
  TRY(data::Open(door.env(pool), input, description));
  const bool same_image = plain.shape.empty() || description.shape.empty() || plain.shape == description.shape;
  if (!description.dense || description.features != plain.features || !same_image)
    return Error{
        Code::kInvalid,
        Str(flags.like, ": its rows are ", description.dense ? Str(description.features, " numbers") : "sparse",
            "; the network takes ", plain.features, " numbers", same_image ? "" : " of an image of another shape")};
  if (description.shape.empty()) description.shape = plain.shape;
  return description;
}

Result<void> Save(Door& door, const ImportFlags& flags, const Imported& imported) {
  const auto facts = TRY(model::network::Infer(imported.graph));
  const std::int64_t scores = facts[static_cast<std::size_t>(imported.graph.heads[0].layer)].elements();
  model::ModelConfig config;
  config.kind = "network";
  config.loss = TRY(LossFor(flags.loss, imported, scores));
  config.dense = true;
  config.features = static_cast<std::uint64_t>(facts[0].elements());
  config.classes = static_cast<std::uint64_t>(scores);
  config.network = model::network::ToToml(imported.graph);
  const auto model = TRY(model::Model::Make(config));
  std::vector<std::string> names = TRY(LabelsFrom(door.files, flags.labels));
  if (names.empty()) names = imported.labels;
  const data::Labels labels = TRY(LabelsFor(model->loss(), std::move(names), scores));
  data::Description description = PlainDescription(imported.raw);
  if (!flags.like.empty()) description = TRY(DescriptionLike(door, flags, labels, description));
  description.labels = labels;
  description.view = imported.view;
  description.target = imported.target;
  if (imported.target.any() && !model->WantsScaledLabels())
    return Error{Code::kInvalid, Str("the graph ends with numbers that are scaled, as of a regression; --loss ",
                                     config.loss, " does not go with that, --loss squared does")};
  if (imported.scale != 1) description.scale = imported.scale;
  if (flags.scale > 0) description.scale = flags.scale;
  TRY(model::SaveModel(door.files, flags.out, *model, imported.parameters, description, {{"rows", "0"}}));
  if (flags.json)
    return Print(door.files, JsonLine({{"schema", 1},
                                       {"out", flags.out},
                                       {"layers", imported.graph.layers.size()},
                                       {"parameters", imported.parameters.size()},
                                       {"model", nlohmann::ordered_json::parse(config.ToJson())},
                                       {"input", nlohmann::ordered_json::parse(description.ToJson())}}));
  return Print(door.files,
               Str("wrote    ", flags.out, ": network of ", imported.graph.layers.size(), " layers, ",
                   Grouped(imported.parameters.size()), " parameters, ", config.loss, " loss\ninput    ",
                   description.format, ", ", description.features, " numbers a row, times ", description.scale, "\n"));
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  ImportFlags flags;
  std::vector<std::string> losses = model::LossNames(), formats = {"auto"};
  losses.insert(losses.begin(), "auto");
  for (const data::Format& format : data::Formats()) formats.emplace_back(format.name);
  base::Settings settings;
  settings.Group("What");
  settings.Add("onnx", &flags.paths, "the ONNX file", {.value = "FILE", .positional = true});
  settings.Add("out", &flags.out, "the model file to write (safetensors)", {.letter = 'o', .value = "FILE"});
  settings.Add("loss", &flags.loss, "what it is trained and judged by (auto: softmax, logistic or squared, as it ends)",
               {.value = "NAME", .choices = losses});
  settings.Add("labels", &flags.labels, "names of the classes in order: A,B,C, or a file with one a line",
               {.value = "NAMES"});
  settings.Add("json", &flags.json, "what was written as one JSON object");
  settings.Group("Input");
  settings.Add("like", &flags.like, "rows will be as in this file (else images as MNIST's files, tables as CSV)",
               {.value = "FILE"});
  settings.Add("format", &flags.format, "format of that file", {.value = "NAME", .choices = formats});
  settings.Add("label", &flags.label, "its label column by name or number from 1 (negative: from the end)",
               {.value = "COLUMN"});
  settings.Add("scale", &flags.scale, "multiply raw values by this (0: as the network or the file says)",
               {.value = "X", .least = 0});
  settings.Add("one-row", &flags.one_row, "the network's input has no batch: all of it is one row");
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (flags.paths.size() != 1) return Error{Code::kInvalid, "name one ONNX file"};
  if (flags.out.empty()) return Error{Code::kInvalid, "nowhere to write to: name the model file with -o FILE"};

  TRY(CheckPlaceFor(door.files, flags.out));
  const std::string& path = flags.paths[0];
  const auto file = TRY(door.files.OpenRead(path));
  if (file->size().value_or(0) > model::onnx::kMostBytes)
    return Error{Code::kBadInput, Str(path, ": ONNX files are below 2 GB; it has ", *file->size(), " bytes")};
  const std::string bytes = TRY(base::ReadAll(door.files, path));
  const auto with_path = [&](const Error& error) { return Error{error.code, Str(path, ": ", error.text)}; };
  auto document = model::onnx::Read(bytes);
  if (!document.ok()) return with_path(document.error());
  const std::string folder = std::filesystem::path(path).parent_path();
  const auto outside = model::onnx::ReadOutside(document.value(),
                                                [&](std::string_view name) { return base::OpenBeneath(folder, name); });
  if (!outside.ok()) return with_path(outside.error());
  optimize::HeapMemory memory;
  auto imported = model::onnx::Import(document.value(), memory, {.one_row = flags.one_row});
  if (!imported.ok()) return with_path(imported.error());
  return Save(door, flags, imported.value());
}

}  // namespace

extern const Verb kImport = {"import", "a network from an ONNX file, to serve it and to train it further",
                             "NET.onnx -o MODEL",
                             "  freshet import squeezenet.onnx -o squeezenet.model --labels imagenet.txt\n"
                             "  freshet import digits.onnx -o digits.model --like t10k-images-idx3-ubyte.gz\n",
                             Run};

}  // namespace freshet::cli
