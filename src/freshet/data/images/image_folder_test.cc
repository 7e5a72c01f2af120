#include "data/images/image_folder.h"

#include <algorithm>
#include <filesystem>

#include "base/option.h"
#include "data/images/image_testing.h"
#include "data/world_testing.h"

namespace freshet::data {
namespace {

// Folders of images in a world of their own.
class Folder : public testing::Test {
 protected:
  explicit Folder(int threads = 3) : world_(threads) {}

  void Put(const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(world_.Path(name)).parent_path());
    world_.Write(name, bytes);
  }
  // An image of one colour, by which it is known again.
  void PutColour(const std::string& name, unsigned char value) {
    Put(name, PngOf({5, 4, 3, std::vector<unsigned char>(5 * 4 * 3, value)}));
  }
  void PutMany(std::size_t images) {
    for (std::size_t i = 0; i < images; ++i)
      PutColour(Str("set/", i % 3 == 0 ? "cat" : "dog", "/", i, ".png"), static_cast<unsigned char>(i));
  }
  Result<Reading> Read(ReaderOptions options, Description description = {}, std::uint64_t permutation = 0,
                       const Position& from = {}) {
    Reading reading;
    reading.description = std::move(description);
    const auto folder = TRY(ImageFolder::Open(world_.env(), options, input_, reading.description));
    folder->Permute(permutation);
    TRY(folder->Seek(from));
    TRY(DriveInOrder(world_.env().executor, *folder, [&](Rows& rows) -> Result<void> {
      reading.Append(rows);
      return {};
    }));
    reading.bad_rows = folder->bad_rows();
    return reading;
  }
  ReaderOptions Set() { return FilesAt({world_.Path("set")}); }
  void ExpectError(const Result<Reading>& result, Code code, const std::string& says) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, code) << result.error().text;
    EXPECT_NE(result.error().text.find(says), std::string::npos) << result.error().text;
  }
  static int ValueOf(const Reading& reading, std::size_t row) {
    const std::size_t width = reading.dense.size() / reading.labels.size();
    return static_cast<int>(reading.dense[row * width] * 255 + 0.5f);
  }

  World world_;
  InputOptions input_ = [] {
    InputOptions input;
    input.image_size = "2x3";
    return input;
  }();
};

