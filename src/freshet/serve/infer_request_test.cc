#include "serve/infer_request.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "serve/models_testing.h"

namespace freshet::serve {
namespace {

using namespace std::string_literals;

Result<InferRequest> Parse(const Signature& signature, const Body& body) {
  InferParser parser;
  InferRequest request;
  TRY(parser.Parse(body, signature, request));
  return request;
}

std::string SaidOf(const Signature& signature, const Body& body) {
  const auto request = Parse(signature, body);
  if (request.ok()) return "";
  EXPECT_EQ(request.error().code, Code::kBadInput);
  return request.error().text;
}

// A body with one tensor, of which `rest` says all but the name.
std::string WithX(std::string_view rest) { return Str(R"({"inputs":[{"name":"x",)", rest, "}]}"); }

TEST(InferRequest, ReadsDenseRows) {
  const Served served(DenseInput(3), LinearFor(DenseInput(3)));
  const auto request = Parse(*served, {R"({"id":"42","inputs":[{"name":"x","shape":[2,3],"datatype":"FP32",
      "data":[1,0,2.5,-1e-3,1,0]}],"outputs":[{"name":"label"}]})"});
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_TRUE(request.value().has_id);
  EXPECT_EQ(request.value().id, "42");
  EXPECT_EQ(request.value().rows.width, 3u);
  EXPECT_EQ(Copy(request.value().rows.dense), (std::vector<float>{1, 0, 2.5, -1e-3f, 1, 0}));
  ASSERT_EQ(request.value().wanted.size(), 1u);
  EXPECT_EQ(request.value().wanted[0].index, 1u);
  EXPECT_FALSE(request.value().wanted[0].binary);
}

TEST(InferRequest, TakesKeysInAnyOrderNestedDataAndKeysItDoesNotKnow) {
  const Served served(DenseInput(3), LinearFor(DenseInput(3)));
  const auto request =
      Parse(*served, {R"({"trace":{"a":[1,{"b":null}]},"outputs":[],"inputs":[{"data":[[1,2,3],[4,5,6]],
      "x":1,"parameters":{"z":"q"},"datatype":"INT8","shape":[2,3],"name":"x"}],"parameters":{"priority":3}})"});
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_FALSE(request.value().has_id);
  EXPECT_EQ(Copy(request.value().rows.dense), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(request.value().wanted.size(), 2u);  // none named: all
}

TEST(InferRequest, TakesRowsOfSeveralDimensionsWhenTheySizeUp) {
  const Served served(DenseInput(4), LinearFor(DenseInput(4)));
  const auto request = Parse(*served, {WithX(R"("shape":[1,2,2],"datatype":"UINT8","data":[[[1,2],[3,255]]])")});
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(Copy(request.value().rows.dense), (std::vector<float>{1, 2, 3, 255}));
}

TEST(InferRequest, TakesNoRowsAtAll) {
  const Served served(DenseInput(3), LinearFor(DenseInput(3)));
  const auto request = Parse(*served, {WithX(R"("shape":[0,3],"datatype":"FP32","data":[])")});
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(request.value().rows.size(), 0u);
}

TEST(InferRequest, ReadsSparseRows) {
  const Served served(SparseInput(), LinearFor(SparseInput()));
  const auto request = Parse(*served, {R"({"inputs":[{"name":"values","shape":[3],"datatype":"FP32","data":[0.5,2,3]},
      {"name":"indptr","shape":[4],"datatype":"INT64","data":[0,2,2,3]},
      {"name":"indices","shape":[3],"datatype":"INT32","data":[1,7,2]}]})"});
  ASSERT_TRUE(request.ok()) << request.error().text;
  const data::Rows& rows = request.value().rows;
  EXPECT_EQ(rows.size(), 3u);
  EXPECT_EQ(Copy(rows.offsets), (std::vector<std::uint32_t>{0, 2, 2, 3}));
  EXPECT_EQ(Copy(rows.indices), (std::vector<std::uint32_t>{0, 6, 1}));
  EXPECT_EQ(Copy(rows.values), (std::vector<float>{0.5, 2, 3}));
}

TEST(InferRequest, ReadsColumnsByName) {
  const Served served(TableInput(), LinearFor(TableInput()));
  const auto request =
      Parse(*served, {R"({"inputs":[{"name":"city","shape":[3,1],"datatype":"BYTES","data":[["Rome"],[null],["Oslo"]]},
      {"name":"age","shape":[3],"datatype":"FP64","data":[41.5,null,3]},
      {"name":"note","shape":[3],"datatype":"BOOL","data":[true,false,true]}]})"});
  ASSERT_TRUE(request.ok()) << request.error().text;
  const data::Rows& rows = request.value().rows;
  EXPECT_EQ(Copy(rows.offsets), (std::vector<std::uint32_t>{0, 3, 5, 8}));
  EXPECT_EQ(Copy(rows.indices), (std::vector<std::uint32_t>{0, 1, 2, 0, 1, 0, 1, data::kUnseen}));
  EXPECT_EQ(rows.values[0], 41.5f);
  EXPECT_TRUE(std::isnan(rows.values[1]));  // the column that was left out
  EXPECT_TRUE(std::isnan(rows.values[3]));
  ASSERT_EQ(request.value().names.size(), 1u);
  EXPECT_EQ(request.value().names[0].name, "Oslo");
}

