#include "data/tensor_file.h"

#include <cmath>
#include <cstring>

#include "base/faulty_files.h"
#include "base/random.h"
#include "data/description.h"
#include "data/world_testing.h"

namespace freshet::data {
namespace {

std::string Written(const std::vector<Tensor>& tensors, const Metadata& metadata = {}) {
  base::StringFile file;
  EXPECT_TRUE(WriteTensors(file, tensors, metadata).ok());
  return file.text;
}

// A file of just these bytes behind a header length.
std::string Made(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

std::string Entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& range) {
  return Str("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":", shape, ",\"data_offsets\":", range, "}");
}

TEST(TensorFile, GivesBackWhatWasPutIn) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    base::Random random(seed, "tensors");
    std::vector<Tensor> tensors;
    std::vector<std::string> storage(random.Below(6));
    const DType types[] = {DType::kF32, DType::kF64, DType::kU8, DType::kU32, DType::kI64, DType::kU64};
    const std::size_t sizes[] = {4, 8, 1, 4, 8, 8};
    for (std::size_t i = 0; i < storage.size(); ++i) {
      const std::size_t type = random.Below(6);
      const std::uint64_t rows = random.Below(5), columns = random.Below(5);
      storage[i].resize(rows * columns * sizes[type]);
      for (char& c : storage[i]) c = static_cast<char>(random.Next());
      tensors.push_back(
          {Str("tensor ", i, " \"\\\xc3\xa9"), types[type], {rows, columns}, std::as_bytes(std::span(storage[i]))});
    }
    Metadata metadata = {{"format", "test"}, {"odd \" key", "\n\t\\ \"header_crc32c\":\"12345678\""}};
    const std::string bytes = Written(tensors, metadata);
    const auto file = TensorFile::Parse(bytes, "file");
    ASSERT_TRUE(file.ok()) << file.error().text;
    ASSERT_EQ(file.value().tensors().size(), tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Tensor* const found = file.value().Find(tensors[i].name);
      ASSERT_NE(found, nullptr);
      ASSERT_EQ(found->dtype, tensors[i].dtype);
      ASSERT_EQ(found->shape, tensors[i].shape);
      ASSERT_EQ(std::string_view(reinterpret_cast<const char*>(found->bytes.data()), found->bytes.size()), storage[i]);
    }
    for (const auto& [key, value] : metadata) ASSERT_EQ(file.value().Meta(key).value(), value);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    ASSERT_EQ((8 + length) % 64, 0u) << "tensors are aligned";
  }
}

TEST(TensorFile, GivesValuesOfTheRightTypeOnly) {
  const std::vector<float> floats = {1, 2.5, -3};
  const auto file =
      TensorFile::Parse(Written({{"w", DType::kF32, {3}, std::as_bytes(std::span(floats))}}), "m.safetensors").value();
  EXPECT_EQ(file.Values<float>("w").value(), floats);
  EXPECT_EQ(file.Values<double>("w").error().text, "m.safetensors: tensor 'w' is F32, expected F64");
  EXPECT_EQ(file.Values<float>("v").error().code, Code::kCorrupt);
  EXPECT_EQ(file.Meta("input").error().code, Code::kCorrupt);
}

