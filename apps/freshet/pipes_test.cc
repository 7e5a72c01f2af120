// Inputs that can be read only once, as their users meet them: pipes with and without a name, and standard input.

#include <fcntl.h>
#include <sys/stat.h>

#include <thread>

#include "process_testing.h"

namespace freshet::cli {
namespace {

class PipesTest : public testing::Test {
 protected:
  using Arguments = std::vector<std::string>;

  void SetUp() override {
    ASSERT_EQ(Run({"data", "generate", "--kind", "sea", "--rows", "3000", "-o", "sea.csv"}).code, 0);
    rows_ = scratch_.Read("sea.csv");
  }
  Finished Run(const Arguments& arguments, const Surroundings& around = {}) {
    return Process(scratch_, arguments, around).Wait();
  }
  std::string Pipe(const std::string& name) {
    EXPECT_EQ(mkfifo((scratch_ / name).c_str(), 0600), 0);
    return scratch_ / name;
  }
  // Trains on the path with one that writes into it, and returns the model.
  std::string Trained(const Arguments& flags, const std::vector<std::pair<std::string, std::string>>& written) {
    std::vector<std::jthread> writers;
    Arguments train = {"train", "--quiet", "-o", "m"};
    train.insert(train.end(), flags.begin(), flags.end());
    for (const auto& [path, text] : written) {
      train.push_back(path);
      if (path == "/dev/stdin" || path == "-") continue;
      writers.emplace_back([path = scratch_ / path, text = text] {
        const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
        EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        close(fd);
      });
    }
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    Process process(scratch_, train, {.input_descriptor = ends[0]});
    close(ends[0]);
    if (writers.empty()) EXPECT_EQ(write(ends[1], rows_.data(), rows_.size()), static_cast<ssize_t>(rows_.size()));
    close(ends[1]);
    const Finished finished = process.Wait();
    EXPECT_EQ(finished.code, 0) << finished.err;
    return scratch_.Read("m");
  }

  base::ScratchDirectory scratch_;
  std::string rows_;
};

TEST_F(PipesTest, ANamedPipeAndTheNameOfStandardInputTrainAsStandardInputDoes) {
  Pipe("pipe");
  for (const Arguments& flags : {Arguments{}, Arguments{"--epochs", "2", "--holdout", "0.1"}}) {
    const std::string model = Trained(flags, {{"-", rows_}});
    EXPECT_FALSE(model.empty());
    EXPECT_EQ(Trained(flags, {{"pipe", rows_}}), model);
    EXPECT_EQ(Trained(flags, {{"/dev/stdin", rows_}}), model);
  }
}

TEST_F(PipesTest, PipesAreReadOneAfterAnother) {
  Pipe("first"), Pipe("second");
  const std::size_t half = rows_.find('\n', rows_.size() / 2) + 1;
  const std::string header = rows_.substr(0, rows_.find('\n') + 1);
  scratch_.Write("a.csv", rows_.substr(0, half));
  scratch_.Write("b.csv", header + rows_.substr(half));
  ASSERT_EQ(Run({"train", "a.csv", "b.csv", "--quiet", "-o", "files"}).code, 0);
  EXPECT_EQ(Trained({}, {{"first", rows_.substr(0, half)}, {"second", header + rows_.substr(half)}}),
            scratch_.Read("files"));
}

TEST_F(PipesTest, WhatNeedsASecondLookIsRefusedWithTheReason) {
  Pipe("pipe");
  const Finished split = Run({"data", "split", "pipe", "--train", "a", "--test", "b"});
  EXPECT_EQ(split.code, 2);
  EXPECT_NE(split.err.find("read twice"), std::string::npos) << split.err;
  const Finished workers = Run({"train", "pipe", "--workers", "2"});
  EXPECT_EQ(workers.code, 2);
  EXPECT_NE(workers.err.find("--split own"), std::string::npos) << workers.err;
}

TEST_F(PipesTest, ASignalEndsTheWaitForAWriterAndForMoreRows) {
  const std::string path = Pipe("pipe");
  for (const int signal : {SIGTERM, SIGINT})
    for (const bool written : {false, true}) {
      SCOPED_TRACE(Str("signal ", signal, written ? ", some rows" : ", no writer"));
      Process process(scratch_, {"train", "pipe", "--quiet"}, {});
      ASSERT_TRUE(process.WaitUntil([&] { return process.HasOpen(path); }));
      int fd = -1;
      if (written) {
        fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
        ASSERT_EQ(write(fd, rows_.data(), 1000), 1000);
      }
      kill(process.pid(), signal);
      const Finished finished = process.Wait();
      EXPECT_EQ(finished.code, 128 + signal) << finished.err;
      if (written) close(fd);
    }
}

}  // namespace
}  // namespace freshet::cli