TEST(InferRequest, ReadsATableOfNumbersAsOneTensorOrAsColumns) {
  const Served served(TableInput(true), LinearFor(TableInput(true)));
  const auto whole = Parse(*served, {WithX(R"("shape":[1,3],"datatype":"FP32","data":[1,null,3])")});
  const auto columns = Parse(*served, {R"({"inputs":[{"name":"income","shape":[1],"datatype":"FP32","data":[3]},
      {"name":"age","shape":[1],"datatype":"INT64","data":[1]}]})"});
  ASSERT_TRUE(whole.ok()) << whole.error().text;
  ASSERT_TRUE(columns.ok()) << columns.error().text;
  for (const auto* request : {&whole.value(), &columns.value()}) {
    EXPECT_EQ(request->rows.dense[0], 1);
    EXPECT_TRUE(std::isnan(request->rows.dense[1]));
    EXPECT_EQ(request->rows.dense[2], 3);
  }
}

TEST(InferRequest, TellsAColumnCalledXFromTheWholeTable) {
  data::Description description = TableInput(true);
  description.columns[0].name = "x";
  const Served served(description, LinearFor(description));
  const auto whole = Parse(*served, {WithX(R"("shape":[1,3],"datatype":"FP32","data":[1,2,3])")});
  const auto column = Parse(*served, {WithX(R"("shape":[1],"datatype":"FP32","data":[1])")});
  ASSERT_TRUE(whole.ok() && column.ok());
  EXPECT_EQ(Copy(whole.value().rows.dense), (std::vector<float>{1, 2, 3}));
  EXPECT_TRUE(std::isnan(column.value().rows.dense[1]));
}

TEST(InferRequest, ReadsRatings) {
  const Served served(RatingsInput(), FactorizationConfig());
  const auto request = Parse(*served, {R"({"inputs":[{"name":"item","shape":[2],"datatype":"BYTES","data":["c","new"]},
      {"name":"user","shape":[2],"datatype":"INT64","data":[1,9007199254740993]}]})"});
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(Copy(request.value().rows.indices), (std::vector<std::uint32_t>{0, 2, data::kUnseen, data::kUnseen}));
  ASSERT_EQ(request.value().names.size(), 2u);
  EXPECT_EQ(request.value().names[0].name, "9007199254740993");
  EXPECT_EQ(request.value().names[1].name, "new");
  EXPECT_EQ(request.value().names[1].space, 1u);
}

template <class T>
void ExpectReadsBinary(std::string_view datatype, const std::vector<T>& values, const std::vector<float>& expected) {
  SCOPED_TRACE(datatype);
  const Served served(DenseInput(3), LinearFor(DenseInput(3)));
  const std::string json = WithX(
      Str(R"("shape":[1,3],"datatype":")", datatype, R"(","parameters":{"binary_data_size":)", 3 * sizeof(T), "}"));
  const std::string bytes = json + BytesOfValues(values);
  const auto request = Parse(*served, {bytes, json.size()});
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(Copy(request.value().rows.dense), expected);
}

TEST(InferRequest, ReadsBinaryTensorsOfEveryDatatype) {
  ExpectReadsBinary<std::uint8_t>("BOOL", {1, 0, 1}, {1, 0, 1});
  ExpectReadsBinary<std::uint8_t>("UINT8", {1, 0, 255}, {1, 0, 255});
  ExpectReadsBinary<std::uint16_t>("UINT16", {1, 0, 65535}, {1, 0, 65535});
  ExpectReadsBinary<std::uint32_t>("UINT32", {1, 0, 1u << 31}, {1, 0, 0x1p31f});
  ExpectReadsBinary<std::uint64_t>("UINT64", {1, 0, 1ull << 62}, {1, 0, 0x1p62f});
  ExpectReadsBinary<std::int8_t>("INT8", {1, 0, -128}, {1, 0, -128});
  ExpectReadsBinary<std::int16_t>("INT16", {1, 0, -32768}, {1, 0, -32768});
  ExpectReadsBinary<std::int32_t>("INT32", {1, 0, -(1 << 30)}, {1, 0, -0x1p30f});
  ExpectReadsBinary<std::int64_t>("INT64", {1, 0, -(1ll << 62)}, {1, 0, -0x1p62f});
  ExpectReadsBinary<std::uint16_t>("FP16", {0x3c00, 0x8001, 0x7bff}, {1, -0x1p-24f, 65504});
  ExpectReadsBinary<float>("FP32", {1, -0.5f, 1e38f}, {1, -0.5f, 1e38f});
  ExpectReadsBinary<double>("FP64", {1, -0.5, 0.1}, {1, -0.5f, 0.1f});
}