TEST(TensorFile, SaysWhatIsWrongWithAFile) {
  const std::string four(4, 'x'), eight(8, 'x');
  const std::string huge_length = std::string(7, '\xff') + "\x7f" + "{}";
  const struct {
    const char* name;
    std::string bytes, says;
  } table[] = {
      {"empty", "", "0 bytes; a safetensors file has at least 8"},
      {"cut off inside the length", "1234567", "7 bytes; a safetensors file has at least 8"},
      {"cut off inside the header", Made("{\"a\":1}").substr(0, 12),
       "header of 7 bytes in a file of 12; truncated, or not a safetensors file"},
      {"huge header", huge_length,
       "header of 9223372036854775807 bytes in a file of 10; truncated, or not a safetensors file"},
      {"header above the format's limit", Made(std::string(100'000'001, ' ')),
       "header of 100000001 bytes in a file of 100000009; truncated, or not a safetensors file"},
      {"no JSON", Made("{\"a\":"), "the header is not a JSON object"},
      {"a JSON array", Made("[1]"), "the header is not a JSON object"},
      {"a JSON string with bad bytes", Made("{\"\xff\":1}"), "the header is not a JSON object"},
      {"metadata is no object", Made("{\"__metadata__\":7}"), "__metadata__ is not an object"},
      {"metadata is no text", Made("{\"__metadata__\":{\"a\":7}}"), "metadata 'a' is not text"},
      {"a tensor is no object", Made("{\"a\":7}"), "tensor 'a': dtype, shape or data_offsets missing or malformed"},
      {"no dtype", Made("{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", four),
       "tensor 'a': dtype, shape or data_offsets missing or malformed"},
      {"negative shape", Made("{" + Entry("a", "F32", "[-1]", "[0,4]") + "}", four),
       "tensor 'a': dtype, shape or data_offsets missing or malformed"},
      {"fractional shape", Made("{" + Entry("a", "F32", "[1.5]", "[0,4]") + "}", four),
       "tensor 'a': dtype, shape or data_offsets missing or malformed"},
      {"one offset", Made("{" + Entry("a", "F32", "[1]", "[0]") + "}", four),
       "tensor 'a': dtype, shape or data_offsets missing or malformed"},
      {"unknown dtype", Made("{" + Entry("a", "Q4", "[1]", "[0,4]") + "}", four),
       "tensor 'a': type 'Q4' is not one of ours"},
      {"shape overflows", Made("{" + Entry("a", "F32", "[4611686018427387904,4]", "[0,4]") + "}", four),
       "tensor 'a': shape overflows"},
      {"shape does not fit", Made("{" + Entry("a", "F32", "[2]", "[0,4]") + "}", four),
       "tensor 'a': 4 bytes, its shape has 8"},
      {"end before begin", Made("{" + Entry("a", "F32", "[0]", "[4,0]") + "}", four),
       "tensor 'a': bytes 4 to 0 of 4; truncated, or its ranges overlap or leave gaps"},
      {"data cut off", Made("{" + Entry("a", "F32", "[1]", "[0,4]") + "}", "xx"),
       "tensor 'a': bytes 0 to 4 of 2; truncated, or its ranges overlap or leave gaps"},
      {"ranges overlap",
       Made("{" + Entry("a", "F32", "[1]", "[0,4]") + "," + Entry("b", "F32", "[1]", "[2,6]") + "}", eight),
       "tensor 'b': bytes 2 to 6 of 8; truncated, or its ranges overlap or leave gaps"},
      {"ranges leave a gap", Made("{" + Entry("a", "F32", "[1]", "[4,8]") + "}", eight),
       "tensor 'a': bytes 4 to 8 of 8; truncated, or its ranges overlap or leave gaps"},
      {"bytes behind the last tensor", Made("{" + Entry("a", "F32", "[1]", "[0,4]") + "}", eight),
       "4 bytes after the last tensor"},
      {"wrong checksum", Made("{\"__metadata__\":{\"crc32c\":\"1\"}," + Entry("a", "F32", "[1]", "[0,4]") + "}", four),
       "checksum 2619011343, the file says 1; the file is damaged, use a copy"},
      {"wrong checksum of the header", Made("{\"__metadata__\":{\"header_crc32c\":\"00000000\"}}"),
       "the checksum of its header is wrong; the file is damaged, use a copy"},
      {"checksum of the header cut off", Made("{\"__metadata__\":{\"header_crc32c\":\""),
       "the header is not a JSON object"},
      {"binary garbage", "\x02\x01\xff\x7f\x80\xfe\x01\x02\x03\x04",
       "header of 144676490909253890 bytes in a file of 10; truncated, or not a safetensors file"},
      {"deeply nested", Made("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}"),
       "tensor 'a': dtype, shape or data_offsets missing or malformed"},
  };
  for (const auto& [name, bytes, says] : table) {
    SCOPED_TRACE(name);
    const auto file = TensorFile::Parse(bytes, "m.safetensors");
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().code, Code::kCorrupt);
    EXPECT_EQ(file.error().text, "m.safetensors: " + says);
  }
}

TEST(TensorFile, OfAnotherProgramNeedsNoChecksum) {
  EXPECT_TRUE(TensorFile::Parse(Made("{" + Entry("a", "F32", "[1]", "[0,4]") + "}", "1234"), "file").ok());
  EXPECT_TRUE(TensorFile::Parse(Made("{}"), "file").ok());
}

