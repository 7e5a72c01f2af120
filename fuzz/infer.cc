#include <nlohmann/json.hpp>

#include "serve/infer_response.h"
#include "serve/learn_request.h"
#include "world.h"

// Any bytes as the bodies of requests. The first line is what the header Inference-Header-Content-Length says, or empty
// when there is none; the rest is the body, and goes to models of every kind of input.
namespace {

using namespace freshet;

data::Description Described(std::string format) {
  using Kind = data::Column::Kind;
  data::Description description;
  description.format = std::move(format);
  description.labels.kind = data::Labels::Kind::kBinary;
  description.labels.names = {"no", "1"};
  description.labels.Index();
  if (description.format == "csv") {
    description.delimiter.assign(1, ',');
    description.columns = {{"age", Kind::kNumber}, {"city", Kind::kCategory}, {"label", Kind::kLabel},
                           {"w", Kind::kWeight},   {"t", Kind::kTime},        {"note", Kind::kIgnored}};
    description.features = 1;
    description.dictionaries.resize(1);
    description.dictionaries[0].Add("0=Rome");
  } else if (description.format == "ratings") {
    description.delimiter.assign(1, ',');
    description.columns = {{"user", Kind::kCategory}, {"item", Kind::kCategory}, {"rating", Kind::kLabel}};
    description.dictionaries.resize(2);
    description.dictionaries[0].Add("ann");
    description.labels = {};
    description.labels.kind = data::Labels::Kind::kReal;
  } else if (description.format == "idx") {
    description.dense = true;
    description.features = 3;
  } else if (description.format == "vw") {
    description.bits = 5;
  }
  return description;
}

void CheckRows(const data::Rows& rows, std::span<const data::NewName> names) {
  const std::size_t count = rows.size();
  CHECK(rows.weights.empty() || rows.weights.size() == count);
  CHECK(rows.times.empty() || rows.times.size() == count);
  if (rows.width > 0) {
    CHECK(rows.dense.size() == count * rows.width);
  } else {
    CHECK(rows.offsets.size() == count + 1);
    for (std::size_t r = 0; r < count; ++r) CHECK(rows.offsets[r] <= rows.offsets[r + 1]);
    CHECK(rows.offsets[count] == rows.indices.size());
    CHECK(rows.values.size() == rows.indices.size());
  }
  for (const data::NewName& name : names) CHECK(rows.indices[name.entry] == data::kUnseen);
}

// What a client is told is JSON, whatever it sent.
void CheckError(const Error& error) {
  CHECK(error.code == Code::kBadInput);
  CHECK(nlohmann::json::accept(serve::ErrorBody(error.text)));
}

void Answer(const serve::Signature& signature, const serve::InferRequest& request) {
  std::vector<float> scores(request.rows.size() * signature.model().scores(), 0.5f);
  std::string answer;
  const auto json_bytes = serve::WriteInferResponse({"m", "1"}, signature, request, scores, answer);
  CHECK(json_bytes.ok());
  CHECK(nlohmann::json::accept(answer.substr(0, json_bytes.value().value_or(answer.size()))));
}

// One of each for all models, as a thread that serves them would have.
struct Parsers {
  serve::InferParser infer;
  serve::LearnParser learn;
};

void Parse(const serve::Body& body, data::Description description, Parsers& parsers) {
  model::ModelConfig config;
  config.kind = description.format == "ratings" ? "factorization" : "linear";
  config.loss = description.format == "ratings" ? "squared" : "logistic";
  config.dense = description.dense;
  config.features = description.features;
  const auto model = model::Model::Make(config).value();
  const serve::Signature signature(description, *model);
  serve::InferRequest infer;
  serve::LearnRequest learn;
  serve::FeedbackRequest feedback;
  if (const auto parsed = parsers.infer.Parse(body, signature, infer); parsed.ok()) {
    CheckRows(infer.rows, infer.names);
    Answer(signature, infer);
  } else {
    CheckError(parsed.error());
  }
  if (const auto parsed = parsers.learn.Parse(body, signature, learn); parsed.ok()) {
    CheckRows(learn.rows, learn.names);
    CHECK(learn.ids.empty() || learn.ids.size() == learn.rows.size());
    data::AddNames(learn.names, description, learn.rows);
  } else {
    CheckError(parsed.error());
  }
  if (const auto parsed = parsers.learn.ParseFeedback(body.bytes, signature, feedback); !parsed.ok())
    CheckError(parsed.error());
}

template <class T>
void CheckControl(const Result<T>& parsed) {
  if (!parsed.ok()) CheckError(parsed.error());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line = std::min(input.find('\n'), size);
  serve::Body body{input.substr(std::min(line + 1, size))};
  if (const auto json_bytes = serve::ParseJsonBytes(input.substr(0, line)); json_bytes.ok())
    body.json_bytes = json_bytes.value();
  Parsers parsers;
  for (const char* const format : {"idx", "libsvm", "vw", "csv", "ratings"}) Parse(body, Described(format), parsers);
  CheckControl(serve::ParseRollBack(body.bytes));
  CheckControl(serve::ParseIterate(body.bytes));
  CheckControl(serve::ParseDataset(body.bytes));
  CheckControl(serve::ParseRecommend(body.bytes));
  CheckControl(serve::ParsePin(body.bytes));
  return 0;
}
