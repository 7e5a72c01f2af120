#include "serve/learn_request.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/option.h"
#include "serve/models_testing.h"

namespace freshet::serve {
namespace {

Result<LearnRequest> Parse(const Signature& signature, const Body& body) {
  LearnParser parser;
  LearnRequest request;
  TRY(parser.Parse(body, signature, request));
  return request;
}

template <class T>
std::string SaidOf(const Result<T>& result) {
  if (result.ok()) return "";
  EXPECT_EQ(result.error().code, Code::kBadInput);
  return result.error().text;
}

// Two rows of a dense model, and more tensors.
std::string WithTwoRows(std::string_view more) {
  return Str(R"({"inputs":[{"name":"x","shape":[2,1],"datatype":"FP32","data":[1,2]})", more, "]}");
}
constexpr std::string_view kLabels = R"(,{"name":"labels","shape":[2],"datatype":"BYTES","data":["yes","no"]})";

TEST(LearnRequest, ReadsRowsWithAllThatComesWithThem) {
  const Served served(DenseInput(1), LinearFor(DenseInput(1)));
  const auto request = Parse(*served, {R"({"id":"batch 7","inputs":[
      {"name":"ids","shape":[2],"datatype":"BYTES","data":["one","two"]},
      {"name":"times","shape":[2],"datatype":"INT64","data":[1700000000,1700000001]},
      {"name":"labels","shape":[2,1],"datatype":"BYTES","data":["yes","no"]},
      {"name":"x","shape":[2,1],"datatype":"FP32","data":[1,2]},
      {"name":"weights","shape":[2],"datatype":"FP32","data":[0.5,2]}]})"});
  ASSERT_TRUE(request.ok()) << request.error().text;
  const LearnRequest& learn = request.value();
  EXPECT_EQ(learn.id, "batch 7");
  EXPECT_EQ(learn.ids, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(Copy(learn.rows.dense), (std::vector<float>{1, 2}));
  EXPECT_EQ(Copy(learn.rows.labels), (std::vector<float>{1, 0}));
  EXPECT_EQ(Copy(learn.rows.weights), (std::vector<float>{0.5, 2}));
  EXPECT_EQ(Copy(learn.rows.times), (std::vector<std::int64_t>{1700000000, 1700000001}));
}

TEST(LearnRequest, ReadsLabelsOfEveryType) {
  const auto classes = DenseInput(1, {"0", "1", "0.1"});
  const Served served(classes, LinearFor(classes));
  const auto labels = [&](std::string_view type, std::string_view values) {
    const auto request =
        Parse(*served,
              {WithTwoRows(Str(R"(,{"name":"labels","shape":[2],"datatype":")", type, R"(","data":)", values, "}"))});
    EXPECT_TRUE(request.ok()) << request.error().text;
    return Copy(request.value().rows.labels);
  };
  EXPECT_EQ(labels("INT64", "[1,0]"), (std::vector<float>{1, 0}));
  EXPECT_EQ(labels("UINT8", "[1,0]"), (std::vector<float>{1, 0}));
  EXPECT_EQ(labels("BOOL", "[true,false]"), (std::vector<float>{1, 0}));
  EXPECT_EQ(labels("FP32", "[1,0.1]"), (std::vector<float>{1, 2}));
  EXPECT_EQ(labels("FP64", "[1,0.1]"), (std::vector<float>{1, 2}));
  EXPECT_EQ(labels("BYTES", R"(["1.0","0.1"])"), (std::vector<float>{1, 2}));
}

TEST(LearnRequest, ReadsLabelsWeightsAndTimesFromTheirColumnsToo) {
  const Served served(TableInput(), LinearFor(TableInput()));
  const auto request = Parse(*served, {R"({"inputs":[{"name":"age","shape":[1],"datatype":"FP32","data":[30]},
      {"name":"label","shape":[1],"datatype":"BYTES","data":["yes"]},
      {"name":"w","shape":[1],"datatype":"FP32","data":[3]},{"name":"t","shape":[1],"datatype":"INT64","data":[99]}]})"});
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(Copy(request.value().rows.labels), std::vector<float>{1});
  EXPECT_EQ(Copy(request.value().rows.weights), std::vector<float>{3});
  EXPECT_EQ(Copy(request.value().rows.times), std::vector<std::int64_t>{99});
}

TEST(LearnRequest, ReadsRatingsByTheirColumns) {
  const Served served(RatingsInput(), FactorizationConfig());
  const auto request = Parse(*served, {R"({"inputs":[{"name":"user","shape":[1],"datatype":"BYTES","data":["zoe"]},
      {"name":"item","shape":[1],"datatype":"BYTES","data":["a"]},
      {"name":"rating","shape":[1],"datatype":"FP32","data":[4.5]}]})"});
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(Copy(request.value().rows.labels), std::vector<float>{4.5});
  ASSERT_EQ(request.value().names.size(), 1u);
  data::Description description = RatingsInput();
  data::Rows rows;
  rows.Clear();
  for (const std::uint32_t index : request.value().rows.indices.span()) rows.indices.Append(index);
  data::AddNames(request.value().names, description, rows);
  EXPECT_EQ(Copy(rows.indices), (std::vector<std::uint32_t>{2, 0}));
}