TEST(TensorFile, ThatIsDamagedOrCutOffAnywhereIsRefused) {
  const std::vector<double> numbers = {1, 2, 3, 4};
  const std::string whole =
      Written({{"w", DType::kF64, {2, 2}, std::as_bytes(std::span(numbers))}}, {{"input", "some \"text\""}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto file = TensorFile::Parse(whole.substr(0, size), "file");
    ASSERT_FALSE(file.ok()) << size;
    ASSERT_EQ(file.error().code, Code::kCorrupt);
  }
  const std::size_t key_begin = whole.find("\"header_crc32c\":\"");
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
      const auto file = TensorFile::Parse(damaged, "file");
      if (file.ok() && at >= key_begin && at < key_begin + 17)
        continue;  // the name of the sum itself: the rest is sound
      ASSERT_FALSE(file.ok()) << "bit " << bit << " of byte " << at;
      ASSERT_EQ(file.error().code, Code::kCorrupt);
    }
}

TEST(TensorFile, IsTheOldOrTheNewOneWhicheverOperationFails) {
  World world;
  base::FaultyFiles faulty(world.posix);
  const std::string path = world.Path("model");
  const std::vector<float> floats = {1, 2, 3};
  const auto write = [&](base::Files& files, const char* version) {
    return base::WriteAtomic(files, path, [&](base::OutputFile& file) {
      return WriteTensors(file, {{"w", DType::kF32, {3}, std::as_bytes(std::span(floats))}}, {{"version", version}});
    });
  };
  ASSERT_TRUE(write(world.posix, "old").ok());
  bool failed = true;
  for (int nth = 1; failed; ++nth) {
    SCOPED_TRACE(Str("operation ", nth));
    faulty.FailAt(nth);
    const auto result = write(faulty, "new");
    failed = faulty.failures() > 0;
    EXPECT_EQ(result.ok(), !failed);
    EXPECT_EQ(world.Names(), std::vector<std::string>{"model"}) << "no draft is left";
    const auto file = TensorFile::Read(world.posix, path);
    ASSERT_TRUE(file.ok()) << file.error().text;
    EXPECT_EQ(file.value().Values<float>("w").value(), floats);
  }
}

TEST(Description, GivesBackWhatWasPutIn) {
  Description description;
  description.format = "csv";
  description.delimiter = "\xa6";
  description.header = true;
  description.columns = {{"caf\xe9 \"x\"", Column::Kind::kNumber},
                         {"\xc3\xa9", Column::Kind::kCategory},
                         {"", Column::Kind::kTime},
                         {"w", Column::Kind::kWeight},
                         {"i", Column::Kind::kIgnored},
                         {"y", Column::Kind::kLabel}};
  description.index_base = 0;
  description.bits = 20;
  description.labels.kind = Labels::Kind::kClasses;
  description.labels.names = {"a\xff", "b", "\x01"};
  description.features = 1;
  description.shape = {1, 2, 3};
  description.scale = 1.0 / 255;
  description.standardise = true;
  description.moments = Moments(1);
  const float value = 3;
  description.moments.Observe(&value);
  description.dictionaries.resize(2);
  description.dictionaries[1].Add("name \xff");
  description.joint_ids = true;

  Metadata metadata;
  std::vector<Tensor> tensors;
  std::vector<std::string> storage;
  description.Save(metadata, tensors, storage);
  const auto file = TensorFile::Parse(Written(tensors, metadata), "file");
  ASSERT_TRUE(file.ok()) << file.error().text;
  const auto loaded = Description::Load(file.value());
  ASSERT_TRUE(loaded.ok()) << loaded.error().text;
  EXPECT_EQ(loaded.value().ToJson(), description.ToJson());
  EXPECT_EQ(loaded.value().delimiter, description.delimiter);
  EXPECT_EQ(loaded.value().columns[0].name, description.columns[0].name);
  EXPECT_EQ(loaded.value().labels.names, description.labels.names);
  EXPECT_EQ(loaded.value().labels.Map("b"), 1);
  EXPECT_TRUE(loaded.value().moments == description.moments);
  EXPECT_EQ(loaded.value().dictionaries[1].Find("name \xff"), 0u);
}

