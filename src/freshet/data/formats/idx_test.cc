#include <cmath>
#include <filesystem>

#include "base/option.h"
#include "data/parse_testing.h"

namespace freshet::data {

extern const Format kIdx;

namespace {

using namespace std::string_literals;

std::string BigEndian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
  return bytes;
}

std::string Header(const std::vector<std::uint32_t>& dimensions, char type = 8) {
  std::string bytes = "\0\0"s + type + static_cast<char>(dimensions.size());
  for (const std::uint32_t size : dimensions) bytes += BigEndian(size);
  return bytes;
}

const std::string kPixels = "\x00\xff\x33\x00\x01\x02\xff\xff\xff\xff\xff\x00"s;  // three images of 2 x 2
const std::string kImages = Header({3, 2, 2}) + kPixels;
const std::string kLabels = Header({3}) + "\x07\x00\x02"s;
constexpr Position kFirstRecord = {.offset = 16};

// Files in a directory of their own.
class Idx : public testing::Test {
 protected:
  Idx() {
    directory_ = testing::TempDir() + "/idx_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(directory_);
  }
  ~Idx() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = directory_ + "/" + name;
    const auto file = idx_.files.Create(path);
    EXPECT_TRUE(file.ok() && file.value()->Write(std::string_view(bytes)).ok());
    return path;
  }
  void WritePair(const std::string& images = kImages, const std::string& labels = kLabels) {
    images_ = Write("t-images-idx3-ubyte", images);
    labels_ = Write("t-labels-idx1-ubyte", labels);
  }
  void Describe() {
    WritePair();
    const auto result = idx_.Describe(kImages, images_);
    ASSERT_TRUE(result.ok()) << result.error().text;
  }
  void ExpectError(const Error& error, Code code, const std::string& says) {
    EXPECT_EQ(error.code, code);
    EXPECT_NE(error.text.find(says), std::string::npos) << error.text;
  }

  Described idx_{kIdx};
  std::string directory_, images_, labels_;
};

TEST_F(Idx, DescribesImagesAndTheirLabels) {
  Describe();
  const Description& description = idx_.description;
  EXPECT_TRUE(description.dense);
  EXPECT_FALSE(description.standardise);
  EXPECT_EQ(description.features, 4u);
  EXPECT_EQ(description.shape, (std::vector<std::uint64_t>{1, 2, 2}));
  EXPECT_EQ(description.labels.kind, Labels::Kind::kClasses);
  EXPECT_EQ(description.labels.names, (std::vector<std::string>{"0", "2", "7"}));
}

TEST_F(Idx, ReadsPixelsFromZeroToOne) {
  Describe();
  const auto parser = idx_.Make(kImages, true, images_).value();
  const Cutting cutting = parser->cutting();
  EXPECT_EQ(cutting.kind, Cutting::Kind::kRecords);
  EXPECT_EQ(cutting.header_bytes, 16u);
  EXPECT_EQ(cutting.record_bytes, 4u);
  const Rows rows = ParseText(*parser, kPixels, kFirstRecord);
  ASSERT_TRUE(rows.bad.empty()) << rows.bad[0].what;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows.width, 4u);
  EXPECT_EQ(rows.labels[0], 2);  // 7 is the third class
  EXPECT_EQ(rows.labels[1], 0);
  EXPECT_EQ(rows.labels[2], 1);
  EXPECT_EQ(rows.dense[0], 0);
  EXPECT_EQ(rows.dense[1], 1);
  EXPECT_FLOAT_EQ(rows.dense[2], 0.2f);
  EXPECT_EQ(rows.dense.size(), 12u);
}

TEST_F(Idx, FindsTheLabelOfARecordInALaterChunk) {
  Describe();
  const Rows rows = ParseText(*idx_.Make(kImages, true, images_).value(), kPixels.substr(8), {.offset = 16 + 8});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows.labels[0], 1);
}

TEST_F(Idx, ReadsRecordsOfAnyDimensions) {
  const std::string flat = Header({3, 4}) + kPixels, deep = Header({1, 3, 2, 2}) + kPixels;
  idx_.options.labels_path = Write("l", kLabels);
  ASSERT_TRUE(idx_.Describe(flat).ok());
  EXPECT_EQ(idx_.description.shape, (std::vector<std::uint64_t>{1, 1, 4}));
  idx_.options.labels_path = Write("l", Header({1}) + "\x01"s);
  ASSERT_TRUE(idx_.Describe(deep).ok());
  EXPECT_EQ(idx_.description.shape, (std::vector<std::uint64_t>{3, 2, 2}));
}

TEST_F(Idx, ReplacesOnlyTheNameOfTheFile) {
  std::filesystem::create_directories(directory_ + "/images-idx3");
  images_ = Write("images-idx3/images-idx3", kImages);
  Write("images-idx3/labels-idx1", kLabels);
  EXPECT_TRUE(idx_.Describe(kImages, images_).ok());
}

TEST_F(Idx, GoesWithoutLabelsOnlyWhenNoneAreNeeded) {
  Describe();
  std::filesystem::remove(labels_);
  const auto labelled = idx_.Make(kImages, true, images_);
  ASSERT_FALSE(labelled.ok());
  ExpectError(labelled.error(), Code::kNotFound, labels_);
  const Rows rows = ParseText(*idx_.Make(kImages, false, images_).value(), kPixels, kFirstRecord);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_TRUE(std::isnan(rows.labels[0]));
  idx_.options.labels_path = labels_;
  EXPECT_FALSE(idx_.Make(kImages, false, images_).ok()) << "a file that was named has to be there";
}

