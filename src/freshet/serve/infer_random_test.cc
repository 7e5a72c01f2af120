// Random requests, read by InferParser and by a plain reader on top of another JSON library: the same rows come out.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "serve/infer_request.h"
#include "serve/models_testing.h"

namespace freshet::serve {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::uint32_t> Bits(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::isnan(value) ? 0x7fc00000 : std::bit_cast<std::uint32_t>(value));
  return bits;
}

void ExpectSame(const data::Rows& found, const data::Rows& expected) {
  EXPECT_EQ(found.width, expected.width);
  EXPECT_EQ(Bits(found.labels.span()), Bits(expected.labels.span()));
  EXPECT_EQ(Bits(found.dense.span()), Bits(expected.dense.span()));
  EXPECT_EQ(Bits(found.values.span()), Bits(expected.values.span()));
  EXPECT_EQ(Copy(found.offsets), Copy(expected.offsets));
  EXPECT_EQ(Copy(found.indices), Copy(expected.indices));
  EXPECT_EQ(Copy(found.times), Copy(expected.times));
}

// A tensor of a random request: its values as JSON has them, flat.
struct RandomTensor {
  std::string name, datatype;
  std::vector<std::uint64_t> shape;
  Json values = Json::array();
};

Json RandomNumber(base::Random& random, std::string_view datatype) {
  if (datatype == "FP64") return std::ldexp(random.Normal(), static_cast<int>(random.Below(40)) - 20);
  if (datatype == "FP32") return static_cast<double>(static_cast<float>(random.Normal()));
  if (datatype == "UINT8") return random.Below(256);
  return static_cast<std::int64_t>(random.Next()) >> random.Below(64);
}

RandomTensor RandomNumbers(base::Random& random, std::string name, std::vector<std::uint64_t> shape) {
  static constexpr std::string_view kTypes[] = {"FP32", "FP64", "INT64", "UINT8"};
  RandomTensor tensor{std::move(name), std::string(kTypes[random.Below(4)]), std::move(shape)};
  std::uint64_t count = 1;
  for (const std::uint64_t size : tensor.shape) count *= size;
  for (std::uint64_t i = 0; i < count; ++i) tensor.values.push_back(RandomNumber(random, tensor.datatype));
  return tensor;
}

RandomTensor RandomNames(base::Random& random, std::string name, std::uint64_t rows, bool missing) {
  static const std::string kNames[] = {"1", "ann", "a", "b", "Rome", "7", "ü \"quoted\" \\ \u96ea \n", "NA", "😀"};
  RandomTensor tensor{std::move(name), "BYTES", {rows}};
  for (std::uint64_t r = 0; r < rows; ++r)
    tensor.values.push_back(missing && random.Below(5) == 0 ? Json() : Json(kNames[random.Below(std::size(kNames))]));
  return tensor;
}

// Flat values as arrays within arrays.
Json Nested(const Json& flat, const std::vector<std::uint64_t>& shape, std::size_t dimension, std::size_t& at) {
  Json array = Json::array();
  for (std::uint64_t i = 0; i < shape[dimension]; ++i)
    array.push_back(dimension + 1 == shape.size() ? flat[at++] : Nested(flat, shape, dimension + 1, at));
  return array;
}

template <class T>
std::string BinaryNumbers(const Json& values) {
  std::vector<T> numbers;
  for (const Json& value : values) numbers.push_back(value.get<T>());
  return BytesOfValues(numbers);
}

std::string Binary(const RandomTensor& tensor) {
  if (tensor.datatype == "BYTES") return BytesOfTexts(tensor.values.get<std::vector<std::string>>());
  if (tensor.datatype == "FP32") return BinaryNumbers<float>(tensor.values);
  if (tensor.datatype == "FP64") return BinaryNumbers<double>(tensor.values);
  if (tensor.datatype == "UINT8") return BinaryNumbers<std::uint8_t>(tensor.values);
  return BinaryNumbers<std::int64_t>(tensor.values);
}

// The keys of an object in random order.
Json Shuffled(base::Random& random, const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  for (std::size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.Below(i)]);
  Json shuffled = Json::object();
  for (const std::string& key : keys) shuffled[key] = object[key];
  return shuffled;
}