// Saved and loaded again.
Result<Description> Reloaded(const Description& description) {
  Metadata metadata;
  std::vector<Tensor> tensors;
  std::vector<std::string> storage;
  description.Save(metadata, tensors, storage);
  return Description::Load(TRY(TensorFile::Parse(Written(tensors, metadata), "file")));
}

Description OfImages(View view) {
  Description description;
  description.format = "images";
  description.dense = true;
  description.shape = {3, 4, 5};
  description.features = 60;
  description.view = std::move(view);
  return description;
}

TEST(Description, KeepsWhatAModelIsShownOfAnImage) {
  const View views[] = {{.crop = 4},
                        {.crop = 0, .means = {0.5f, 0.25f, 0}, .deviations = {1, 0.1f, 2}},
                        {.crop = 2, .means = std::vector<float>(60, 0.5f), .deviations = {1, 1, 1}}};
  for (const View& view : views) {
    const auto loaded = Reloaded(OfImages(view));
    ASSERT_TRUE(loaded.ok()) << loaded.error().text;
    EXPECT_EQ(loaded.value().view, view);
    EXPECT_NE(loaded.value().ToJson().find("\"version\":2"), std::string::npos);
  }
}

TEST(Description, WithoutAViewIsReadableByEarlierPrograms) {
  EXPECT_NE(OfImages({}).ToJson().find("\"version\":1"), std::string::npos);
  EXPECT_EQ(OfImages({}).ToJson().find("view"), std::string::npos);
}

Description WithNames(std::string column, std::string label) {
  Description description;
  description.format = "csv";
  description.delimiter = ";";
  description.columns = {{std::move(column), Column::Kind::kNumber}, {"y", Column::Kind::kLabel}};
  description.labels.kind = Labels::Kind::kClasses;
  description.labels.names = {std::move(label), "b"};
  return description;
}

TEST(Description, WritesNamesInUtf8AsTheyAre) {
  const Description description = WithNames("income (\xe2\x82\xac)", "gro\xc3\x9f");
  const std::string json = description.ToJson();
  EXPECT_NE(json.find("\"income (\xe2\x82\xac)\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"gro\xc3\x9f\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"version\":3"), std::string::npos) << json;
  const auto loaded = Reloaded(description);
  ASSERT_TRUE(loaded.ok()) << loaded.error().text;
  EXPECT_EQ(loaded.value().columns[0].name, description.columns[0].name);
  EXPECT_EQ(loaded.value().labels.names, description.labels.names);
}

TEST(Description, KeepsNamesInOtherEncodings) {
  const Description description = WithNames("gro\xdf", "\xff\x80\xe2\x82");
  EXPECT_NE(description.ToJson().find("\"gro\xc3\x9f\""), std::string::npos) << "as Latin-1 has it";
  EXPECT_NE(description.ToJson().find("\"version\":1"), std::string::npos) << "as it always was";
  const auto loaded = Reloaded(description);
  ASSERT_TRUE(loaded.ok()) << loaded.error().text;
  EXPECT_EQ(loaded.value().columns[0].name, "gro\xdf");
  EXPECT_EQ(loaded.value().labels.names, description.labels.names);
}

TEST(Description, ReadsNamesThatEarlierProgramsWroteByteByByte) {
  std::string json = WithNames("XX", "a").ToJson();
  json.replace(json.find("XX"), 2, "gro\xc3\x83\xc2\x9f");  // UTF-8, taken for Latin-1 and encoded once more
  const auto loaded = Description::Load(TensorFile::Parse(Written({}, {{"input", json}}), "file").value());
  ASSERT_TRUE(loaded.ok()) << loaded.error().text;
  EXPECT_EQ(loaded.value().columns[0].name, "gro\xc3\x9f");
}

TEST(Description, OfALaterProgramIsNotTakenForDamaged) {
  std::string json = WithNames("a", "b").ToJson();
  json.replace(json.find("\"version\":1"), 11, "\"version\":99");
  const auto loaded = Description::Load(TensorFile::Parse(Written({}, {{"input", json}}), "file").value());
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, Code::kInvalid);
}

