#include "model/onnx/export.h"

#include <nlohmann/json.hpp>

#include "base/option.h"
#include "model/onnx/export_kinds.h"

namespace freshet::model::onnx {
namespace {

using Json = nlohmann::json;

std::string LabelsJson(const data::Labels& labels) {
  return Json(labels.names).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> NotesFor(const TrainedModel& trained) {
  std::vector<std::string> notes;
  const data::Description& input = trained.description;
  if (trained.model->ratings() != nullptr) {
    notes.push_back(
        "users and items go in by number, in the order training first met them; their names cannot travel. -1 stands "
        "for one never seen");
    return notes;
  }
  const auto is_date = [](const data::Column& column) {
    return column.kind == data::Column::Kind::kDate || column.kind == data::Column::Kind::kDateTime;
  };
  for (const data::Column& column : input.columns)
    if (is_date(column))
      notes.push_back(Str("the dates of column ", Quoted(column.name), " go in as numbers in its place: year, month, ",
                          column.kind == data::Column::Kind::kDate ? "and weekday" : "weekday, and hour",
                          " (Monday is 1); ONNX cannot read dates"));
  if (!input.dense)
    notes.push_back(
        "the input is a dense vector with a place for each of the model's features, 0 where a row has none");
  if (input.bits > 0)
    notes.push_back(Str("features are hashed to ", input.bits,
                        " bits: ONNX cannot do that, so whoever calls the model must hash as freshet does"));
  else if (!input.dictionaries.empty())
    notes.push_back(
        "names of categories or ids cannot travel: each is a place in the vector, after the numeric columns, "
        "in the order training first met them");
  return notes;
}

}  // namespace

void AddAnswer(Builder& builder, const Loss& loss, const data::Target& target, const std::string& scores,
               const std::vector<std::int64_t>& dims, bool label) {
  const auto output = [&](std::string_view op, std::string_view name, std::vector<Attribute> attributes = {}) {
    builder.Output(builder.Node(op, {scores}, std::move(attributes), name), Type::kFloat, dims);
  };
  if (loss.name() == "softmax") {
    output("Softmax", "probabilities", {IntAttribute("axis", static_cast<std::int64_t>(dims.size()))});
    if (label)
      builder.Output(builder.Node("ArgMax", {scores}, {IntAttribute("axis", 1), IntAttribute("keepdims", 1)}, "label"),
                     Type::kInt64, {1});
    return;
  }
  if (target.any()) {
    const std::string deviation = builder.Scalar("target.deviation", static_cast<float>(target.deviation()));
    const std::string mean = builder.Scalar("target.mean", static_cast<float>(target.mean()));
    const std::string wide = builder.Node("Mul", {scores, deviation}, {}, "unscaled");
    builder.Output(builder.Node("Add", {wide, mean}, {}, "prediction"), Type::kFloat, dims);
    return;
  }
  if (loss.name() == "logistic")
    output("Sigmoid", "probability");
  else
    output("Identity", loss.name() == "hinge" ? "score" : "prediction");
  if (!label || loss.task() != data::Labels::Kind::kBinary) return;
  const std::string positive = builder.Node("Greater", {scores, builder.Scalar("zero", 0)});
  builder.Output(
      builder.Node("Cast", {positive}, {IntAttribute("to", static_cast<std::int64_t>(Type::kInt64))}, "label"),
      Type::kInt64, {1});
}

Result<Exported> Export(const TrainedModel& trained, const ExportOptions& options) {
  struct Entry {
    std::string_view kind;
    Result<void> (*add)(Builder& builder, const TrainedModel& trained, const ExportOptions& options);
  };
  constexpr Entry kRegistry[] = {{"linear", AddLinear},
                                 {"factorization", AddFactorization},
                                 {"fm", AddFactorizationMachine},
                                 {"kmeans", AddKMeans},
                                 {"network", AddNetwork}};
  const std::string& kind = trained.model->config().kind;
  if (options.ml && kind != "linear")
    return Error{Code::kInvalid,
                 Str("ai.onnx.ml has no operator for a model of kind ", kind, "; leave out ", Option("onnx-ml"))};
  Exported exported;
  exported.document.name = kind;
  exported.notes = NotesFor(trained);
  if (!trained.description.labels.names.empty())
    exported.document.metadata.emplace_back("labels", LabelsJson(trained.description.labels));
  Builder builder(exported.document);
  for (const Entry& entry : kRegistry) {
    if (entry.kind != kind) continue;
    TRY(entry.add(builder, trained, options));
    return exported;
  }
  return Error{Code::kInvalid, Str("a model of kind ", Quoted(kind), " cannot be exported yet")};
}

}  // namespace freshet::model::onnx
