#include "base/stoppable_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "base/scratch_testing.h"

namespace freshet::base {
namespace {

class StoppableFilesTest : public testing::Test {
 protected:
  std::string Pipe() {
    const std::string path = scratch_ / "pipe";
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    return path;
  }

  ScratchDirectory scratch_;
  std::atomic<bool> stop_{false};
  StoppableFiles files_{stop_};
};

TEST_F(StoppableFilesTest, APipeIsOpenBeforeItHasAWriterAndEndsWhenTheWriterHasGone) {
  const std::string path = Pipe();
  const auto pipe = files_.OpenRead(path);
  ASSERT_TRUE(pipe.ok());
  EXPECT_FALSE(pipe.value()->size());
  std::thread writer([&] {
    const int fd = open(path.c_str(), O_WRONLY);
    for (const char* const piece : {"one ", "two ", "three"}) EXPECT_GT(write(fd, piece, strlen(piece)), 0);
    close(fd);
  });
  std::string out(100, ' ');
  out.resize(pipe.value()->Read(out).value());
  writer.join();
  EXPECT_EQ(out, "one two three");
  EXPECT_EQ(pipe.value()->Read(out).value(), 0u);
}

TEST_F(StoppableFilesTest, WhoWaitsForAPipeIsFreedByAStop) {
  const std::string path = Pipe();
  const auto pipe = files_.OpenRead(path);
  ASSERT_TRUE(pipe.ok());
  for (const bool written_to : {false, true}) {
    SCOPED_TRACE(written_to);
    stop_ = false;
    const int fd = written_to ? open(path.c_str(), O_WRONLY) : -1;
    if (written_to) EXPECT_EQ(write(fd, "half", 4), 4);
    std::thread stopper([&] { stop_ = true; });
    std::string out(100, ' ');
    const auto got = pipe.value()->Read(out);
    stopper.join();
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().code, Code::kStopped);
    EXPECT_NE(got.error().text.find(path), std::string::npos);
    if (written_to) close(fd);
  }
}

TEST_F(StoppableFilesTest, PlainFilesAreReadAfterAStopAsBefore) {
  stop_ = true;
  EXPECT_EQ(ReadAll(files_, scratch_.Write("a", "content")).value(), "content");
  EXPECT_EQ(files_.OpenRead(scratch_ / "nothing").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace freshet::base
