#include "serve/learn_request.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "serve/tensor_rows.h"

namespace freshet::serve {
namespace {

Error Bad(std::string text) { return {Code::kBadInput, std::move(text)}; }
Error Bad(const InputTensor& tensor, std::string_view text) { return Bad(tensor.where().Text().append(text)); }

// The tensors of a learn call that are no inputs of the model.
struct Extras {
  const InputTensor *labels = nullptr, *weights = nullptr, *times = nullptr, *ids = nullptr;

  const InputTensor** Find(std::string_view name) {
    if (name == "labels") return &labels;
    if (name == "weights") return &weights;
    if (name == "times") return &times;
    if (name == "ids") return &ids;
    return nullptr;
  }
};

bool IsInput(std::string_view name, const Signature& signature) {
  return std::any_of(signature.inputs().begin(), signature.inputs().end(),
                     [&](const TensorSpec& spec) { return spec.name == name; });
}

Result<void> ReadLabels(const InputTensor& tensor, const Signature& signature, ValueMemory& memory, data::Rows& rows) {
  TRY(CheckColumn(tensor, rows.size()));
  const auto done = signature.builder().SetLabels(TRY(ReadValues(tensor, Null::kRefused, memory)), rows);
  if (!done.ok()) return Bad(tensor, done.error().text);
  return {};
}

Result<void> ReadWeights(const InputTensor& tensor, ValueMemory& memory, data::Rows& rows) {
  TRY(CheckColumn(tensor, rows.size()));
  const auto weights = TRY(ReadFloats(tensor, Null::kRefused, memory));
  for (std::size_t r = 0; r < weights.size(); ++r)
    if (weights[r] < 0) return Bad(tensor, Str("value ", r, " is ", weights[r], ", expected 0 or more"));
  rows.weights.Clear();
  rows.weights.Append(weights);
  return {};
}

Result<void> ReadTimes(const InputTensor& tensor, ValueMemory& memory, data::Rows& rows) {
  TRY(CheckColumn(tensor, rows.size()));
  const auto times = TRY(ReadWholes(tensor, memory));
  rows.times.Clear();
  rows.times.Append(times);
  return {};
}

Result<void> ReadIds(const InputTensor& tensor, std::size_t rows, ValueMemory& memory, std::vector<std::string>& ids) {
  TRY(CheckColumn(tensor, rows));
  const auto texts = TRY(ReadTexts(tensor, Null::kRefused, memory));
  ids.resize(texts.size());
  for (std::size_t r = 0; r < texts.size(); ++r) {
    if (texts[r].empty() || texts[r].size() > LearnParser::kMostIdBytes)
      return Bad(tensor,
                 Str("value ", r, " has ", texts[r].size(), " bytes, expected 1 to ", LearnParser::kMostIdBytes));
    if (!simdjson::validate_utf8(texts[r].data(), texts[r].size()))
      return Bad(tensor, Str("value ", r, " is ", Quoted(texts[r]), ", expected UTF-8"));
    ids[r] = texts[r];
  }
  return {};
}

// A label in the body of a feedback call.
Result<float> LabelIn(simdjson::dom::element value, const data::RowBuilder& builder) {
  std::string_view text;
  double number = 0;
  bool truth = false;
  if (value.get(text) == simdjson::SUCCESS) return builder.Label(text);
  if (value.get(number) == simdjson::SUCCESS) return builder.Label(number);
  if (value.get(truth) == simdjson::SUCCESS) return builder.Label(truth ? 1.0 : 0.0);
  return Bad(Str("label is ", Shown(value), ", expected ", builder.description().labels.Expected()));
}

}  // namespace

struct LearnParser::State : ParserState {
  JsonBody feedback;
  std::vector<InputTensor> inputs;  // without the extras
  ValueMemory extra;
};

LearnParser::LearnParser() : state_(std::make_unique<State>()) {}
LearnParser::~LearnParser() = default;
LearnParser::LearnParser(LearnParser&&) noexcept = default;
LearnParser& LearnParser::operator=(LearnParser&&) noexcept = default;

Result<void> LearnParser::Parse(const Body& body, const Signature& signature, LearnRequest& request) {
  if (state_->Outgrown(body)) {
    *state_ = {};
    request = {};
  }
  const std::size_t columns = signature.description().columns.size();
  constexpr std::size_t kExtras = 4;
  TensorReader& reader = state_->reader;
  TRY(reader.Read(body, {std::max(InferParser::kMostTensors, columns + kExtras), InferParser::kMostTensors}));
  request.has_id = reader.has_id();
  request.id = reader.id();

  Extras extras;
  state_->inputs.clear();
  for (const InputTensor& input : reader.inputs()) {
    const InputTensor** const extra = IsInput(input.name, signature) ? nullptr : extras.Find(input.name);
    if (extra != nullptr)
      *extra = &input;
    else
      state_->inputs.push_back(input);
  }
  data::Rows& rows = request.rows;
  const bool clusters = signature.kinds()[0] == Output::kCluster;
  const bool labelled = extras.labels == nullptr && !clusters;  // every row has to bring its own
  TRY(state_->rows.Build(state_->inputs, signature, labelled, rows, request.names));
  if (extras.labels != nullptr) TRY(ReadLabels(*extras.labels, signature, state_->extra, rows));
  if (labelled &&
      std::any_of(rows.labels.span().begin(), rows.labels.span().end(), [](float l) { return std::isnan(l); }))
    return Bad("input 'labels' is missing, expected a label for each row");
  if (extras.weights != nullptr) TRY(ReadWeights(*extras.weights, state_->extra, rows));
  if (extras.times != nullptr) TRY(ReadTimes(*extras.times, state_->extra, rows));
  if (extras.ids != nullptr)
    TRY(ReadIds(*extras.ids, rows.size(), state_->extra, request.ids));
  else
    request.ids.clear();
  return {};
}

Result<void> LearnParser::ParseFeedback(std::string_view body, const Signature& signature, FeedbackRequest& request) {
  std::array<JsonField, 4> fields = {JsonField{"id"}, JsonField{"label"}, JsonField{"labels"}, JsonField{"owner"}};
  const auto& [id, label, labels, owner] = fields;
  TRY(FindFields(TRY(state_->feedback.Parse(body)), fields, UnknownKeys::kRefused));
  const std::string_view text = TRY(StringIn(id));
  if (text.empty() || text.size() > kMostIdBytes)
    return Bad(Str("id has ", text.size(), " bytes, expected 1 to ", kMostIdBytes));
  request.id = text;
  request.owner.reset();
  if (owner.found) request.owner = TRY(StringIn(owner));
  request.labels.clear();
  if (label.found == labels.found)
    return Bad(label.found ? "found both label and labels, expected one of them" : "label is missing");
  if (label.found) {
    request.labels.push_back(TRY(LabelIn(label.value, signature.builder())));
    return {};
  }
  for (const simdjson::dom::element value : TRY(ArrayIn(labels))) {
    if (request.labels.size() == TensorRows::kMostRows)
      return Bad(Str("labels has more than ", TensorRows::kMostRows, " values"));
    request.labels.push_back(TRY(LabelIn(value, signature.builder())));
  }
  return {};
}

}  // namespace freshet::serve
