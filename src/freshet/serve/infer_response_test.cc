#include "serve/infer_response.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "serve/models_testing.h"

namespace freshet::serve {
namespace {

// A request of so many rows, for these outputs.
InferRequest RequestOf(std::size_t rows, std::vector<WantedOutput> wanted) {
  InferRequest request;
  request.wanted = std::move(wanted);
  for (std::size_t r = 0; r < rows; ++r) request.rows.labels.Append(std::nanf(""));
  return request;
}

std::string AnswerOf(const Signature& signature, const InferRequest& request, std::vector<float> scores) {
  std::string body = "what was there before";
  const auto json_bytes = WriteInferResponse({"ctr", "18400"}, signature, request, scores, body);
  EXPECT_TRUE(json_bytes.ok());
  EXPECT_FALSE(json_bytes.value().has_value());
  return body;
}

TEST(InferResponse, HasProbabilitiesAndLabels) {
  const Served served(DenseInput(3), LinearFor(DenseInput(3)));
  InferRequest request = RequestOf(2, {{0, false}, {1, false}});
  request.has_id = true;
  request.id = "4\"2";
  EXPECT_EQ(AnswerOf(*served, request, {0, 100}),
            R"({"model_name":"ctr","model_version":"18400","id":"4\"2","outputs":[)"
            R"({"name":"score","shape":[2,1],"datatype":"FP32","data":[0.5,1]},)"
            R"({"name":"label","shape":[2],"datatype":"BYTES","data":["no","yes"]}]})");
}

TEST(InferResponse, HasTheOutputsThatAreWantedInTheirOrder) {
  const Served served(DenseInput(3, {"a", "b\n", "c"}), LinearFor(DenseInput(3, {"a", "b\n", "c"})));
  EXPECT_EQ(AnswerOf(*served, RequestOf(1, {{1, false}}), {1, 2, 0}),
            R"({"model_name":"ctr","model_version":"18400","outputs":[)"
            R"({"name":"label","shape":[1],"datatype":"BYTES","data":["b\n"]}]})");
  const auto both =
      nlohmann::json::parse(AnswerOf(*served, RequestOf(2, {{1, false}, {0, false}}), {1, 2, 0, 5, 5, 5}));
  EXPECT_EQ(both["outputs"][0]["data"], nlohmann::json({"b\n", "a"}));
  EXPECT_EQ(both["outputs"][1]["shape"], nlohmann::json({2, 3}));
  double sum = 0;
  for (const auto& probability : both["outputs"][1]["data"]) sum += probability.get<double>();
  EXPECT_NEAR(sum, 2, 1e-6);
}

TEST(InferResponse, OfARegressionIsTheValueItself) {
  const Served served(DenseInput(3, {}), LinearFor(DenseInput(3, {})));
  EXPECT_EQ(AnswerOf(*served, RequestOf(4, {{0, false}}), {-1.25f, 1e20f, 0.1f, -0.0f}),
            R"({"model_name":"ctr","model_version":"18400","outputs":[)"
            R"({"name":"score","shape":[4,1],"datatype":"FP32","data":[-1.25,1e+20,0.1,-0]}]})");
}

TEST(InferResponse, OfNoRowsIsEmpty) {
  const Served served(DenseInput(3), LinearFor(DenseInput(3)));
  EXPECT_EQ(AnswerOf(*served, RequestOf(0, {{0, false}, {1, false}}), {}),
            R"({"model_name":"ctr","model_version":"18400","outputs":[)"
            R"({"name":"score","shape":[0,1],"datatype":"FP32","data":[]},)"
            R"({"name":"label","shape":[0],"datatype":"BYTES","data":[]}]})");
}

TEST(InferResponse, OfClustersIsTheirNumbers) {
  const Served served(DenseInput(2, {}), ClustersFor(DenseInput(2, {})));
  EXPECT_EQ(AnswerOf(*served, RequestOf(2, {{0, false}}), {3, 0}),
            R"({"model_name":"ctr","model_version":"18400","outputs":[)"
            R"({"name":"cluster","shape":[2],"datatype":"INT64","data":[3,0]}]})");
}

TEST(InferResponse, PutsBinaryOutputsBehindTheJson) {
  const Served served(DenseInput(2, {"a", "bb", "ccc"}), LinearFor(DenseInput(2, {"a", "bb", "ccc"})));
  std::vector<float> scores = {1, 2, 0, 0, 0, 9};
  std::string body;
  const auto json_bytes = WriteInferResponse({"m", "1"}, *served, RequestOf(2, {{1, true}, {0, true}}), scores, body);
  ASSERT_TRUE(json_bytes.ok() && json_bytes.value().has_value());
  const std::string json = body.substr(0, *json_bytes.value());
  EXPECT_EQ(json, R"({"model_name":"m","model_version":"1","outputs":[)"
                  R"({"name":"label","shape":[2],"datatype":"BYTES","parameters":{"binary_data_size":13}},)"
                  R"({"name":"score","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]})");
  EXPECT_EQ(body.substr(json.size()), BytesOfTexts({"bb", "ccc"}) + BytesOfValues(scores));
}

TEST(InferResponse, MixesBinaryAndJson) {
  const Served served(DenseInput(2, {}), ClustersFor(DenseInput(2, {})));
  std::vector<float> scores = {7};
  std::string body;
  const auto json_bytes = WriteInferResponse({"m", "1"}, *served, RequestOf(1, {{0, true}}), scores, body);
  EXPECT_EQ(body.substr(*json_bytes.value()), BytesOfValues<std::int64_t>({7}));
}

TEST(InferResponse, RefusesScoresThatAreNotFinite) {
  const Served served(DenseInput(3), LinearFor(DenseInput(3)));
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> scores = {0, bad};
    std::string body;
    const auto result = WriteInferResponse({"m", "1"}, *served, RequestOf(2, {{0, false}}), scores, body);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::kDiverged);
  }
}

TEST(InferResponse, ReadsBackAsTheSameNumbersWhateverTheyAre) {
  const Served served(DenseInput(3, {}), LinearFor(DenseInput(3, {})));
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "scores");
    std::vector<float> scores;
    while (scores.size() < 100) {
      const auto bits = static_cast<std::uint32_t>(random.Next());
      float score = 0;
      std::memcpy(&score, &bits, sizeof score);
      if (std::isfinite(score)) scores.push_back(score);
    }
    const auto answer = nlohmann::json::parse(AnswerOf(*served, RequestOf(scores.size(), {{0, false}}), scores));
    for (std::size_t i = 0; i < scores.size(); ++i)
      EXPECT_EQ(static_cast<float>(answer["outputs"][0]["data"][i].get<double>()), scores[i]);
  }
}

TEST(ErrorBody, IsJsonWhateverTheText) {
  EXPECT_EQ(ErrorBody("input 'x': bad"), R"({"error":"input 'x': bad"})");
  EXPECT_TRUE(nlohmann::json::accept(ErrorBody("a\"\\\n\xff\x01")));
}

}  // namespace
}  // namespace freshet::serve