TEST(Description, OfRatingsHasTheirColumnsWhereAnEarlierProgramNamedNone) {
  Description description;
  description.format = "ratings";
  description.delimiter = "::";
  description.labels.kind = Labels::Kind::kReal;
  description.dictionaries.resize(2);
  const auto loaded = Reloaded(description);
  ASSERT_TRUE(loaded.ok()) << loaded.error().text;
  ASSERT_EQ(loaded.value().columns.size(), 3u);
  EXPECT_EQ(loaded.value().columns[0].name, "user");
}

TEST(Description, KeepsTheDecimalCommaAndDates) {
  Description description = WithNames("a", "b");
  EXPECT_NE(description.ToJson().find("\"version\":1"), std::string::npos);
  description.decimal = ',';
  description.columns.push_back({"day", Column::Kind::kDate});
  description.columns.push_back({"at", Column::Kind::kDateTime});
  const auto loaded = Reloaded(description);
  ASSERT_TRUE(loaded.ok()) << loaded.error().text;
  EXPECT_EQ(loaded.value().decimal, ',');
  EXPECT_EQ(loaded.value().columns[2].kind, Column::Kind::kDate);
  EXPECT_EQ(loaded.value().columns[3].kind, Column::Kind::kDateTime);
  EXPECT_NE(loaded.value().ToJson().find("\"version\":3"), std::string::npos);
}

TEST(Description, RefusesAViewThatDoesNotFitTheImage) {
  const View views[] = {{.crop = 5},
                        {.crop = 1, .means = {1, 2}, .deviations = {1, 1, 1}},
                        {.crop = 1, .means = {1, 2, 3}, .deviations = {1, 1}},
                        {.crop = 1, .means = {1, 2, 3}, .deviations = {1, 0, 1}},
                        {.crop = 1, .means = {1, NAN, 3}, .deviations = {1, 1, 1}},
                        {.crop = 1, .means = {1, 2, 3}, .deviations = {1, INFINITY, 1}}};
  for (std::size_t i = 0; i < std::size(views); ++i) {
    SCOPED_TRACE(i);
    const auto loaded = Reloaded(OfImages(views[i]));
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, Code::kCorrupt);
  }
  Description flat = OfImages({.crop = 1});
  flat.shape = {60};
  EXPECT_FALSE(Reloaded(flat).ok());
}

TEST(Description, RefusesWhatMakesNoSense) {
  const std::string good = Description().ToJson();
  const auto load = [](const std::string& json) {
    const auto file = TensorFile::Parse(Written({}, {{"input", json}}), "file");
    return Description::Load(file.value());
  };
  ASSERT_TRUE(load(good).ok());
  const std::pair<std::string, std::string> changes[] = {
      {"\"version\":1", "\"version\":2"},
      {"\"version\":1", "\"version\":4"},
      {"\"delimiter\":\"\"", "\"encoding\":\"utf-7\",\"delimiter\":\"\""},
      {"\"delimiter\":\"\"", "\"decimal\":\"e\",\"delimiter\":\"\""},
      {"\"version\":1", "\"version\":0"},
      {"\"version\":1", "\"version\":1.5"},
      {"\"bits\":0", "\"bits\":32"},
      {"\"bits\":0", "\"bits\":-1"},
      {"\"bits\":0", "\"bits\":1e300"},
      {"\"features\":0", "\"features\":\"x\""},
      {"\"features\":0", "\"features\":1e18"},
      {"\"index_base\":1", "\"index_base\":7"},
      {"\"columns\":[]", "\"columns\":[{}]"},
      {"\"columns\":[]", "\"columns\":[{\"name\":\"a\",\"kind\":\"odd\"}]"},
      {"\"dictionaries\":0", "\"dictionaries\":1"},
      {"\"dictionaries\":0", "\"dictionaries\":1000000"},
      {"\"standardise\":false", "\"standardise\":true"},
      {"\"shape\":[]", "\"shape\":[0.5]"},
      {"\"format\":\"\"", "\"format\":7"},
      {"{\"version\"", "[\"version\""},
  };
  for (const auto& [from, to] : changes) {
    SCOPED_TRACE(to);
    ASSERT_NE(good.find(from), std::string::npos) << good;
    std::string changed = good;
    changed.replace(changed.find(from), from.size(), to);
    const auto loaded = load(changed);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, Code::kCorrupt) << loaded.error().text;
  }
}

}  // namespace
}  // namespace freshet::data
