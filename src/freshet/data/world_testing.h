#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/option.h"
#include "base/simulated_clock.h"
#include "base/thread_pool.h"
#include "data/drive.h"
#include "data/reader.h"

namespace freshet::data {

// The world of a test: files in a directory of its own, a clock that stands still, a log that nobody reads, threads.
class World {
 public:
  explicit World(int threads = 1) : pool_(threads) {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = Str(testing::TempDir(), "/freshet_", test->test_suite_name(), "_", test->name(), "_", getpid());
    std::filesystem::create_directories(directory_);
  }
  ~World() { std::filesystem::remove_all(directory_); }
  World(const World&) = delete;

  std::string Path(std::string_view name) const { return Str(directory_, "/", name); }
  std::string Write(std::string_view name, std::string_view bytes) {
    const std::string path = Path(name);
    std::filesystem::remove(path);  // some file systems wait for the disk when a file is emptied and written anew
    const auto file = posix.Create(path);
    EXPECT_TRUE(file.ok() && file.value()->Write(bytes).ok()) << path;
    return path;
  }
  std::string Read(const std::string& path) { return base::ReadAll(posix, path).value(); }
  std::vector<std::string> Names() const {  // of all files there are
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  base::Env env() { return env(posix); }
  base::Env env(base::Files& files) { return {files, clock_, log_, pool_, faults_}; }

  base::PosixFiles posix;

 private:
  std::string directory_;
  base::ManualClock clock_;
  base::Log log_{clock_, [](std::string_view) {}};
  base::ThreadPool pool_;
  base::Faults faults_;
};

inline ReaderOptions FilesAt(std::vector<std::string> paths) {
  ReaderOptions options;
  options.paths = std::move(paths);
  return options;
}

// Everything a reader has to say about some files, with copies of its rows.
struct Reading {
  std::vector<float> labels, weights, values, dense;
  std::vector<std::uint32_t> offsets = {0}, indices;
  std::vector<std::uint64_t> samples;
  std::vector<std::int64_t> times;
  std::uint64_t bad_rows = 0;
  Description description;

  void Append(const Rows& rows) {
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.span().begin(), from.span().end()); };
    for (std::size_t r = 0; r < rows.size() && rows.width == 0; ++r)
      offsets.push_back(static_cast<std::uint32_t>(indices.size()) + rows.offsets[r + 1]);
    append(labels, rows.labels);
    append(weights, rows.weights);
    append(values, rows.values);
    append(dense, rows.dense);
    append(indices, rows.indices);
    append(samples, rows.samples);
    append(times, rows.times);
  }
};

inline Result<Reading> ReadRows(World& world, const ReaderOptions& options, const InputOptions& input = {},
                                Description description = {}) {
  Reading reading;
  reading.description = std::move(description);
  const auto reader = TRY(Reader::Open(world.env(), options, input, reading.description));
  TRY(DriveInOrder(world.env().executor, *reader, [&](Rows& rows) -> Result<void> {
    reading.Append(rows);
    return {};
  }));
  reading.bad_rows = reader->bad_rows();
  return reading;
}

// One malformed file: what is said of it, and where.
struct MalformedFile {
  const char* name;
  std::string text;
  std::string place;     // line:column
  std::string says;      // what follows the place
  std::size_t good = 0;  // rows that are left once the bad one is set aside; kNone: the file cannot be read at all
  static constexpr std::size_t kNone = ~std::size_t{0};
};

// Read as it is, the file is refused with exactly that place and text. With one bad row allowed, that row is counted
// and set aside, as it stood, and the others are read.
inline void ExpectMalformed(World& world, const MalformedFile& malformed, const InputOptions& input) {
  SCOPED_TRACE(malformed.name);
  const std::string path = world.Write("input", malformed.text);
  const std::string complaint = Str(path, ":", malformed.place, ": ", malformed.says);
  const auto refused = ReadRows(world, FilesAt({path}), input);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().text, complaint);
  EXPECT_EQ(refused.error().code, Code::kBadInput);
  if (malformed.good == MalformedFile::kNone) return;

  ReaderOptions options = FilesAt({path});
  options.max_bad_rows = 1;
  options.bad_rows_path = world.Path("bad");
  const auto reading = ReadRows(world, options, input);
  ASSERT_TRUE(reading.ok()) << reading.error().text;
  EXPECT_EQ(reading.value().labels.size(), malformed.good);
  EXPECT_EQ(reading.value().bad_rows, 1u);
  const std::string set_aside = world.Read(options.bad_rows_path);
  const std::string note = Str("# ", ShowOptions(complaint, "--"), "\n");
  ASSERT_TRUE(set_aside.starts_with(note)) << set_aside;
  const std::string row = set_aside.substr(note.size(), set_aside.size() - note.size() - 1);
  EXPECT_FALSE(row.empty());
  EXPECT_NE(malformed.text.find(row), std::string::npos) << row;
}

}  // namespace freshet::data