TEST(InferRequest, ReadsEveryHalfNumberAsTheyAreDefined) {
  const Served served(DenseInput(1), LinearFor(DenseInput(1)));
  std::vector<std::uint16_t> halves;
  std::vector<float> expected;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
    if (exponent == 31) continue;
    halves.push_back(static_cast<std::uint16_t>(bits));
    const double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    expected.push_back(static_cast<float>(bits >> 15 == 1 ? -size : size));
  }
  const std::string json =
      WithX(Str(R"("shape":[)", halves.size(), R"(,1],"datatype":"FP16","parameters":{"binary_data_size":)",
                2 * halves.size(), "}"));
  const std::string bytes = json + BytesOfValues(halves);
  const auto request = Parse(*served, {bytes, json.size()});
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(Copy(request.value().rows.dense), expected);
}

TEST(InferRequest, ReadsSeveralBinaryTensorsInOrderBesideJson) {
  const Served served(RatingsInput(), FactorizationConfig());
  const std::string users = BytesOfTexts({"ann", "", "x\xff"}).erase(7, 4);  // without the empty one
  const std::string items = BytesOfTexts({"a", "b"});
  const std::string json =
      Str(R"({"inputs":[{"name":"user","shape":[2],"datatype":"BYTES","parameters":{"binary_data_size":)", users.size(),
          R"(}},{"name":"rating","shape":[2],"datatype":"FP32","data":[1,2]},)",
          R"({"name":"item","shape":[2],"datatype":"BYTES","parameters":{"binary_data_size":)", items.size(),
          R"(}}],"parameters":{"binary_data_output":true},"outputs":[{"name":"score"}]})");
  const std::string bytes = json + users + items;
  const auto request = Parse(*served, {bytes, json.size()});
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(Copy(request.value().rows.indices), (std::vector<std::uint32_t>{1, 0, data::kUnseen, 1}));
  EXPECT_EQ(Copy(request.value().rows.labels), (std::vector<float>{1, 2}));
  EXPECT_EQ(request.value().names[0].name, "x\xff");
  EXPECT_TRUE(request.value().wanted[0].binary);
}

TEST(InferRequest, LetsAnOutputSayForItselfWhetherItIsBinary) {
  const Served served(DenseInput(1), LinearFor(DenseInput(1)));
  const std::string x = R"("inputs":[{"name":"x","shape":[1,1],"datatype":"FP32","data":[1]}])";
  const auto request = Parse(*served, {Str("{", x, R"(,"parameters":{"binary_data_output":true},
      "outputs":[{"name":"label","parameters":{"binary_data":false}},{"name":"score"}]})")});
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(request.value().wanted[0].index, 1u);
  EXPECT_FALSE(request.value().wanted[0].binary);
  EXPECT_TRUE(request.value().wanted[1].binary);
  const auto all = Parse(*served, {Str("{", x, R"(,"parameters":{"binary_data_output":true}})")});
  ASSERT_TRUE(all.ok());
  for (const WantedOutput& wanted : all.value().wanted) EXPECT_TRUE(wanted.binary);
}

TEST(InferRequest, IsReusedWithoutATraceOfTheOneBefore) {
  const Served served(RatingsInput(), FactorizationConfig());
  InferParser parser;
  InferRequest request;
  ASSERT_TRUE(parser
                  .Parse({R"({"id":"1","inputs":[{"name":"user","shape":[2],"datatype":"BYTES","data":["new","1"]},
      {"name":"item","shape":[2],"datatype":"BYTES","data":["a","a"]},
      {"name":"timestamp","shape":[2],"datatype":"INT64","data":[5,6]}]})"},
                         *served, request)
                  .ok());
  EXPECT_EQ(request.rows.times.size(), 2u);
  ASSERT_FALSE(parser.Parse({"{"}, *served, request).ok());
  ASSERT_TRUE(parser
                  .Parse({R"({"inputs":[{"name":"user","shape":[1],"datatype":"BYTES","data":["ann"]},
      {"name":"item","shape":[1],"datatype":"BYTES","data":["b"]}]})"},
                         *served, request)
                  .ok());
  EXPECT_FALSE(request.has_id);
  EXPECT_EQ(request.id, "");
  EXPECT_TRUE(request.names.empty());
  EXPECT_TRUE(request.rows.times.empty());
  EXPECT_EQ(Copy(request.rows.indices), (std::vector<std::uint32_t>{1, 1}));
}