struct RandomBody {
  std::string bytes;
  std::uint64_t json_bytes = 0;
  std::vector<RandomTensor> tensors;
};

RandomBody WriteBody(base::Random& random, std::vector<RandomTensor> tensors) {
  RandomBody body;
  const bool may_be_binary = random.Below(2) == 0;
  Json inputs = Json::array();
  std::string binary;
  for (const RandomTensor& tensor : tensors) {
    Json input = {{"name", tensor.name}, {"shape", tensor.shape}, {"datatype", tensor.datatype}};
    const bool nulls = std::any_of(tensor.values.begin(), tensor.values.end(), [](auto& v) { return v.is_null(); });
    if (may_be_binary && !nulls && random.Below(2) == 0) {
      input["parameters"] = {{"binary_data_size", Binary(tensor).size()}};
      binary += Binary(tensor);
    } else {
      std::size_t at = 0;
      input["data"] = random.Below(2) == 0 ? tensor.values : Nested(tensor.values, tensor.shape, 0, at);
    }
    if (random.Below(4) == 0) input["comment"] = {{"data", {1, {2, "x"}}}};
    inputs.push_back(Shuffled(random, input));
  }
  const Json root = Shuffled(random, {{"inputs", inputs}, {"id", "r"}, {"other", {1.5, nullptr, "id"}}});
  body.bytes = root.dump(random.Below(2) == 0 ? -1 : 2, ' ', random.Below(2) == 0);
  body.json_bytes = body.bytes.size();
  body.bytes += binary;
  body.tensors = std::move(tensors);
  return body;
}

// The reference: values as nlohmann's parser has them after a round through text, handed to the row builder.
struct Column {
  std::string name;
  std::vector<double> doubles;
  std::vector<float> floats;
  std::vector<std::int64_t> wholes;
  std::vector<std::string> texts;
  std::vector<std::string_view> views;

  explicit Column(const RandomTensor& tensor) : name(tensor.name) {
    const Json values = Json::parse(tensor.values.dump());
    for (const Json& value : values) {
      if (tensor.datatype == "FP64") doubles.push_back(value.get<double>());
      if (tensor.datatype == "FP32") floats.push_back(static_cast<float>(value.get<double>()));
      if (tensor.datatype == "INT64" || tensor.datatype == "UINT8") wholes.push_back(value.get<std::int64_t>());
      if (tensor.datatype == "BYTES") texts.push_back(value.is_null() ? "" : value.get<std::string>());
    }
  }
  std::vector<float> AsFloats() const {
    std::vector<float> all = floats;
    for (const double number : doubles) all.push_back(static_cast<float>(number));
    for (const std::int64_t number : wholes) all.push_back(static_cast<float>(static_cast<double>(number)));
    return all;
  }
  data::Cells cells() {
    if (!doubles.empty()) return {name, std::span<const double>(doubles)};
    if (!floats.empty()) return {name, std::span<const float>(floats)};
    if (!wholes.empty()) return {name, std::span<const std::int64_t>(wholes)};
    views.assign(texts.begin(), texts.end());
    return {name, std::span<const std::string_view>(views)};
  }
};

InferRequest ParseBody(const RandomBody& body, const Signature& signature, InferParser& parser) {
  InferRequest request;
  const auto parsed = parser.Parse({body.bytes, body.json_bytes}, signature, request);
  EXPECT_TRUE(parsed.ok()) << parsed.error().text << "\n" << body.bytes;
  EXPECT_EQ(request.id, "r");
  return request;
}

TEST(InferRandom, DenseRowsAreThoseOfAPlainReader) {
  InferParser parser;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "dense");
    const std::uint64_t a = 1 + random.Below(6), b = 1 + random.Below(4), rows = random.Below(6);
    const Served served(DenseInput(a * b), LinearFor(DenseInput(a * b)));
    const auto shape = random.Below(2) == 0 ? std::vector{rows, a * b} : std::vector{rows, a, b};
    const RandomBody body = WriteBody(random, {RandomNumbers(random, "x", shape)});
    data::Rows expected;
    ASSERT_TRUE((*served).builder().FromNumbers(Column(body.tensors[0]).AsFloats(), expected).ok());
    ExpectSame(ParseBody(body, *served, parser).rows, expected);
  }
}

