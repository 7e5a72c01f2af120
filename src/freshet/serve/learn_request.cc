#include "serve/learn_request.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/option.h"
#include "data/row_cells.h"
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

// What to do about a label that is none of the classes.
std::string AdviceOn(const Signature& signature) {
  return signature.description().labels.kind == data::Labels::Kind::kClasses && !signature.open()
             ? Str("; a server started with ", Option("new-classes"), " N learns labels it has not met")
             : "";
}

Result<void> ReadLabels(const InputTensor& tensor, const Signature& signature, ValueMemory& memory,
                        LearnRequest& request) {
  TRY(CheckColumn(tensor, request.rows.size()));
  const auto done =
      signature.builder().SetLabels(TRY(ReadValues(tensor, Null::kRefused, memory)), request.rows, &request.new_labels);
  if (!done.ok()) return Bad(tensor, Str(done.error().text, AdviceOn(signature)));
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

// A label in the body of a feedback call joins the others.
Result<void> AddLabel(simdjson::dom::element value, const Signature& signature, FeedbackRequest& request) {
  const data::RowBuilder& builder = signature.builder();
  const data::Labels& labels = builder.description().labels;
  std::string_view text;
  double number = 0;
  bool truth = false;
  const bool is_text = value.get(text) == simdjson::SUCCESS;
  if (!is_text && value.get(number) != simdjson::SUCCESS) {
    if (value.get(truth) != simdjson::SUCCESS)
      return Bad(Str("label is ", Shown(value), ", expected ", labels.Expected()));
    number = truth ? 1 : 0;
  }
  auto label = is_text ? builder.Label(text) : builder.Label(number);
  if (!label.ok()) {
    const std::string name = is_text ? std::string(text) : Str(number);
    const bool open = signature.open() && labels.kind == data::Labels::Kind::kClasses;
    const auto fresh = open ? data::NewLabelIn(name, builder.description()) : std::nullopt;
    if (!fresh) return Bad(Str(label.error().text, AdviceOn(signature)));
    request.new_labels.push_back({request.labels.size(), *fresh});
  }
  request.labels.push_back(label.ok() ? label.value() : data::Labels::kUnknown);
  return {};
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
  request.new_labels.clear();
  const bool clusters = signature.kinds()[0] == Output::kCluster;
  const bool labelled = extras.labels == nullptr && !clusters;  // every row has to bring its own
  TRY(state_->rows.Build(state_->inputs, signature, labelled, rows, request.names));
  if (extras.labels != nullptr) TRY(ReadLabels(*extras.labels, signature, state_->extra, request));
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
  request.new_labels.clear();
  if (label.found == labels.found)
    return Bad(label.found ? "found both label and labels, expected one of them" : "label is missing");
  if (label.found) return AddLabel(label.value, signature, request);
  for (const simdjson::dom::element value : TRY(ArrayIn(labels))) {
    if (request.labels.size() == TensorRows::kMostRows)
      return Bad(Str("labels has more than ", TensorRows::kMostRows, " values"));
    TRY(AddLabel(value, signature, request));
  }
  return {};
}

}  // namespace freshet::serve