TEST(InferRequest, GivesBackTheMemoryOfALargeBodyAtTheNextSmallOne) {
  const Served served(DenseInput(1), LinearFor(DenseInput(1)));
  InferParser parser;
  InferRequest request;
  std::string zeros = "0";
  for (int i = 1; i < 100'000; ++i) zeros += ",0                ";
  ASSERT_TRUE(
      parser.Parse({WithX(Str(R"("shape":[100000,1],"datatype":"FP32","data":[)", zeros, "]"))}, *served, request)
          .ok());
  const float* const large = request.rows.dense.data();
  ASSERT_TRUE(parser.Parse({WithX(R"("shape":[1,1],"datatype":"FP32","data":[7])")}, *served, request).ok());
  EXPECT_EQ(Copy(request.rows.dense), std::vector<float>{7});
  EXPECT_NE(request.rows.dense.data(), large);
}

struct MalformedBody {
  std::string text;
  std::string says;
};

void ExpectMalformed(const Signature& signature, const std::vector<MalformedBody>& bodies) {
  for (const MalformedBody& body : bodies) EXPECT_EQ(SaidOf(signature, {body.text}), body.says) << body.text;
}

TEST(InferRequest, SaysWhatIsWrongWithTheJson) {
  const Served served(DenseInput(3), LinearFor(DenseInput(3)));
  const std::string structure =
      "the body is not valid JSON: a comma, colon, bracket or value is missing or out of place";
  const std::string fine = WithX(R"("shape":[1,3],"datatype":"FP32","data":[1,2,3])");
  const auto with = [](std::string_view values) {
    return WithX(Str(R"("shape":[1,3],"datatype":"FP32","data":)", values));
  };
  ExpectMalformed(*served, {{"", "the body is not valid JSON: found nothing, expected an object"},
                            {"  ", "the body is not valid JSON: found nothing, expected an object"},
                            {"[1]", "the body is an array, expected an object"},
                            {"\"x\"", "the body is 'x', expected an object"},
                            {"7", "the body is 7, expected an object"},
                            {"null", "the body is null, expected an object"},
                            {"{", structure},
                            {fine + "x", structure},
                            {fine + "{}", structure},
                            {fine.substr(0, fine.size() - 1), structure},
                            {with("[1,2,3,]"), structure},
                            {with("[1 2,3]"), structure},
                            {with("[1,2,NaN]"), structure},
                            {with("[1,2,Infinity]"), structure},
                            {with("[1,2,-Infinity]"), "the body is not valid JSON: a number is malformed or too large"},
                            {with("[1,2,nan]"), structure},
                            {with("[1,2,1e999]"), "the body is not valid JSON: a number is malformed or too large"},
                            {with("[1,2,01]"), "the body is not valid JSON: a number is malformed or too large"},
                            {with("[1,2,1.]"), "the body is not valid JSON: a number is malformed or too large"},
                            {with("[1,2,.5]"), structure},
                            {with("[1,2,+5]"), structure},
                            {with("[1,2,0x5]"), "the body is not valid JSON: a number is malformed or too large"},
                            {"{\"id\":\"\xff\"}", "the body is not valid JSON: it is not UTF-8"},
                            {"{\"id\":\"\xed\xa0\x80\"}", "the body is not valid JSON: it is not UTF-8"},
                            {"{\"id\":\"a\nb\"}", "the body is not valid JSON: a string is malformed"},
                            {R"({"id":"\x"})", "the body is not valid JSON: a string is malformed"},
                            {R"({"id":"\ud800"})", "the body is not valid JSON: a string is malformed"},
                            {R"({"id":"a)", "the body is not valid JSON: a string is malformed"},
                            {"{\"unknown\":[1,}", structure},
                            {"{'id':1}", structure},
                            {"\xef\xbb\xbf" + fine, structure},
                            {fine + "\0"s, structure}});
}

TEST(InferRequest, TakesJsonOfThirtyTwoLevelsAndNoMore) {
  const Served served(DenseInput(3), LinearFor(DenseInput(3)));
  const auto nested = [](std::size_t levels) {  // of which the object is the first
    return Str(R"({"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]}],"deep":)",
               std::string(levels - 1, '['), "0", std::string(levels - 1, ']'), "}");
  };
  EXPECT_EQ(SaidOf(*served, {nested(32)}), "");
  EXPECT_EQ(SaidOf(*served, {nested(33)}), "the body is not valid JSON: it is nested deeper than 32 levels");
  EXPECT_EQ(SaidOf(*served, {nested(100'000)}), "the body is not valid JSON: it is nested deeper than 32 levels");
}

TEST(InferRequest, SaysWhatIsWrongWithTheRequest) {
  const Served served(DenseInput(3), LinearFor(DenseInput(3)));
  const std::string x = R"({"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]})";
  ExpectMalformed(
      *served,
      {{"{}", "inputs is missing, expected an array"},
       {R"({"inputs":{}})", "inputs is an object, expected an array"},
       {R"({"inputs":[]})", "inputs is empty, expected at least one tensor"},
       {R"({"inputs":[7]})", "inputs[0]: found 7, expected an object"},
       {Str(R"({"inputs":[)", x, R"(],"inputs":[]})"), "inputs stands twice"},
       {Str(R"({"id":"1","id":"1","inputs":[)", x, "]}"), "id stands twice"},
       {Str(R"({"id":42,"inputs":[)", x, "]}"), "id is 42, expected a string"},
       {Str(R"({"id":null,"inputs":[)", x, "]}"), "id is null, expected a string"},
       {Str(R"({"id":")", std::string(129, 'i'), R"(","inputs":[)", x, "]}"), "id has 129 bytes, expected at most 128"},
       {Str(R"({"parameters":[],"inputs":[)", x, "]}"), "parameters is an array, expected an object"},
       {Str(R"({"parameters":{"binary_data_output":1},"inputs":[)", x, "]}"),
        "parameters: binary_data_output is 1, expected true or false"},
       {Str(R"({"parameters":{"binary_data_output":true,"binary_data_output":true},"inputs":[)", x, "]}"),
        "parameters: binary_data_output stands twice"},
       {Str(R"({"inputs":[)", x, ",", x, "]}"), "input 'x': stands twice"},
       {Str(R"({"inputs":[)", x, R"(,{"name":"y","shape":[1],"datatype":"FP32","data":[1]}]})"),
        "input 'y': the model has no such input, expected 'x'"},
       {R"({"inputs":[{"shape":[1,3],"datatype":"FP32","data":[1,2,3]}]})",
        "inputs[0]: name is missing, expected a string"},
       {R"({"inputs":[{"name":"x","name":"x"}]})", "inputs[0]: name stands twice"},
       {R"({"inputs":[{"name":3}]})", "inputs[0]: name is 3, expected a string"},
       {Str(R"({"outputs":{},"inputs":[)", x, "]}"), "outputs is an object, expected an array"},
       {Str(R"({"outputs":["score"],"inputs":[)", x, "]}"), "outputs[0]: found 'score', expected an object"},
       {Str(R"({"outputs":[{}],"inputs":[)", x, "]}"), "outputs[0]: name is missing, expected a string"},
       {Str(R"({"outputs":[{"name":"proba"}],"inputs":[)", x, "]}"),
        "output 'proba': the model has no such output, expected 'score' or 'label'"},
       {Str(R"({"outputs":[{"name":"score"},{"name":"score"}],"inputs":[)", x, "]}"), "output 'score': stands twice"},
       {Str(R"({"outputs":[{"name":"score","parameters":{"binary_data":"yes"}}],"inputs":[)", x, "]}"),
        "output 'score': parameters: binary_data is 'yes', expected true or false"}});
}