TEST_F(Idx, AsksForLabelsWhenNoNameSuggestsItself) {
  const auto result = idx_.Describe(kImages, Write("pictures", kImages));
  ASSERT_FALSE(result.ok());
  ExpectError(result.error(), Code::kNotFound, Str("name their file with ", Option("label-file")));
}

TEST_F(Idx, RefusesAMalformedHeader) {
  const struct {
    const char* name;
    std::string bytes;
    const char* says;
  } table[] = {
      {"empty", "", ":1:1: found 0 bytes"},
      {"magic cut off", "\0\0\x08"s, ":1:4: found 3 bytes"},
      {"header cut off", kImages.substr(0, 10), ":1:11: found 10 bytes, expected a header of 16"},
      {"text", "1 1:2\n", ":1:1: found '1 1:', expected an idx header"},
      {"floats", Header({3, 2, 2}, 0x0d) + kPixels, ":1:3: idx type 13, expected 8"},
      {"labels", kLabels, ":1:4: a file of labels"},
      {"no dimensions", Header({}) + kPixels, ":1:4: 0 dimensions"},
      {"too many dimensions", Header(std::vector<std::uint32_t>(200, 1)), ":1:4: 200 dimensions"},
      {"no records", Header({0, 2, 2}), ":1:5: the header promises 0 records"},
      {"no width", Header({3, 2, 0}) + kPixels, ":1:13: dimension 3 is 0"},
      {"huge", Header({3, 65536, 65536}), ":1:13: records of 65536x65536 bytes, expected at most"},
      {"overflow", Header({3, 0xffffffff, 0xffffffff, 0xffffffff}), ":1:9: records of 4294967295 bytes"},
      {"overflow to nothing", Header({3, 1u << 16, 1u << 16, 1u << 16, 1u << 16}),
       ":1:13: records of 65536x65536 bytes"},
  };
  for (const auto& [name, bytes, says] : table) {
    SCOPED_TRACE(name);
    const auto result = idx_.Describe(bytes, "images");
    ASSERT_FALSE(result.ok());
    ExpectError(result.error(), Code::kBadInput, Str("images", says));
  }
}

TEST_F(Idx, RefusesLabelsThatDoNotFit) {
  const struct {
    const char* name;
    std::string bytes;
    const char* says;
  } table[] = {
      {"empty", "", "found 0 bytes"},
      {"images", kImages, ":1:4: 3 dimensions, expected a file of labels"},
      {"fewer", Header({2}) + "\x01\x02"s, ":1:5: 2 labels, expected 3"},
      {"cut off", kLabels.substr(0, kLabels.size() - 1), "the header promises 3 labels, found 2"},
      {"more than promised", kLabels + "\x01", "the header promises 3 labels, found more"},
      {"text", "7\n0\n2\n\n\n\n\n", "expected an idx header"},
  };
  for (const auto& [name, bytes, says] : table) {
    SCOPED_TRACE(name);
    WritePair(kImages, bytes);
    const auto result = idx_.Describe(kImages, images_);
    ASSERT_FALSE(result.ok());
    ExpectError(result.error(), Code::kBadInput, says);
    EXPECT_EQ(result.error().text.find(labels_), 0u) << result.error().text;
  }
}

TEST_F(Idx, RefusesAFileShorterOrLongerThanItsHeaderPromises) {
  Describe();
  images_ = Write("t-images-idx3-ubyte", kImages.substr(0, kImages.size() - 5));
  const auto shorter = idx_.Make(kImages, true, images_);
  ASSERT_FALSE(shorter.ok());
  ExpectError(shorter.error(), Code::kBadInput, "promises 3 records of 4 bytes, found 1 and 3 bytes");
  images_ = Write("t-images-idx3-ubyte", kImages + "\x01");
  const auto longer = idx_.Make(kImages, true, images_);
  ASSERT_FALSE(longer.ok());
  ExpectError(longer.error(), Code::kBadInput, "found 3 and 1 bytes");
}

TEST_F(Idx, RefusesATestSetOfAnotherShape) {
  Describe();
  const auto result = idx_.Make(Header({3, 4, 1}) + kPixels, true, images_);
  ASSERT_FALSE(result.ok());
  ExpectError(result.error(), Code::kBadInput, "images of 1x4x1, expected 1x2x2");
}

TEST_F(Idx, SaysWhichRecordIsCutOffTooManyOrWronglyLabelled) {
  Describe();
  const auto parser = idx_.Make(kImages, true, images_).value();
  const Malformed table[] = {
      {"cut off", kPixels.substr(0, 10), 2, 3,
       "record 3: found 2 bytes, expected 4; the header promises 3 records, found 2", 2},
      {"one too many", kPixels + "abcd", 3, 1, "record 4: the header promises 3 records, found more", 3},
      {"and cut off", kPixels + "a", 3, 1, "record 4: the header promises 3 records, found more", 3},
  };
  for (const Malformed& malformed : table) ExpectBadRow(*parser, malformed);
  WritePair(kImages, Header({3}) + "\x07\xff\x02"s);
  ExpectBadRow(*idx_.Make(kImages, true, images_).value(),
               {"label", kPixels, 1, 1, "record 2: label 255, expected one of 0, 2, 7", 2});
}

TEST_F(Idx, IsToldByItsMagic) {
  EXPECT_TRUE(kIdx.looks_like(TestHead(kImages)));
  EXPECT_TRUE(kIdx.looks_like(TestHead(kLabels))) << "so that the error can say what it is";
  for (const std::string& bytes : {""s, "\0\0\x08"s, "\0\0\x08\0"s, "\0\0\x07\x03"s, "1 1:2\n"s, "\x01\0\x08\x03"s})
    EXPECT_FALSE(kIdx.looks_like(TestHead(bytes)));
}

}  // namespace
}  // namespace freshet::data
