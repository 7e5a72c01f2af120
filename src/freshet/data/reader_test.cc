#include "data/reader.h"

#include <cmath>

#include "base/option.h"
#include "data/packed_testing.h"
#include "data/parse_testing.h"
#include "data/world_testing.h"

namespace freshet::data {
namespace {

using namespace std::string_literals;

const std::string kIdxImages = "\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\2abcd"s, kIdxLabels = "\0\0\x08\x01\0\0\0\2\0\1"s;

std::string Counting(int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(i % 200);
  return out;
}

TEST(Reader, TellsFormatsByTheirFirstBytes) {
  World world;
  world.Write("t-labels-idx1", kIdxLabels);
  const struct {
    const char* name;
    std::string text, format;
  } table[] = {
      {"a", "1 1:2\n-1 2:3\n", "libsvm"},
      {"b", "x,y\n1,0\n2,1\n", "csv"},
      {"c", "1 |a b\n-1 |a c\n", "vw"},
      {"d", "1::2::3::4\n", "ratings"},
      {"e", "1\t2\t3\t4\n5\t6\t1\t8\n", "ratings"},
      {"t-images-idx3", kIdxImages, "idx"},
      {"f", "\3" + Counting(3072), "cifar10"},
  };
  for (const auto& [name, text, format] : table)
    for (const bool packed : {false, true}) {
      SCOPED_TRACE(name);
      const auto reading = ReadRows(world, FilesAt({world.Write(name, packed ? Gzipped(text) : text)}));
      ASSERT_TRUE(reading.ok()) << reading.error().text;
      EXPECT_EQ(reading.value().description.format, format);
      EXPECT_FALSE(reading.value().labels.empty());
    }
}

TEST(Reader, SaysWhenItCannotTellTheFormat) {
  World world;
  const std::string which = Str(", expected a format that can be told by its looks; say which it is with ",
                                Option("format"), " (idx, vw, libsvm, ratings, cifar10, csv, text)");
  const struct {
    std::string text, says;
  } table[] = {
      {"", ":1:1: found an empty file, expected rows of data"},
      {"\xef\xbb\xbf", ":1:1: found an empty file, expected rows of data"},
      {"# a, b\n\n#\n", ":1:1: found only comments and blank lines, expected rows of data"},
      {"words", ":1:1: found 'words'" + which},
      {"\x01\x02\x00\xff\n"s, ":1:1: found bytes that are no text" + which},
  };
  for (const auto& [text, says] : table) {
    const std::string path = world.Write("input", text);
    const auto reading = ReadRows(world, FilesAt({path}));
    ASSERT_FALSE(reading.ok());
    EXPECT_EQ(reading.error().code, Code::kBadInput);
    EXPECT_EQ(reading.error().text, path + says);
  }
  InputOptions input;
  input.format = "libsmv";
  EXPECT_EQ(ReadRows(world, FilesAt({world.Write("input", "1 1:1\n")}), input).error().code, Code::kInvalid);
}

TEST(Reader, SurvivesGarbageOfEveryFormat) {
  World world;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    std::string text = Garbage(seed, base::Hash64(seed) % 200);
    for (std::size_t i = 0; i < text.size(); ++i)
      if (base::Hash64(seed + i) % 4 != 0) text[i] = "1 2:3,|\"\n\t5:"[base::Hash64(i ^ seed << 20) % 12];
    InputOptions input;
    input.format = std::array{"auto", "libsvm", "csv", "vw", "ratings", "idx", "cifar10"}[seed % 7];
    const auto reading = ReadRows(world, FilesAt({world.Write("input", text)}), input);
    if (reading.ok()) continue;
    EXPECT_TRUE(reading.error().code == Code::kBadInput || reading.error().code == Code::kNotFound)
        << reading.error().text;
    EXPECT_TRUE(reading.error().text.find(world.Path("input")) != std::string::npos) << reading.error().text;
  }
}

TEST(Reader, RefusesSeveralFilesOfImages) {
  World world;
  world.Write("t-labels-idx1", kIdxLabels);
  const std::string path = world.Write("t-images-idx3", kIdxImages);
  const auto reading = ReadRows(world, FilesAt({path, path}));
  ASSERT_FALSE(reading.ok());
  EXPECT_EQ(reading.error().code, Code::kInvalid);
  EXPECT_EQ(reading.error().text,
            "2 files of the idx format were given, expected one: its header and labels are its own");
}

TEST(Reader, GivesTheSameRowsForAnyNumberOfThreadsAndSizeOfChunks) {
  World one, three(3);
  std::string text = "user,item,size,label\n";
  for (int i = 0; i < 2'000; ++i) text += Str("u", i * i % 97, ",\"i\"\"", i % 13, "\",", i % 7, ",", i % 2, "\n");
  const auto expected = ReadRows(one, FilesAt({one.Write("t.csv", text)})).value();
  ASSERT_EQ(expected.labels.size(), 2'000u);
  for (const std::size_t chunk_bytes : {1u, 100u, 5'000u}) {
    ReaderOptions options = FilesAt({three.Write("t.csv", text)});
    options.chunk_bytes = chunk_bytes;
    const auto reading = ReadRows(three, options).value();
    EXPECT_EQ(reading.indices, expected.indices);
    EXPECT_EQ(reading.values, expected.values);
    EXPECT_EQ(reading.labels, expected.labels);
    EXPECT_EQ(reading.offsets, expected.offsets);
    EXPECT_EQ(reading.samples, expected.samples);
    EXPECT_EQ(reading.description.dictionaries[0].Serialize(), expected.description.dictionaries[0].Serialize());
  }
}

TEST(Reader, NumbersSamplesOverAllFiles) {
  World world;
  ReaderOptions options = FilesAt({world.Write("a", "1 1:1\n-1 1:1\n"), world.Write("b", "# none\n1 1:1\nx\n-1 1:1")});
  options.max_bad_rows = 1;
  options.chunk_bytes = 4;
  EXPECT_EQ(ReadRows(world, options).value().samples, (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

TEST(Reader, PartsOfTheInputMakeUpTheWhole) {
  World world;
  std::string text;
  for (int i = 0; i < 500; ++i) text += Str(i % 2 ? 1 : -1, " ", i + 1, ":1\n");
  const std::string path = world.Write("a", text);
  std::vector<std::uint32_t> all;
  for (std::uint64_t part = 0; part < 5; ++part) {
    ReaderOptions options = FilesAt({path, path});
    options.part = {part, 5};
    const auto reading = ReadRows(world, options).value();
    EXPECT_GT(reading.labels.size(), 100u);
    all.insert(all.end(), reading.indices.begin(), reading.indices.end());
  }
  ASSERT_EQ(all.size(), 1'000u);
  for (std::uint32_t i = 0; i < 1'000; ++i) ASSERT_EQ(all[i], i % 500);
}

TEST(Reader, GrowsDictionariesWhileLearningAndNotAfterwards) {
  World world;
  const auto trained = ReadRows(world, FilesAt({world.Write("a", "u1::i1::3\nu2::i1::4\nu1::i2::5\n")})).value();
  EXPECT_EQ(trained.indices, (std::vector<std::uint32_t>{0, 0, 1, 0, 0, 1}));
  ASSERT_EQ(trained.description.dictionaries.size(), 2u);
  EXPECT_EQ(trained.description.dictionaries[0].Name(1), "u2");
  ReaderOptions options = FilesAt({world.Write("b", "u2::i2::1\nu3::i1::2\nu1::i9::3\n")});
  options.grow = false;
  const auto applied = ReadRows(world, options, {}, trained.description).value();
  EXPECT_EQ(applied.indices, (std::vector<std::uint32_t>{1, 1, kUnseen, 0, 0, kUnseen}));
  EXPECT_EQ(applied.description.dictionaries[0].size(), 2u);
}

TEST(Reader, NumbersUsersAndItemsTogetherWhenAsked) {
  World world;
  InputOptions input;
  input.joint_ids = true;
  const auto reading = ReadRows(world, FilesAt({world.Write("a", "u1::i1::3\nu2::i1::4\nu1::i2::5\n")}), input).value();
  EXPECT_EQ(reading.indices, (std::vector<std::uint32_t>{0, 1, 2, 1, 0, 3}));
}

TEST(Reader, PutsCategoriesBehindTheNumbersOfATable) {
  World world;
  const std::string text = "size,city,kind,label\n5,rome,x,0\n6,\"say \"\"oslo\"\"\",x,1\n7,x,rome,0\n";
  const auto reading = ReadRows(world, FilesAt({world.Write("a", text)})).value();
  EXPECT_EQ(reading.indices, (std::vector<std::uint32_t>{0, 1, 2, 0, 3, 2, 0, 4, 5}))
      << "x of one column is not x of another";
  EXPECT_EQ(reading.description.dictionaries[0].Name(2), "0=say \"oslo\"");
}

TEST(Reader, TakesOneClassAgainstTheRest) {
  World world;
  InputOptions input;
  input.positive = "2.0";
  const auto libsvm = ReadRows(world, FilesAt({world.Write("a", "1 1:1\n2 1:1\n3 1:1\n2 1:1\n")}), input).value();
  EXPECT_EQ(libsvm.labels, (std::vector<float>{0, 1, 0, 1}));
  EXPECT_EQ(libsvm.description.labels.kind, Labels::Kind::kBinary);
  input.positive = "cat";
  const auto csv = ReadRows(world, FilesAt({world.Write("b", "1,dog\n2,cat\n3,cow\n")}), input).value();
  EXPECT_EQ(csv.labels, (std::vector<float>{0, 1, 0}));
}

TEST(Reader, TakesClassesInTheOrderGiven) {
  World world;
  InputOptions input;
  input.classes = {"b", "c", "a"};
  const auto reading = ReadRows(world, FilesAt({world.Write("a", "1,a\n2,b\n3,c\n")}), input).value();
  EXPECT_EQ(reading.labels, (std::vector<float>{2, 0, 1}));
}

TEST(Reader, SetsBadRowsAsideUntilThereAreTooMany) {
  World world;
  const std::string path = world.Write("a", "1 1:1\nx\n-1 1:1\n1 0:y\n1 1:1\nz\n");
  ReaderOptions options = FilesAt({path});
  options.bad_rows_path = world.Path("bad");
  options.chunk_bytes = 5;
  options.max_bad_rows = 3;
  InputOptions input;
  input.index_base = 0;
  const auto reading = ReadRows(world, options, input).value();
  EXPECT_EQ(reading.bad_rows, 3u);
  EXPECT_EQ(reading.labels.size(), 3u);
  EXPECT_EQ(world.Read(options.bad_rows_path),
            Str("# ", path, ":2:1: found 'x', expected a label (one of -1, 1) and a blank\nx\n", "# ", path,
                ":4:5: found 'y', expected a finite number\n1 0:y\n", "# ", path,
                ":6:1: found 'z', expected a label (one of -1, 1) and a blank\nz\n"));
  options.max_bad_rows = 2;
  const auto too_many = ReadRows(world, options, input);
  ASSERT_FALSE(too_many.ok());
  EXPECT_EQ(too_many.error().text,
            Str(path, ":6:1: found 'z', expected a label (one of -1, 1) and a blank (bad row 3, ",
                Option("max-bad-rows"), " 2)"));
}

TEST(Reader, CountsBadRowsAnewInEveryPassAndWritesThemOnce) {
  World world;
  ReaderOptions options = FilesAt({world.Write("a", "1 1:1\nx\n-1 1:1\n")});
  options.bad_rows_path = world.Path("bad");
  options.max_bad_rows = 1;
  Description description;
  const auto reader = Reader::Open(world.env(), options, {}, description).value();
  std::string once;
  for (int pass = 0; pass < 3; ++pass) {
    const auto result = DriveInOrder(world.env().executor, *reader, [](Rows&) -> Result<void> { return {}; });
    ASSERT_TRUE(result.ok()) << result.error().text;
    EXPECT_EQ(reader->bad_rows(), 1u);
    if (pass == 0) once = world.Read(options.bad_rows_path);
    EXPECT_EQ(world.Read(options.bad_rows_path), once);
    ASSERT_TRUE(reader->Seek({}).ok());
  }
}

TEST(Reader, NamesTheFileAndTheLineInIt) {
  World world;
  const std::string good = world.Write("a", "h,label\n1,0\n2,1\n"), bad = world.Write("b", "h,label\n1,0\n\n2,1,3\n");
  const auto reading = ReadRows(world, FilesAt({good, bad}));
  ASSERT_FALSE(reading.ok());
  EXPECT_EQ(reading.error().text, bad + ":4:4: found 3 columns, expected 2");
}

TEST(Reader, GoesOnFromTheEndOfAnyBlock) {
  World world;
  std::string text;
  for (int i = 0; i < 100; ++i) text += Str("u", i % 9, "::i", i % 17, "::", 1 + i % 5, "\n");
  ReaderOptions options = FilesAt({world.Write("a", text)});
  options.chunk_bytes = 100;
  Description description;
  const auto reader = Reader::Open(world.env(), options, {}, description).value();
  std::vector<Position> ends;
  Reading whole;
  const auto collect = [&](Reading& reading) {
    return DriveInOrder(world.env().executor, *reader, [&](Rows& rows) -> Result<void> {
      ends.push_back(rows.end);
      reading.Append(rows);
      return {};
    });
  };
  ASSERT_TRUE(collect(whole).ok());
  const auto stops = ends;
  for (const Position& stop : stops) {
    ASSERT_TRUE(reader->Seek(stop).ok());
    Reading rest;
    ASSERT_TRUE(collect(rest).ok());
    ASSERT_EQ(rest.labels.size(), whole.labels.size() - stop.sample);
    EXPECT_TRUE(
        std::equal(rest.samples.begin(), rest.samples.end(), whole.samples.begin() + static_cast<long>(stop.sample)));
    EXPECT_TRUE(
        std::equal(rest.labels.begin(), rest.labels.end(), whole.labels.begin() + static_cast<long>(stop.sample)));
  }
}

TEST(ScanLabels, StopsWhenItIsTold) {
  World world;
  const std::atomic<bool> stop{true};
  InputOptions input;
  input.task = Labels::Kind::kClasses;
  for (const char* const text : {"1 1:1\n2 1:1\n3 1:1\n", "a,1\nb,2\nc,3\n"}) {
    ReaderOptions options = FilesAt({world.Write("rows", text)});
    options.stop = &stop;
    const auto found = ScanLabels(world.env(), options, input);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, Code::kStopped) << found.error().text;
  }
}

TEST(ScanLabels, FindsNumbersAndNamesBeyondTheHead) {
  World world(2);
  std::string libsvm, csv = "x,kind\n", table;
  for (int i = 0; i < 200'000; ++i) libsvm += Str(i % 3, " 1:1\n"), csv += i % 2 ? "1,cow\n" : "2,\"the cat\"\n";
  libsvm += "10 1:1\n-7 1:1\n0.1 1:1\n";
  csv += "3,a \"b\"\n3,\"a \"\"c\"\"\"\n4,\n";
  InputOptions input;
  input.task = Labels::Kind::kClasses;
  EXPECT_EQ(ScanLabels(world.env(), FilesAt({world.Write("a", libsvm)}), input).value(),
            (std::vector<std::string>{"-7", "0", "0.1", "1", "2", "10"}));
  EXPECT_EQ(ScanLabels(world.env(), FilesAt({world.Write("b", csv)}), input).value(),
            (std::vector<std::string>{"a \"b\"", "a \"c\"", "cow", "the cat"}));
  EXPECT_EQ(ScanLabels(world.env(), FilesAt({world.Write("c", "5,1.0\n6,20\n7,3\n8,1\n")}), input).value(),
            (std::vector<std::string>{"1", "3", "20"}));
  EXPECT_EQ(ScanLabels(world.env(), FilesAt({world.Write("d", "2 |a b\n1 |a c\n3 |a d\n")}), input).value(),
            (std::vector<std::string>{"1", "2", "3"}));
}

TEST(Reader, ReadsRealFilesAsTheyAre) {
  const char* const data = std::getenv("FRESHET_DATA");
  if (data == nullptr || !std::filesystem::exists(data))
    GTEST_SKIP() << "set FRESHET_DATA to a folder of real data sets to run this";
  World world(2);
  const struct {
    const char *path, *format;
    std::size_t rows;
  } table[] = {{"/adult/a9a.xz", "libsvm", 32'561},
               {"/adult/adult.data.xz", "csv", 32'561},
               {"/ml-1m/ratings-first-487650.dat.xz", "ratings", 487'650},
               {"/mnist/t10k-images-idx3-ubyte.gz", "idx", 10'000}};
  for (const auto& [path, format, rows] : table) {
    SCOPED_TRACE(path);
    if (!std::filesystem::exists(Str(data, path))) continue;
    const auto reading = ReadRows(world, FilesAt({Str(data, path)}));
    ASSERT_TRUE(reading.ok()) << reading.error().text;
    EXPECT_EQ(reading.value().description.format, format);
    EXPECT_EQ(reading.value().labels.size(), rows);
  }
}

}  // namespace
}  // namespace freshet::data