TEST_F(Folder, GivesImagesTheLabelOfTheirFolder) {
  PutColour("set/dog/a.png", 100);
  PutColour("set/cat/b.PNG", 50);
  Put("set/cat/c.jpg", JpegOf({9, 9, 3, std::vector<unsigned char>(9 * 9 * 3, 255)}));
  Put("set/cat/.hidden", "no image");
  Put("set/readme.txt", "not in a folder of a class");
  const auto reading = Read(Set());
  ASSERT_TRUE(reading.ok()) << reading.error().text;
  const Description& description = reading.value().description;
  EXPECT_EQ(description.format, "images");
  EXPECT_TRUE(description.dense);
  EXPECT_EQ(description.shape, (std::vector<std::uint64_t>{3, 2, 3}));
  EXPECT_EQ(description.features, 18u);
  EXPECT_EQ(description.labels.kind, Labels::Kind::kClasses);
  EXPECT_EQ(description.labels.names, (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(reading.value().labels.size(), 3u);
  ASSERT_EQ(reading.value().dense.size(), 3u * 18);
  std::set<std::pair<int, float>> found;
  for (std::size_t r = 0; r < 3; ++r) found.emplace(ValueOf(reading.value(), r), reading.value().labels[r]);
  EXPECT_EQ(found, (std::set<std::pair<int, float>>{{100, 1}, {50, 0}, {255, 0}}));
}

TEST_F(Folder, ReadsBrightnessAlone) {
  PutColour("set/a/1.png", 77);
  input_.grey = true;
  const auto reading = Read(Set());
  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(reading.value().description.shape, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(reading.value().dense, std::vector<float>(6, 77 * (1 / 255.0f)));
}

TEST_F(Folder, MixesClassesTheSameWayEveryTime) {
  PutMany(200);
  const auto reading = Read(Set());
  ASSERT_TRUE(reading.ok());
  const auto& labels = reading.value().labels;
  ASSERT_EQ(labels.size(), 200u);
  for (std::size_t begin = 0; begin < 200; begin += 50)
    EXPECT_NEAR(
        std::count(labels.begin() + static_cast<long>(begin), labels.begin() + static_cast<long>(begin + 50), 0),
        50 / 3.0, 13);
  std::vector<std::uint64_t> samples = reading.value().samples;
  EXPECT_TRUE(std::is_sorted(samples.begin(), samples.end()));
  EXPECT_EQ(Read(Set()).value().dense, reading.value().dense);
}

TEST_F(Folder, PermutesImagesButNotTheirSampleNumbers) {
  PutMany(150);
  const auto plain = Read(Set()), permuted = Read(Set(), {}, 7);
  ASSERT_TRUE(plain.ok() && permuted.ok());
  EXPECT_NE(permuted.value().samples, plain.value().samples);
  ASSERT_EQ(permuted.value().samples.size(), 150u);
  for (std::size_t r = 0; r < 150; ++r)
    ASSERT_EQ(ValueOf(permuted.value(), r), ValueOf(plain.value(), permuted.value().samples[r]));
}

TEST_F(Folder, GoesOnFromAnEarlierBlock) {
  PutMany(150);  // blocks of 64
  const auto whole = Read(Set(), {}, 3), rest = Read(Set(), {}, 3, {.block = 1});
  ASSERT_TRUE(whole.ok() && rest.ok());
  EXPECT_EQ(rest.value().samples,
            std::vector<std::uint64_t>(whole.value().samples.begin() + 64, whole.value().samples.end()));
  ExpectError(Read(Set(), {}, 3, {.block = 4}), Code::kBadInput, "has 3 blocks of images");
}

TEST_F(Folder, HasEachImageInExactlyOnePart) {
  PutMany(20);
  std::vector<std::uint64_t> samples;
  for (std::uint64_t part = 0; part < 3; ++part) {
    ReaderOptions options = Set();
    options.part = {part, 3};
    const auto reading = Read(options);
    ASSERT_TRUE(reading.ok());
    samples.insert(samples.end(), reading.value().samples.begin(), reading.value().samples.end());
  }
  std::sort(samples.begin(), samples.end());
  ASSERT_EQ(samples.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(samples[i], i);
}

TEST_F(Folder, ReadsImagesWithoutLabelsInTheOrderOfTheirNames) {
  for (int i = 0; i < 9; ++i) PutColour(Str("set/", i, ".png"), static_cast<unsigned char>(i));
  ReaderOptions options = Set();
  options.paths.push_back(world_.Path("set/3.png"));
  ExpectError(Read(options), Code::kBadInput, "expected one a class");
  options.labelled = false;
  Description description;
  description.format = "images";
  description.dense = true;
  description.shape = {3, 2, 2};
  description.features = 12;
  description.scale = 1.0 / 255;
  const auto reading = Read(options, description);
  ASSERT_TRUE(reading.ok()) << reading.error().text;
  ASSERT_EQ(reading.value().labels.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(ValueOf(reading.value(), i), i == 9 ? 3 : static_cast<int>(i));
    EXPECT_TRUE(std::isnan(reading.value().labels[i]));
  }
}

TEST_F(Folder, SetsAsideWhatIsNoImageOrOfNoKnownClass) {
  PutMany(10);
  const Description trained = Read(Set()).value().description;
  Put("set/cat/notes.txt", "no image");
  Put("set/dog/cut.jpg", JpegOf(Noise(1, 30, 30)).substr(0, 700));
  std::filesystem::create_directories(world_.Path("set/dog/folder"));
  PutColour("set/bird/1.png", 1);
  ExpectError(Read(Set(), trained), Code::kBadInput, Str("allow for more with ", Option("max-bad-rows")));
  ReaderOptions options = Set();
  options.max_bad_rows = 4;
  options.bad_rows_path = world_.Path("bad");
  const auto reading = Read(options, trained);
  ASSERT_TRUE(reading.ok()) << reading.error().text;
  EXPECT_EQ(reading.value().labels.size(), 10u);
  EXPECT_EQ(reading.value().bad_rows, 4u);
  const std::string bad = world_.Read(world_.Path("bad"));
  for (const char* says :
       {"notes.txt: begins with", "cut.jpg: a JPEG image that is cut off", "label 'bird', expected one"})
    EXPECT_NE(bad.find(says), std::string::npos) << bad;
}

TEST_F(Folder, AppliesTheDescriptionOfAnyImagesButOfNothingElse) {
  PutColour("set/3/1.png", 9);
  Description cifar;
  cifar.format = "cifar10";
  cifar.dense = true;
  cifar.shape = {3, 32, 32};
  cifar.features = 3072;
  cifar.labels.kind = Labels::Kind::kClasses;
  cifar.labels.names = {"0", "1", "2", "3"};
  cifar.labels.Index();
  const auto reading = Read(Set(), cifar);
  ASSERT_TRUE(reading.ok()) << reading.error().text;
  EXPECT_EQ(reading.value().labels, std::vector<float>{3});
  Description table;
  table.format = "csv";
  ExpectError(Read(Set(), table), Code::kInvalid, "expected rows of format csv");
}

TEST_F(Folder, IsRefusedWithoutImagesClassesOrASize) {
  std::filesystem::create_directories(world_.Path("set/cat"));
  ExpectError(Read(Set()), Code::kNotFound, "found no images");
  ExpectError(Read(FilesAt({world_.Path("nowhere")})), Code::kNotFound, "no such file");
  ExpectError(Read(FilesAt({world_.Path("set/cat")})), Code::kBadInput, "expected one a class");
  PutMany(3);
  input_.image_size = "";
  ExpectError(Read(Set()), Code::kInvalid, Str(Option("image-size"), " 224"));
}

TEST_F(Folder, MayHaveANameThatLooksLikeAPattern) {
  PutColour("set/[a]*?/x.png", 5);
  PutColour("set/b/y.png", 6);
  const auto reading = Read(Set());
  ASSERT_TRUE(reading.ok()) << reading.error().text;
  EXPECT_EQ(reading.value().labels.size(), 2u);
  EXPECT_EQ(reading.value().description.labels.names, (std::vector<std::string>{"[a]*?", "b"}));
}

TEST(ImageSize, IsOneNumberOrTwo) {
  for (const auto& [text, height, width] :
       {std::tuple{"224", 224u, 224u}, std::tuple{"1x8192", 1u, 8192u}, std::tuple{"240x320", 240u, 320u}}) {
    const auto size = ParseImageSize(text);
    ASSERT_TRUE(size.ok());
    EXPECT_EQ(size.value().height, height);
    EXPECT_EQ(size.value().width, width);
  }
  for (const char* text : {"", "0", "x", "1x", "x1", "1x2x3", "-1", "1.5", "8193", "99999999999999999999", "ten"})
    EXPECT_FALSE(ParseImageSize(text).ok()) << text;
}

}  // namespace
}  // namespace freshet::data