TEST(LearnRequest, LeavesATensorToTheModelThatHasAnInputOfItsName) {
  data::Description description = TableInput();
  description.columns[0].name = "weights";
  const Served served(description, LinearFor(description));
  const auto request = Parse(*served, {R"({"inputs":[{"name":"weights","shape":[1],"datatype":"FP32","data":[30]},
      {"name":"labels","shape":[1],"datatype":"BYTES","data":["yes"]}]})"});
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(request.value().rows.values[0], 30);
  EXPECT_TRUE(request.value().rows.weights.empty());
}

TEST(LearnRequest, NeedsNoLabelsForClusters) {
  const Served served(DenseInput(1, {}), ClustersFor(DenseInput(1, {})));
  const auto request = Parse(*served, {WithTwoRows("")});
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_TRUE(std::isnan(request.value().rows.labels[0]));
}

TEST(LearnRequest, IsReusedWithoutATraceOfTheOneBefore) {
  const Served served(DenseInput(1), LinearFor(DenseInput(1)));
  LearnParser parser;
  LearnRequest request;
  ASSERT_TRUE(parser
                  .Parse({WithTwoRows(Str(kLabels, R"(,{"name":"ids","shape":[2],"datatype":"BYTES","data":["a","b"]},
      {"name":"weights","shape":[2],"datatype":"FP32","data":[1,2]})"))},
                         *served, request)
                  .ok());
  ASSERT_TRUE(parser.Parse({WithTwoRows(kLabels)}, *served, request).ok());
  EXPECT_TRUE(request.ids.empty());
  EXPECT_TRUE(request.rows.weights.empty());
  EXPECT_EQ(request.rows.size(), 2u);
}

TEST(LearnRequest, SaysWhatIsWrongWithWhatComesWithTheRows) {
  const Served served(DenseInput(1), LinearFor(DenseInput(1)));
  const auto said = [&](std::string_view more) { return SaidOf(Parse(*served, {WithTwoRows(more)})); };
  const auto with = [](std::string_view name, std::string_view type, std::string_view values) {
    return Str(name == "labels" ? "" : kLabels, R"(,{"name":")", name, R"(","shape":[2],"datatype":")", type,
               R"(","data":)", values, "}");
  };
  EXPECT_EQ(said(""), "input 'labels' is missing, expected a label for each row");
  EXPECT_EQ(said(R"(,{"name":"labels","shape":[1],"datatype":"BYTES","data":["yes"]})"),
            "input 'labels': shape [1], expected [2] or [2,1]");
  EXPECT_EQ(said(with("labels", "BYTES", R"(["yes","perhaps"])")),
            "input 'labels': row 1: label 'perhaps', expected one of no, yes");
  EXPECT_EQ(said(with("labels", "FP32", "[1,2]")), "input 'labels': row 0: label 1, expected one of no, yes");
  EXPECT_EQ(said(with("labels", "BYTES", R"(["yes",null])")), "input 'labels': value 1 is null, expected a string");
  EXPECT_EQ(said(with("weights", "FP32", "[1,-2]")), "input 'weights': value 1 is -2, expected 0 or more");
  EXPECT_EQ(said(with("weights", "BYTES", R"(["1","2"])")),
            "input 'weights': datatype BYTES, expected a type of numbers");
  EXPECT_EQ(said(with("times", "FP32", "[1,2]")), "input 'times': datatype FP32, expected a type of whole numbers");
  EXPECT_EQ(said(with("ids", "INT64", "[1,2]")), "input 'ids': datatype INT64, expected BYTES");
  EXPECT_EQ(said(with("ids", "BYTES", R"(["a",""])")), "input 'ids': value 1 has 0 bytes, expected 1 to 128");
  EXPECT_EQ(said(with("ids", "BYTES", Str(R"(["a",")", std::string(129, 'i'), R"("])"))),
            "input 'ids': value 1 has 129 bytes, expected 1 to 128");
  EXPECT_EQ(said(with("id", "BYTES", R"(["a","b"])")), "input 'id': the model has no such input, expected 'x'");
  EXPECT_EQ(SaidOf(Parse(*served, {R"({"inputs":[{"name":"labels","shape":[1],"datatype":"BYTES","data":["yes"]}]})"})),
            "no inputs, expected 'x'");
}

