#include "serve/tensors.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "serve/models_testing.h"

namespace freshet::serve {
namespace {

std::string MetadataOf(const Signature& signature) {
  std::string json = "{";
  signature.AppendMetadata(json);
  json += "}";
  EXPECT_TRUE(nlohmann::json::accept(json)) << json;
  return json;
}

TEST(Signature, OfDenseRowsIsOneTensorOfNumbers) {
  const Served served(DenseInput(28), LinearFor(DenseInput(28)));
  EXPECT_EQ(MetadataOf(*served), R"({"inputs":[{"name":"x","datatype":"FP32","shape":[-1,28]}],)"
                                 R"("outputs":[{"name":"score","datatype":"FP32","shape":[-1,1]},)"
                                 R"({"name":"label","datatype":"BYTES","shape":[-1]}]})");
}

TEST(Signature, OfSparseRowsIsThreeTensors) {
  const Served served(SparseInput(), LinearFor(SparseInput()));
  EXPECT_EQ(MetadataOf(*served),
            R"({"inputs":[{"name":"indptr","datatype":"INT64","shape":[-1]},)"
            R"({"name":"indices","datatype":"INT64","shape":[-1]},{"name":"values","datatype":"FP32","shape":[-1]}],)"
            R"("outputs":[{"name":"score","datatype":"FP32","shape":[-1,1]},)"
            R"({"name":"label","datatype":"BYTES","shape":[-1]}]})");
}

TEST(Signature, OfATableWithCategoriesIsItsColumns) {
  const Served served(TableInput(), LinearFor(TableInput()));
  EXPECT_EQ(
      MetadataOf(*served),
      R"({"inputs":[{"name":"age","datatype":"FP32","shape":[-1]},{"name":"city","datatype":"BYTES","shape":[-1]},)"
      R"({"name":"income","datatype":"FP32","shape":[-1]}],)"
      R"("outputs":[{"name":"score","datatype":"FP32","shape":[-1,1]},)"
      R"({"name":"label","datatype":"BYTES","shape":[-1]}]})");
}

TEST(Signature, OfRatingsIsUserAndItem) {
  const Served served(RatingsInput(), FactorizationConfig());
  EXPECT_EQ(
      MetadataOf(*served),
      R"({"inputs":[{"name":"user","datatype":"BYTES","shape":[-1]},{"name":"item","datatype":"BYTES","shape":[-1]}],)"
      R"("outputs":[{"name":"score","datatype":"FP32","shape":[-1,1]}]})");
}

TEST(Signature, HasAScoreForEachOfManyClassesAndOnlyAScoreForNumbers) {
  const auto three = DenseInput(4, {"a", "b", "c"}), real = DenseInput(4, {});
  EXPECT_NE(MetadataOf(*Served(three, LinearFor(three))).find(R"({"name":"score","datatype":"FP32","shape":[-1,3]})"),
            std::string::npos);
  EXPECT_EQ((*Served(real, LinearFor(real))).outputs().size(), 1u);
}

TEST(Signature, OfClustersAnswersWithTheirNumbers) {
  const Served served(DenseInput(2, {}), ClustersFor(DenseInput(2, {})));
  EXPECT_NE(MetadataOf(*served).find(R"("outputs":[{"name":"cluster","datatype":"INT64","shape":[-1]}])"),
            std::string::npos);
}

TEST(Datatype, IsFoundByItsName) {
  for (const std::string_view name : {"BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64",
                                      "FP16", "FP32", "FP64", "BYTES"}) {
    ASSERT_TRUE(FindDatatype(name).has_value()) << name;
    EXPECT_EQ(Name(*FindDatatype(name)), name);
  }
  EXPECT_FALSE(FindDatatype("fp32").has_value());
  EXPECT_FALSE(FindDatatype("").has_value());
}

TEST(JsonBytes, AreAWholeNumber) {
  EXPECT_EQ(ParseJsonBytes("120").value(), 120u);
  for (const std::string_view bad : {"", "-1", "12a", " 12", "0x10", "99999999999999999999", "1.0"})
    EXPECT_FALSE(ParseJsonBytes(bad).ok()) << bad;
  EXPECT_EQ(ParseJsonBytes("x").error().text,
            "Inference-Header-Content-Length is 'x', expected the number of bytes of the JSON");
}

TEST(JsonString, IsEscapedAsJsonWantsIt) {
  const auto quoted = [](std::string_view text) {
    std::string json;
    AppendJsonString(text, json);
    return json;
  };
  EXPECT_EQ(quoted("a\"b\\c/d"), R"("a\"b\\c/d")");
  EXPECT_EQ(quoted(std::string_view("\n\t\0\x1f\x7f", 5)), "\"\\n\\u0009\\u0000\\u001f\x7f\"");
  EXPECT_EQ(quoted("grün 雪 🦆"), "\"grün 雪 🦆\"");
  EXPECT_EQ(quoted("\xff\xc3"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(quoted("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");  // half of a surrogate pair
}

TEST(JsonString, ReadsBackWhateverTheBytes) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "strings");
    std::string text;
    for (std::uint64_t i = random.Below(12); i > 0; --i)
      text += static_cast<char>(random.Below(3) == 0 ? random.Below(128) : 0x80 + random.Below(128));
    std::string json;
    AppendJsonString(text, json);
    const auto read = nlohmann::json::parse(json, nullptr, false);
    ASSERT_FALSE(read.is_discarded());
    bool plain = true;
    try {
      (void)nlohmann::json(text).dump();
    } catch (const nlohmann::json::exception&) {
      plain = false;
    }
    EXPECT_EQ(read == text, plain);  // text that another writer takes for UTF-8 is kept as it is, and no other
  }
}

}  // namespace
}  // namespace freshet::serve
