#include "serve/tensors.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/utf8.h"

namespace freshet::serve {
namespace {

struct DatatypeRow {
  std::string_view name;
  std::size_t bytes;
};
// In the order of the enumeration.
constexpr std::array<DatatypeRow, 13> kDatatypes = {{{"BOOL", 1},
                                                     {"UINT8", 1},
                                                     {"UINT16", 2},
                                                     {"UINT32", 4},
                                                     {"UINT64", 8},
                                                     {"INT8", 1},
                                                     {"INT16", 2},
                                                     {"INT32", 4},
                                                     {"INT64", 8},
                                                     {"FP16", 2},
                                                     {"FP32", 4},
                                                     {"FP64", 8},
                                                     {"BYTES", 0}}};

std::vector<TensorSpec> InputsOf(const data::RowBuilder& builder) {
  const data::Description& description = builder.description();
  if (builder.form() == data::RowBuilder::Form::kNumbers)
    return {{"x", Datatype::kFp32, {-1, static_cast<std::int64_t>(description.features)}}};
  if (builder.form() == data::RowBuilder::Form::kIndices)
    return {{"indptr", Datatype::kInt64, {-1}}, {"indices", Datatype::kInt64, {-1}}, {"values", Datatype::kFp32, {-1}}};
  std::vector<TensorSpec> inputs;
  for (const data::Column& column : description.columns) {
    if (column.kind == data::Column::Kind::kNumber) inputs.push_back({column.name, Datatype::kFp32, {-1}});
    const bool text = column.kind == data::Column::Kind::kDate || column.kind == data::Column::Kind::kDateTime;
    if (text || column.kind == data::Column::Kind::kCategory) inputs.push_back({column.name, Datatype::kBytes, {-1}});
  }
  return inputs;
}

// Whether every score has a label with a name.
bool NamesLabels(const data::Labels& labels, const model::Model& model) {
  if (labels.kind != model.loss().task() || labels.kind == data::Labels::Kind::kReal) return false;
  return labels.names.size() == (model.scores() == 1 ? 2 : model.scores());
}

void AppendSpecs(const std::vector<TensorSpec>& specs, std::string& json) {
  for (const TensorSpec& spec : specs) {
    json += &spec == specs.data() ? "{\"name\":" : ",{\"name\":";
    AppendJsonString(spec.name, json);
    json += Str(",\"datatype\":\"", Name(spec.type), "\",\"shape\":[");
    for (std::size_t i = 0; i < spec.shape.size(); ++i) json += Str(i == 0 ? "" : ",", spec.shape[i]);
    json += "]}";
  }
}

void AppendEscaped(char c, std::string& json) {
  static constexpr char kHex[] = "0123456789abcdef";
  if (c == '"' || c == '\\')
    (json += '\\') += c;
  else if (c == '\n')
    json += "\\n";
  else
    ((json += "\\u00") += kHex[static_cast<unsigned char>(c) >> 4]) += kHex[static_cast<unsigned char>(c) & 15];
}

}  // namespace

std::string_view Name(Datatype type) { return kDatatypes[static_cast<std::size_t>(type)].name; }

std::size_t BytesOf(Datatype type) { return kDatatypes[static_cast<std::size_t>(type)].bytes; }

std::optional<Datatype> FindDatatype(std::string_view name) {
  for (std::size_t i = 0; i < kDatatypes.size(); ++i)
    if (kDatatypes[i].name == name) return static_cast<Datatype>(i);
  return std::nullopt;
}

Signature::Signature(const data::Description& description, const model::Model& model, bool open)
    : model_(model), open_(open), builder_(description), inputs_(InputsOf(builder_)) {
  if (model.traits().answers_clusters) {
    outputs_.push_back({"cluster", Datatype::kInt64, {-1}});
    kinds_.push_back(Output::kCluster);
    return;
  }
  outputs_.push_back({"score", Datatype::kFp32, {-1, static_cast<std::int64_t>(model.scores())}});
  kinds_.push_back(Output::kScore);
  if (!NamesLabels(description.labels, model)) return;
  outputs_.push_back({"label", Datatype::kBytes, {-1}});
  kinds_.push_back(Output::kLabel);
}

void Signature::AppendMetadata(std::string& json) const {
  json += "\"inputs\":[";
  AppendSpecs(inputs_, json);
  json += "],\"outputs\":[";
  AppendSpecs(outputs_, json);
  json += "]";
}

Result<std::uint64_t> ParseJsonBytes(std::string_view header) {
  std::uint64_t bytes = 0;
  const char* const end = header.data() + header.size();
  const auto [stop, error] = std::from_chars(header.data(), end, bytes);
  if (error == std::errc() && stop == end) return bytes;
  return Error{Code::kBadInput, Str("Inference-Header-Content-Length is ", Quoted(header),
                                    ", expected the number of bytes of the JSON")};
}

void AppendJsonString(std::string_view text, std::string& json) {
  json += '"';
  while (!text.empty()) {
    const auto plain = [](char c) { return c >= 0x20 && c != '"' && c != '\\'; };  // ASCII only: char is signed
    const auto stop = std::find_if_not(text.begin(), text.end(), plain);
    json.append(text.begin(), stop);
    text.remove_prefix(static_cast<std::size_t>(stop - text.begin()));
    if (text.empty()) break;
    const std::size_t bytes = base::CharacterBytes(text);
    if (bytes == 0)
      json += "\xef\xbf\xbd";
    else if (bytes == 1)
      AppendEscaped(text[0], json);
    else
      json += text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  json += '"';
}

}  // namespace freshet::serve