TEST(LearnRequest, TakesOnlyIdsThatAreText) {
  const Served served(DenseInput(1), LinearFor(DenseInput(1)));
  const std::string ids = BytesOfTexts({"fine", "\xff"});
  const std::string json = WithTwoRows(Str(
      kLabels, R"(,{"name":"ids","shape":[2],"datatype":"BYTES","parameters":{"binary_data_size":)", ids.size(), "}}"));
  const std::string bytes = json + ids;
  EXPECT_EQ(SaidOf(Parse(*served, {bytes, json.size()})), "input 'ids': value 1 is '\xff', expected UTF-8");
}

TEST(Feedback, HasOneLabelOrSeveral) {
  const Served served(DenseInput(1, {"0", "1", "cat"}), LinearFor(DenseInput(1, {"0", "1", "cat"})));
  LearnParser parser;
  FeedbackRequest request;
  const auto labels = [&](std::string_view body) {
    const auto parsed = parser.ParseFeedback(body, *served, request);
    EXPECT_TRUE(parsed.ok()) << parsed.error().text;
    EXPECT_EQ(request.id, "42");
    return request.labels;
  };
  EXPECT_EQ(labels(R"({"id":"42","label":1})"), std::vector<float>{1});
  EXPECT_EQ(labels(R"({"label":"cat","id":"42"})"), std::vector<float>{2});
  EXPECT_EQ(labels(R"({"id":"42","label":false})"), std::vector<float>{0});
  EXPECT_EQ(labels(R"({"id":"42","labels":["cat",1,0.0]})"), (std::vector<float>{2, 1, 0}));
  EXPECT_EQ(request.owner, std::nullopt);
  EXPECT_EQ(labels(R"({"id":"42","label":1,"owner":"shop"})"), std::vector<float>{1});
  EXPECT_EQ(request.owner, "shop");
  const auto said = [&](std::string_view body) { return SaidOf(parser.ParseFeedback(body, *served, request)); };
  EXPECT_EQ(said(R"({"id":"42","label":1,"owner":7})"), "owner is 7, expected a string");
  EXPECT_EQ(said("{}"), "id is missing, expected a string");
  EXPECT_EQ(said(R"({"id":42,"label":1})"), "id is 42, expected a string");
  EXPECT_EQ(said(R"({"id":"","label":1})"), "id has 0 bytes, expected 1 to 128");
  EXPECT_EQ(said(R"({"id":"42"})"), "label is missing");
  EXPECT_EQ(said(R"({"id":"42","label":1,"labels":[1]})"), "found both label and labels, expected one of them");
  EXPECT_EQ(said(R"({"id":"42","label":"dog"})"), Str("label 'dog', expected one of 0, 1, cat; a server started with ",
                                                      Option("new-classes"), " N learns labels it has not met"));
  EXPECT_EQ(said(R"({"id":"42","label":null})"), "label is null, expected one of 0, 1, cat");
  EXPECT_EQ(said(R"({"id":"42","labels":[[1]]})"), "label is an array, expected one of 0, 1, cat");
  EXPECT_EQ(said(R"({"id":"42","labels":1})"), "labels is 1, expected an array");
  EXPECT_EQ(said(R"({"id":"42","lable":1})"), "unknown key 'lable', expected id, label, labels, owner");
  EXPECT_EQ(said(R"({"id":"42","label":1)"),
            "the body is not valid JSON: a comma, colon, bracket or value is missing or out of place");
}

