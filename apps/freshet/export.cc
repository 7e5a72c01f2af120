#include <nlohmann/json.hpp>

#include "model/onnx/export.h"
#include "model/onnx/write.h"
#include "results.h"
#include "verb.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string ShapeText(const std::vector<std::int64_t>& dims) {
  std::vector<std::string> parts;
  for (const std::int64_t dim : dims) parts.push_back(dim < 0 ? "N" : Str(dim));
  return Str("[", Join(parts, ", "), "]");
}

Json ValuesJson(const std::vector<model::onnx::Value>& values) {
  Json list = Json::array();
  for (const auto& value : values)
    list.push_back({{"name", value.name}, {"type", model::onnx::NameOf(value.type)}, {"shape", ShapeText(value.dims)}});
  return list;
}

std::string ValuesText(std::string_view what, const std::vector<model::onnx::Value>& values) {
  std::string text;
  for (const auto& value : values)
    text += Str(what, value.name, "  ", model::onnx::NameOf(value.type), " ", ShapeText(value.dims), "\n");
  return text;
}

Result<void> Run(Door& door, const Verb& verb, const std::vector<std::string>& arguments) {
  std::string from, onnx;
  bool ml = false, json = false;
  base::Settings settings;
  settings.Group("What");
  settings.Add("from", &from, "the model file", {.letter = 'i', .value = "FILE"});
  settings.Add("onnx", &onnx, "the ONNX file to write", {.letter = 'o', .value = "FILE"});
  settings.Add("onnx-ml", &ml, "linear models by the operators of ai.onnx.ml (LinearClassifier, LinearRegressor)");
  settings.Add("json", &json, "what was written as one JSON object");
  if (!TRY(ParseArguments(door, verb, arguments, settings))) return {};
  if (from.empty()) return Error{Code::kInvalid, "no model: name it with -i FILE"};
  if (onnx.empty()) return Error{Code::kInvalid, "nowhere to write to: name the file with --onnx FILE"};
  TRY(CheckPlaceFor(door.files, onnx));

  optimize::HeapMemory memory;
  const auto trained = TRY(model::LoadModel(door.files, from, memory));
  const auto exported = TRY(model::onnx::Export(trained, {.ml = ml}));
  TRY(base::WriteAtomic(door.files, onnx,
                        [&](base::OutputFile& file) { return model::onnx::Write(exported.document, file); }));
  if (onnx == "-") return {};
  const auto& document = exported.document;
  if (json) {
    const Json out = {{"schema", 1},
                      {"onnx", onnx},
                      {"opset", document.opset},
                      {"inputs", ValuesJson(document.inputs)},
                      {"outputs", ValuesJson(document.outputs)},
                      {"notes", exported.notes}};
    return Print(door.files, JsonLine(out));
  }
  std::string text =
      Str("wrote    ", onnx, ": ", trained.model->config().kind, ", ", document.nodes.size(), " nodes, opset ",
          document.opset, "\n", ValuesText("input    ", document.inputs), ValuesText("output   ", document.outputs));
  for (const std::string& note : exported.notes) text += Str("note     ", note, "\n");
  return Print(door.files, text);
}

}  // namespace

extern const Verb kExport = {"export", "a model as an ONNX file, for other programs", "-i MODEL --onnx FILE",
                             "  freshet export -i a9a.model --onnx a9a.onnx\n"
                             "  freshet export -i a9a.model --onnx a9a.onnx --onnx-ml    by LinearClassifier\n",
                             Run};

}  // namespace freshet::cli