TEST(InferRandom, SparseRowsAreThoseOfAPlainReader) {
  InferParser parser;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "sparse");
    const data::Description description = SparseInput(random.Below(2) == 0 ? 0 : 12);
    const Served served(description, LinearFor(description));
    RandomTensor starts{"indptr", "INT64", {}, Json::array({0})}, indices{"indices", "INT64", {}};
    for (std::uint64_t r = random.Below(6); r > 0; --r) {
      std::int64_t index = 0;
      for (std::uint64_t i = random.Below(6); i > 0; --i)
        indices.values.push_back(index += 1 + static_cast<std::int64_t>(random.Below(1000)));
      starts.values.push_back(indices.values.size());
    }
    starts.shape = {starts.values.size()};
    indices.shape = {indices.values.size()};
    const RandomTensor values = RandomNumbers(random, "values", indices.shape);
    const RandomBody body = WriteBody(random, {values, starts, indices});
    data::Rows expected;
    ASSERT_TRUE((*served)
                    .builder()
                    .FromIndices(Column(starts).wholes, Column(indices).wholes, Column(values).AsFloats(), expected)
                    .ok());
    ExpectSame(ParseBody(body, *served, parser).rows, expected);
  }
}

void ExpectSameColumns(const RandomBody& body, const Served& served, InferParser& parser) {
  std::vector<Column> columns;
  for (const RandomTensor& tensor : body.tensors) columns.emplace_back(tensor);
  std::vector<data::Cells> cells;
  for (Column& column : columns) cells.push_back(column.cells());
  data::Rows expected;
  std::vector<data::NewName> names;
  ASSERT_TRUE((*served).builder().FromColumns(body.tensors[0].shape[0], cells, false, expected, names).ok());
  const InferRequest request = ParseBody(body, *served, parser);
  ExpectSame(request.rows, expected);
  ASSERT_EQ(request.names.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(request.names[i].entry, names[i].entry);
    EXPECT_EQ(request.names[i].space, names[i].space);
    EXPECT_EQ(request.names[i].name, names[i].name);
  }
}

TEST(InferRandom, ColumnsAreThoseOfAPlainReader) {
  InferParser parser;
  const Served table(TableInput(), LinearFor(TableInput())), ratings(RatingsInput(), FactorizationConfig());
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "columns");
    const std::uint64_t rows = 1 + random.Below(6);
    const auto shape = random.Below(2) == 0 ? std::vector{rows} : std::vector{rows, std::uint64_t{1}};
    std::vector<RandomTensor> tensors = {RandomNumbers(random, "income", shape)};
    if (random.Below(3) > 0) tensors.push_back(RandomNames(random, "city", rows, true));
    if (random.Below(3) > 0) tensors.push_back(RandomNumbers(random, "age", shape));
    ExpectSameColumns(WriteBody(random, tensors), table, parser);
    tensors = {RandomNames(random, "item", rows, false), RandomNames(random, "user", rows, false)};
    ExpectSameColumns(WriteBody(random, tensors), ratings, parser);
  }
}

TEST(InferRandom, BodiesCutOffOrChangedAreRefusedOrReadWithoutHarm) {
  InferParser parser;
  InferRequest request;
  const Served ratings(RatingsInput(), FactorizationConfig());
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    base::Random random(seed, "damage");
    const RandomBody body =
        WriteBody(random, {RandomNames(random, "item", 3, false), RandomNames(random, "user", 3, false)});
    const std::string cut = body.bytes.substr(0, random.Below(body.bytes.size()));
    EXPECT_FALSE(parser.Parse({cut, std::min<std::uint64_t>(body.json_bytes, cut.size())}, *ratings, request).ok());
    std::string changed = body.bytes;
    for (std::uint64_t i = 1 + random.Below(3); i > 0; --i)
      changed[random.Below(changed.size())] = static_cast<char>(random.Next());
    (void)parser.Parse({changed, body.json_bytes}, *ratings, request);
  }
}

}  // namespace
}  // namespace freshet::serve