TEST(RollBack, NamesAVersionAndPerhapsWhatToForget) {
  const auto request = ParseRollBack(R"({"version":"123","discard":[5,9],"relearn":true})");
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(request.value().version, "123");
  EXPECT_EQ(request.value().discard, (std::pair<std::uint64_t, std::uint64_t>(5, 9)));
  EXPECT_TRUE(request.value().relearn);
  const auto plain = ParseRollBack(R"({"version":"123"})");
  EXPECT_FALSE(plain.value().discard.has_value());
  EXPECT_FALSE(plain.value().relearn);
  EXPECT_EQ(SaidOf(ParseRollBack("{}")), "version is missing, expected a string");
  EXPECT_EQ(SaidOf(ParseRollBack(R"({"version":123})")), "version is 123, expected a string");
  EXPECT_EQ(SaidOf(ParseRollBack(R"({"version":""})")), "version is '', expected a text that is not empty");
  EXPECT_EQ(SaidOf(ParseRollBack(R"({"version":"1","relearn":1})")), "relearn is 1, expected true or false");
  const auto discarding = [](std::string_view what) {
    return SaidOf(ParseRollBack(Str(R"({"version":"1","discard":)", what, "}")));
  };
  for (const std::string_view range : {"[]", "[1]", "[1,2,3]", "[2,1]", "[1,1]", "[-1,2]", "[1,2.5]", R"(["1",2])"})
    EXPECT_EQ(discarding(range), "discard: expected [from, to], two whole numbers with from below to");
  EXPECT_EQ(discarding("7"), "discard is 7, expected [from, to] or an object of sequences, times, ids");
  EXPECT_EQ(discarding("{}"), "discard is empty, expected one or more of sequences, times, ids");
  EXPECT_EQ(discarding(R"({"times":[2,1]})"), "times: expected [from, to], two whole numbers with from below to");
  EXPECT_EQ(discarding(R"({"ids":[]})"), "discard: 0 ids, expected 1 to 10000");
  EXPECT_EQ(discarding(R"({"ids":[7]})"), "an id of discard is 7, expected a string");
  EXPECT_EQ(SaidOf(ParseRollBack(R"({"version":"1","force":true})")),
            "unknown key 'force', expected version, discard, relearn");
  EXPECT_EQ(SaidOf(ParseRollBack(R"({"version":"1","version":"2"})")), "version stands twice");
}

TEST(RollBack, NamesWhatToForgetBySequenceTimeAndId) {
  const auto request =
      ParseRollBack(R"({"version":"1","discard":{"sequences":[5,9],"times":[-7,1700000000],"ids":["a","b/1"]}})");
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(request.value().discard, (std::pair<std::uint64_t, std::uint64_t>(5, 9)));
  EXPECT_EQ(request.value().times, (std::pair<std::int64_t, std::int64_t>(-7, 1'700'000'000)));
  EXPECT_EQ(request.value().ids, (std::vector<std::string>{"a", "b/1"}));
}

TEST(Iterate, HasNothingToSay) {
  EXPECT_EQ(SaidOf(ParseIterate("")), "");
  EXPECT_EQ(SaidOf(ParseIterate(" {} ")), "");
  EXPECT_EQ(SaidOf(ParseIterate(R"({"now":true})")), "unknown key 'now', expected none");
  EXPECT_EQ(SaidOf(ParseIterate("[]")), "the body is an array, expected an object");
}

TEST(Dataset, NamesAPath) {
  EXPECT_EQ(ParseDataset(R"({"path":"more/rows.csv"})").value().path, "more/rows.csv");
  EXPECT_EQ(SaidOf(ParseDataset("{}")), "path is missing, expected a string");
  EXPECT_EQ(SaidOf(ParseDataset(R"({"path":"a\u0000b"})")), "path is 'a\\x00b', expected a text that is not empty");
  EXPECT_EQ(SaidOf(ParseDataset(R"({"paths":"a"})")), "unknown key 'paths', expected path");
}

TEST(Recommend, NamesAUserAndPerhapsMore) {
  const auto request = ParseRecommend(R"({"user":42,"k":3,"seen":["a",7]})");
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(request.value().user, "42");
  EXPECT_EQ(request.value().k, 3u);
  EXPECT_EQ(request.value().seen, (std::vector<std::string>{"a", "7"}));
  EXPECT_EQ(ParseRecommend(R"({"user":"ann"})").value().k, 10u);
  EXPECT_EQ(SaidOf(ParseRecommend("{}")), "user is missing, expected a string");
  EXPECT_EQ(SaidOf(ParseRecommend(R"({"user":1.5})")), "user is 1.5, expected a string");
  EXPECT_EQ(SaidOf(ParseRecommend(R"({"user":"a","k":0})")), "k is 0, expected 1 to 10000");
  EXPECT_EQ(SaidOf(ParseRecommend(R"({"user":"a","k":10001})")), "k is 10001, expected 1 to 10000");
  EXPECT_EQ(SaidOf(ParseRecommend(R"({"user":"a","k":-1})")), "k is -1, expected a whole number that is not negative");
  EXPECT_EQ(SaidOf(ParseRecommend(R"({"user":"a","seen":[null]})")), "an item of seen is null, expected a string");
}

TEST(Pin, NamesAVersionAndWhetherItIsKept) {
  EXPECT_TRUE(ParsePin(R"({"version":"7","pinned":true})").value().pinned);
  EXPECT_EQ(ParsePin(R"({"version":"7","pinned":false})").value().version, "7");
  EXPECT_EQ(SaidOf(ParsePin(R"({"version":"7"})")), "pinned is missing, expected true or false");
}

}  // namespace
}  // namespace freshet::serve