TEST(InferRequest, SaysWhatIsWrongWithATensor) {
  const Served served(DenseInput(3), LinearFor(DenseInput(3)));
  const auto shaped = [](std::string_view shape) {
    return WithX(Str(R"("datatype":"FP32","data":[1,2,3,4,5],"shape":)", shape));
  };
  const auto typed = [](std::string_view type, std::string_view values) {
    return WithX(Str(R"("shape":[1,3],"datatype":")", type, R"(","data":)", values));
  };
  const std::string types =
      "expected one of BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP16, FP32, FP64, BYTES";
  ExpectMalformed(
      *served,
      {{WithX(R"("datatype":"FP32","data":[1,2,3])"), "input 'x': shape is missing, expected an array"},
       {shaped("3"), "input 'x': shape is 3, expected an array"},
       {shaped("[]"), "input 'x': shape [] is empty, expected the number of rows first"},
       {shaped("[2,3]"), "input 'x': shape [2,3] needs 6 values, got 5"},
       {shaped("[1,1]"), "input 'x': shape [1,1] needs 1 value, got 5"},
       {shaped("[-1,3]"), "input 'x': shape [-1,3] has a negative size"},
       {shaped("[1,-5]"), "input 'x': shape [1,-5] has a negative size"},
       {shaped("[1.5,3]"), "input 'x': shape [1.5,3] has a size that is no whole number"},
       {shaped("[\"1\",3]"), "input 'x': shape ['1',3] has a size that is no whole number"},
       {shaped("[null]"), "input 'x': shape [null] has a size that is no whole number"},
       {shaped("[18446744073709551615]"), "input 'x': shape [18446744073709551615] has a size that is no whole number"},
       {shaped("[4294967296,4294967296]"),
        "input 'x': shape [4294967296,4294967296] has more values than can be counted"},
       {shaped("[9223372036854775807,2,3]"),
        "input 'x': shape [9223372036854775807,2,3] has more values than can be counted"},
       {shaped("[4611686018427387904,3]"),
        "input 'x': shape [4611686018427387904,3] needs 13835058055282163712 values, got 5"},
       {shaped("[1,1,1,1,1,1,1,1,5]"), "input 'x': shape has more than 8 sizes"},
       {shaped("[5]"), "input 'x': shape [5], expected [-1,3]"},
       {shaped("[1,5]"), "input 'x': shape [1,5], expected [-1,3]"},
       {shaped("[5,1]"), "input 'x': shape [5,1], expected [-1,3]"},
       {WithX(R"("shape":[1,3],"data":[1,2,3])"), "input 'x': datatype is missing, expected a string"},
       {typed("FLOAT", "[1,2,3]"), "input 'x': datatype 'FLOAT', " + types},
       {typed("fp32", "[1,2,3]"), "input 'x': datatype 'fp32', " + types},
       {typed("BF16", "[1,2,3]"), "input 'x': datatype 'BF16', " + types},
       {typed("FP16", "[1,2,3]"), "input 'x': FP16 has no JSON form, expected binary data"},
       {typed("BYTES", R"(["1","2","3"])"), "input 'x': datatype BYTES, expected a type of numbers"},
       {typed("FP32", "7"), "input 'x': data is 7, expected an array"},
       {WithX(R"("shape":[1,3],"datatype":"FP32")"), "input 'x': data is missing, expected an array"},
       {typed("FP32", R"([1,2,"3"])"), "input 'x': value 2 is '3', expected a finite number"},
       {typed("FP32", "[1,true,3]"), "input 'x': value 1 is true, expected a finite number"},
       {typed("FP32", "[1,null,3]"), "input 'x': value 1 is null, expected a finite number"},
       {typed("FP32", "[1,1e39,3]"), "input 'x': value 1 is 1e+39, expected a finite number"},
       {typed("FP64", "[1,-1e300,3]"), "input 'x': value 1 is -1e+300, expected a finite number"},
       {typed("FP32", "[1,[2],3]"), "input 'x': value 1 is an array, expected a finite number"},
       {typed("FP32", "[[1,2],[3]]"), "input 'x': data is not nested as shape [1,3] says"},
       {typed("FP32", "[[1],[2],[3]]"), "input 'x': data is not nested as shape [1,3] says"},
       {typed("FP32", "[[1,2,3],4]"), "input 'x': data is not nested as shape [1,3] says"},
       {typed("FP32", "[[1,2,[3]]]"), "input 'x': value 2 is an array, expected a finite number"},
       {typed("INT8", "[1,2,128]"), "input 'x': value 2 is 128, expected a whole number within INT8"},
       {typed("INT32", "[1,2,1.5]"), "input 'x': value 2 is 1.5, expected a whole number within INT32"},
       {typed("UINT8", "[1,2,-1]"), "input 'x': value 2 is -1, expected a whole number within UINT8"},
       {typed("UINT64", "[1,2,18446744073709551615]"),
        "input 'x': value 2 is 18446744073709551615, expected a whole number within UINT64"},
       {typed("BOOL", "[1,0,1]"), "input 'x': value 0 is 1, expected true or false"},
       {WithX(R"("shape":[1,3],"datatype":"FP32","data":[1,2,3],"parameters":7)"),
        "input 'x': parameters is 7, expected an object"}});
}

