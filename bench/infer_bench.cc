// How long the body of an inference request takes to become rows, and scores to become an answer, on one thread.
//   infer_bench [--tiny]
// Exits with 1 when an answer was wrong; a missed target is shown and is no error.

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"
#include "report.h"
#include "serve/infer_response.h"

namespace freshet::bench {
namespace {

using nlohmann::json;
using serve::Body;
using serve::Signature;

constexpr int kRepeats = 7;

// A body, and the numbers in it added up as another JSON library reads them.
struct Request {
  std::string bytes;
  std::optional<std::uint64_t> json_bytes;
  double sum = 0;
};

std::vector<double> Normals(std::size_t count) {
  base::Random random(1, "features");
  std::vector<double> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(std::round(random.Normal() * 1e6) / 1e6);
  return numbers;
}

double SumOf(const json& values) {
  double sum = 0;
  for (const json& value : values) sum += static_cast<double>(value.get<float>());
  return sum;
}

Request DenseRequest(std::size_t rows, std::size_t features, bool binary) {
  const std::vector<double> numbers = Normals(rows * features);
  json input = {{"name", "x"}, {"shape", {rows, features}}, {"datatype", "FP32"}};
  std::string bytes;
  if (binary) {
    input["parameters"] = {{"binary_data_size", rows * features * sizeof(float)}};
    const std::vector<float> floats(numbers.begin(), numbers.end());
    bytes.assign(reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float));
  } else {
    input["data"] = numbers;
  }
  Request request;
  request.bytes = json({{"id", "42"}, {"inputs", json::array({input})}}).dump();
  if (binary) request.json_bytes = request.bytes.size();
  request.bytes += bytes;
  request.sum = SumOf(numbers);
  return request;
}

Request SparseRequest(std::size_t entries) {
  std::vector<std::int64_t> indices;
  for (std::size_t i = 0; i < entries; ++i) indices.push_back(static_cast<std::int64_t>(1 + i * 1013));
  const std::vector<double> numbers = Normals(entries);
  const auto tensor = [](std::string_view name, std::string_view type, const json& data) {
    return json{{"name", name}, {"shape", {data.size()}}, {"datatype", type}, {"data", data}};
  };
  const json inputs = {tensor("indptr", "INT64", {0, entries}), tensor("indices", "INT64", indices),
                       tensor("values", "FP32", numbers)};
  return {json({{"id", "42"}, {"inputs", inputs}}).dump(), {}, SumOf(numbers)};
}

// Nanoseconds per call, the median of several rounds.
template <class Work>
Spread Nanoseconds(base::Clock& clock, std::size_t calls, Work work) {
  std::vector<double> rounds;
  for (int round = 0; round < kRepeats; ++round) {
    const auto started = clock.Now();
    for (std::size_t i = 0; i < calls; ++i) work();
    rounds.push_back(base::Seconds(clock.Now() - started) * 1e9 / static_cast<double>(calls));
  }
  return SpreadOf(rounds);
}

data::Description Input(bool dense, std::uint64_t features) {
  data::Description description;
  description.format = dense ? "idx" : "libsvm";
  description.dense = dense;
  description.features = features;
  description.labels.kind = data::Labels::Kind::kBinary;
  description.labels.names = {"-1", "1"};
  description.labels.Index();
  return description;
}

struct Case {
  std::string what;
  data::Description description;
  Request request;
  std::size_t calls;
  std::optional<Target> target;
};

void MeasureCase(const Case& test, bool tiny, base::Clock& clock, Report& report) {
  model::ModelConfig config;
  config.dense = test.description.dense;
  config.features = test.description.features;
  const auto model = model::Model::Make(config).value();
  const Signature signature(test.description, *model);
  serve::InferParser parser;
  serve::InferRequest request;
  const std::size_t calls = tiny ? 2 : test.calls;
  bool ok = true;
  const Spread parse = Nanoseconds(clock, calls, [&] {
    ok &= parser.Parse({test.request.bytes, test.request.json_bytes}, signature, request).ok();
  });
  double sum = 0;
  for (const float value : test.description.dense ? request.rows.dense.span() : request.rows.values.span())
    sum += static_cast<double>(value);
  report.Section(test.what);
  report.Check("rows hold what another JSON library reads", ok && sum == test.request.sum,
               Str(request.rows.size(), " rows, sum ", sum));
  report.Add({Str("parse, ", test.request.bytes.size(), " bytes"), parse, "ns", 0, test.target});

  std::vector<float> scores(request.rows.size());
  std::string answer;
  const Spread write = Nanoseconds(clock, calls, [&] {
    for (std::size_t r = 0; r < scores.size(); ++r) scores[r] = 0.1f * static_cast<float>(r % 37) - 1;
    ok &= serve::WriteInferResponse({"ctr", "18400"}, signature, request, scores, answer).ok();
  });
  const json read = json::parse(answer, nullptr, false);
  ok = ok && !read.is_discarded() && read["outputs"][0]["data"].get<std::vector<float>>() == scores &&
       read["outputs"][1]["data"].size() == scores.size();
  report.Check("the answer has the scores", ok, Str(answer.size(), " bytes"));
  report.Add({"answer", write, "ns", 0});
}

bool Run(bool tiny) {
  base::SystemClock clock;
  Report report(!tiny);
  constexpr std::size_t kOften = 50'000, kSeldom = 500;
  for (const Case& test : {Case{"28 numbers", Input(true, 28), DenseRequest(1, 28, false), kOften, AtMost(1000)},
                           Case{"28 numbers, binary", Input(true, 28), DenseRequest(1, 28, true), kOften, {}},
                           Case{"30 indices", Input(false, 0), SparseRequest(30), kOften, {}},
                           Case{"100 × 28 numbers", Input(true, 28), DenseRequest(100, 28, false), kSeldom, {}},
                           Case{"100 × 28 numbers, binary", Input(true, 28), DenseRequest(100, 28, true), kSeldom, {}}})
    MeasureCase(test, tiny, clock, report);
  std::fputs(report.ToMarkdown().c_str(), stdout);
  return report.ok();
}

}  // namespace
}  // namespace freshet::bench

int main(int argc, char** argv) {
  const bool tiny = argc == 2 && std::string_view(argv[1]) == "--tiny";
  if (argc > 1 && !tiny) {
    std::fprintf(stderr, "infer_bench: expected nothing, or --tiny\n");
    return 2;
  }
  return freshet::bench::Run(tiny) ? 0 : 1;
}