TEST(InferRequest, SaysWhatIsWrongWithBinaryData) {
  const Served served(DenseInput(3), LinearFor(DenseInput(3)));
  const auto said = [&](std::string_view rest, std::string_view bytes, std::ptrdiff_t beyond = 0) {
    const std::string json = WithX(rest), body = Str(json, bytes);
    return SaidOf(*served, {body, json.size() + static_cast<std::uint64_t>(beyond)});
  };
  const std::string three = R"("shape":[1,3],"datatype":"FP32","parameters":{"binary_data_size":12})";
  const std::string fine = BytesOfValues<float>({1, 2, 3});
  EXPECT_EQ(said(three, fine), "");
  EXPECT_EQ(SaidOf(*served, {WithX(three)}),
            "input 'x': has binary_data_size, but the request has no header Inference-Header-Content-Length");
  EXPECT_EQ(said(three, fine, 13), Str("Inference-Header-Content-Length is ", WithX(three).size() + 13,
                                       ", but the body has ", WithX(three).size() + 12, " bytes"));
  EXPECT_EQ(said(three, fine.substr(1)),
            "input 'x': parameters: binary_data_size is 12, but 11 bytes are left in the body");
  EXPECT_EQ(said(three, fine + "zz"), "the body has 2 bytes after the last binary tensor");
  EXPECT_EQ(said(R"("shape":[1,3],"datatype":"FP32","data":[1,2,3])", "z"),
            "the body has 1 bytes after the last binary tensor");
  EXPECT_EQ(said(R"("shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":12})", fine),
            "input 'x': shape [2,3] of FP32 needs 24 bytes, got 12");
  EXPECT_EQ(said(R"("shape":[4611686018427387904,3],"datatype":"FP32","parameters":{"binary_data_size":12})", fine),
            "input 'x': shape [4611686018427387904,3] of FP32 needs more bytes than can be counted, got 12");
  EXPECT_EQ(said(R"("shape":[1,3],"datatype":"FP32","parameters":{"binary_data_size":-1})", fine),
            "input 'x': parameters: binary_data_size is -1, expected a whole number that is not negative");
  EXPECT_EQ(said(R"("shape":[1,3],"datatype":"FP32","parameters":{"binary_data_size":"12"})", fine),
            "input 'x': parameters: binary_data_size is '12', expected a whole number that is not negative");
  EXPECT_EQ(said(three + R"(,"data":[1,2,3])", fine),
            "input 'x': has both data and binary_data_size, expected one of them");
  EXPECT_EQ(said(three, BytesOfValues<float>({1, NAN, 3})), "input 'x': value 1 is nan, expected a finite number");
  EXPECT_EQ(said(three, BytesOfValues<float>({1, 2, -INFINITY})),
            "input 'x': value 2 is -inf, expected a finite number");
  EXPECT_EQ(said(R"("shape":[1,3],"datatype":"FP16","parameters":{"binary_data_size":6})",
                 BytesOfValues<std::uint16_t>({0x3c00, 0x7c00, 0})),
            "input 'x': value 1 is inf, expected a finite number");
  EXPECT_EQ(said(R"("shape":[1,3],"datatype":"FP64","parameters":{"binary_data_size":24})",
                 BytesOfValues<double>({0, 1e39, 0})),
            "input 'x': value 1 is inf, expected a finite number");
  EXPECT_EQ(said(R"("shape":[1,3],"datatype":"BOOL","parameters":{"binary_data_size":3})", "\1\2\0"s),
            "input 'x': value 1 is 2, expected 0 or 1");
  EXPECT_EQ(said(R"("shape":[1,3],"datatype":"UINT64","parameters":{"binary_data_size":24})",
                 BytesOfValues<std::uint64_t>({1, 2, 1ull << 63})),
            "input 'x': value 2 is 9223372036854775808, expected at most what INT64 holds");
}

TEST(InferRequest, SaysWhatIsWrongWithBinaryStrings) {
  const Served served(RatingsInput(), FactorizationConfig());
  const auto said = [&](std::string_view bytes) {
    const std::string json =
        Str(R"({"inputs":[{"name":"item","shape":[2],"datatype":"BYTES","data":["a","b"]},)",
            R"({"name":"user","shape":[2],"datatype":"BYTES","parameters":{"binary_data_size":)", bytes.size(), "}}]}");
    const std::string body = Str(json, bytes);
    return SaidOf(*served, {body, json.size()});
  };
  EXPECT_EQ(said(BytesOfTexts({"1", "2"})), "");
  EXPECT_EQ(said("\1\0\0\0\0\0\0"s), "input 'user': shape [2] of BYTES needs at least 8 bytes, got 7");
  EXPECT_EQ(said("\4\0\0\0aaaa\0\0\0"s),
            "input 'user': value 1 is cut off after 3 bytes, expected 4 bytes of its length");
  EXPECT_EQ(said("\1\0\0\0a\xff\xff\xff\xff"s),
            "input 'user': value 1 is said to have 4294967295 bytes, expected at most the 0 that are left");
  EXPECT_EQ(said(BytesOfTexts({"1", "2"}) + "zz"), "input 'user': 2 bytes are left after its last value");
  EXPECT_EQ(said(BytesOfTexts({"1", ""})), "column 'user', row 1: found '', expected a name");
}

TEST(InferRequest, SaysWhatIsWrongWithSparseRows) {
  const Served served(SparseInput(), LinearFor(SparseInput()));
  const auto with = [](std::string_view indptr, std::string_view indices, std::string_view values) {
    return Str(R"({"inputs":[{"name":"indptr","shape":[)", indptr, R"(},{"name":"indices","shape":[)", indices,
               R"(},{"name":"values","shape":[)", values, "}]}");
  };
  const std::string starts = R"(2],"datatype":"INT64","data":[0,2])", indices = R"(2],"datatype":"INT64","data":[1,2])",
                    values = R"(2],"datatype":"FP32","data":[1,2])";
  const std::string reading = "; while reading inputs 'indptr', 'indices' and 'values'";
  ExpectMalformed(
      *served,
      {{with(starts, indices, values), ""},
       {with(R"(1],"datatype":"INT64","data":[0])", R"(0],"datatype":"INT64","data":[])",
             R"(0],"datatype":"FP32","data":[])"),
        ""},
       {WithX(R"("shape":[1],"datatype":"FP32","data":[1])"),
        "input 'x': the model has no such input, expected 'indptr', 'indices', 'values'"},
       {R"({"inputs":[{"name":"indptr","shape":[1],"datatype":"INT64","data":[0]}]})", "input 'indices' is missing"},
       {with(R"(2],"datatype":"FP32","data":[0,2])", indices, values),
        "input 'indptr': datatype FP32, expected a type of whole numbers"},
       {with(starts, R"(2,1],"datatype":"INT64","data":[1,2])", values), "input 'indices': shape [2,1], expected [-1]"},
       {with(R"(0],"datatype":"INT64","data":[])", indices, values), "found no start of a row, expected 0" + reading},
       {with(R"(2],"datatype":"INT64","data":[0,9])", indices, values),
        "row 0 starts at 0 and ends at 9, expected an end from 0 to 2" + reading},
       {with(starts, R"(2],"datatype":"INT64","data":[2,1])", values),
        "row 0: index 1 after index 2, expected ascending order" + reading},
       {with(starts, R"(2],"datatype":"INT64","data":[0,1])", values), "row 0: index 0, expected 1 or more" + reading},
       {with(starts, indices, R"(1],"datatype":"FP32","data":[1])"), "2 indices, but 1 values" + reading}});
}

TEST(InferRequest, SaysWhatIsWrongWithColumns) {
  const Served table(TableInput(), LinearFor(TableInput())), ratings(RatingsInput(), FactorizationConfig());
  ExpectMalformed(*table, {{R"({"inputs":[{"name":"ages","shape":[1],"datatype":"FP32","data":[1]}]})",
                            "column 'ages': the model has no such column"},
                           {R"({"inputs":[{"name":"age","shape":[1],"datatype":"BYTES","data":["old"]}]})",
                            "column 'age', row 0: found 'old', expected a number"},
                           {R"({"inputs":[{"name":"age","shape":[2],"datatype":"FP32","data":[1,2]},
           {"name":"city","shape":[1],"datatype":"BYTES","data":["Rome"]}]})",
                            "input 'city': shape [1], expected [2] or [2,1]"},
                           {R"({"inputs":[{"name":"age","shape":[1,2],"datatype":"FP32","data":[1,2]}]})",
                            "input 'age': shape [1,2], expected [1] or [1,1]"}});
  ExpectMalformed(*ratings, {{R"({"inputs":[{"name":"user","shape":[1],"datatype":"BYTES","data":["1"]}]})",
                              "column 'item': is missing, expected one, since every rating has it"},
                             {R"({"inputs":[{"name":"user","shape":[1],"datatype":"BYTES","data":[null]},
                                 {"name":"item","shape":[1],"datatype":"BYTES","data":["a"]}]})",
                              "input 'user': value 0 is null, expected a string"}});
}

TEST(InferRequest, BlamesTheNameOfATensorThatIsNotThere) {
  const Served table(TableInput(), LinearFor(TableInput())), dense(TableInput(true), LinearFor(TableInput(true)));
  const std::string body = R"({"inputs":[{"name":"input","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]})";
  ExpectMalformed(*dense, {{body, "input 'input': the model has no such input, expected 'x'"}});
  ExpectMalformed(*table, {{body, "input 'input': the model has no such input, expected 'age', 'city', 'income'"}});
}

TEST(InferRequest, TakesDatesAsTexts) {
  data::Description description = TableInput();
  description.columns.push_back({"day", data::Column::Kind::kDate});
  description.features += 3;
  description.moments = data::Moments(description.features);
  const Served served(description, LinearFor(description));
  std::string json;
  (*served).AppendMetadata(json);
  EXPECT_NE(json.find(R"({"name":"day","datatype":"BYTES","shape":[-1]})"), std::string::npos) << json;
  const auto request =
      Parse(*served, {R"({"inputs":[{"name":"day","shape":[1],"datatype":"BYTES","data":["2021-03-04"]}]})"});
  ASSERT_TRUE(request.ok()) << request.error().text;
  const auto values = Copy(request.value().rows.values);
  EXPECT_EQ(std::vector<float>(values.begin() + 2, values.end()), (std::vector<float>{2021, 3, 4}));
}

TEST(InferRequest, RefusesMoreRowsTensorsAndScoresThanItsLimits) {
  const auto many = [](std::size_t count, std::string_view what) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += Str(i == 0 ? "" : ",", what);
    return all;
  };
  const Served dense(DenseInput(3), LinearFor(DenseInput(3))), table(TableInput(), LinearFor(TableInput()));
  const std::string x = R"({"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]})";
  const auto wide = DenseInput(1, {"a", "b", "c"});
  model::ModelConfig config = LinearFor(wide);
  config.classes = 1000;
  const Served scores(wide, config);
  ExpectMalformed(*dense, {{WithX(Str(R"("shape":[100001,3],"datatype":"INT8","data":[)", many(300'003, "0"), "]")),
                            "input 'x': 100001 rows, expected at most 100000"},
                           {Str(R"({"inputs":[)", many(65, x), "]}"), "inputs has 65 tensors, expected at most 64"},
                           {Str(R"({"inputs":[)", x, R"(],"outputs":[)", many(65, R"({"name":"score"})"), "]}"),
                            "outputs has 65 tensors, expected at most 64"}});
  ExpectMalformed(*scores, {{WithX(Str(R"("shape":[5000,1],"datatype":"INT8","data":[)", many(5000, "0"), "]")),
                             "5000 rows of 1000 scores, expected at most 4194 rows"}});
  ExpectMalformed(
      *table,
      {{Str(R"({"inputs":[{"name":"age","shape":[100001],"datatype":"INT8","data":[)", many(100'001, "0"), "]}]}"),
        "input 'age': 100001 rows, expected at most 100000"}});
}

TEST(InferRequest, RefusesRowsThatWouldTakeFarMoreMemoryThanTheyWereSentIn) {
  data::Description description = TableInput();
  for (int i = 0; i < 200; ++i) description.columns.push_back({Str("n", i), data::Column::Kind::kNumber});
  description.features += 200;
  description.moments = data::Moments(description.features);
  const Served served(description, LinearFor(description));
  std::string zeros = "0";
  for (int i = 1; i < 50'000; ++i) zeros += ",0";
  EXPECT_EQ(
      SaidOf(*served, {Str(R"({"inputs":[{"name":"age","shape":[50000],"datatype":"INT8","data":[)", zeros, "]}]}")}),
      "input 'age': 50000 rows of 207 columns, expected at most 40524 rows");
}

}  // namespace
}  // namespace freshet::serve
