#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/faulty_files.h"
#include "base/scratch_testing.h"

namespace freshet::base {
namespace {

std::span<char> Chars(std::string& text) { return {text.data(), text.size()}; }

class FilesTest : public testing::Test {
 protected:
  Result<void> WriteText(Files& files, const std::string& path, const std::vector<std::string>& pieces) {
    return WriteAtomic(files, path, [&](OutputFile& file) -> Result<void> {
      for (const std::string& piece : pieces) TRY(file.Write(piece));
      return {};
    });
  }

  ScratchDirectory scratch_;
  PosixFiles files_;
};

TEST_F(FilesTest, ReadsOnFromWhereItStoppedAndAnywhereWithReadAt) {
  const auto file = std::move(files_.OpenRead(scratch_.Write("a", "0123456789"))).value();
  ASSERT_EQ(file->size(), 10u);
  std::string out(4, ' ');
  EXPECT_EQ(file->Read(Chars(out)).value(), 4u);
  EXPECT_EQ(out, "0123");
  EXPECT_EQ(file->ReadAt(8, Chars(out)).value(), 2u);  // the end comes first
  EXPECT_EQ(out.substr(0, 2), "89");
  EXPECT_EQ(file->Read(Chars(out)).value(), 4u);
  EXPECT_EQ(out, "4567");
  EXPECT_EQ(file->ReadAt(10, Chars(out)).value(), 0u);
}

TEST_F(FilesTest, ReadAllIsTheWholeFileWhateverItsSize) {
  for (const std::size_t size : {0u, 1u, (1u << 20) - 1, 1u << 20, (2u << 20) + 5}) {
    SCOPED_TRACE(Str("size ", size));
    const std::string content(size, 'x');
    ASSERT_EQ(ReadAll(files_, scratch_.Write("a", content)).value(), content);
  }
}

TEST_F(FilesTest, SaysWhatIsNotThereAndWhatIsADirectory) {
  const auto missing = files_.OpenRead(scratch_ / "nothing");
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_NE(missing.error().text.find("nothing: cannot open: No such file"), std::string::npos);
  const auto directory = files_.OpenRead(scratch_.path());
  EXPECT_EQ(directory.error().code, Code::kIo);
  EXPECT_NE(directory.error().text.find("is a directory"), std::string::npos);
  const auto below_a_file = files_.Create(scratch_.Write("a", "") + "/b");
  EXPECT_EQ(below_a_file.error().code, Code::kIo);
}

TEST_F(FilesTest, GlobGivesSortedMatchesOrThePathItself) {
  scratch_.Write("b.svm", "");
  scratch_.Write("a.svm", "");
  scratch_.Write("[odd].svm", "");
  EXPECT_EQ(files_.Glob(scratch_ / "?.svm").value(),
            (std::vector<std::string>{scratch_ / "a.svm", scratch_ / "b.svm"}));
  EXPECT_EQ(files_.Glob(scratch_ / "[odd].svm").value(), std::vector{scratch_ / "[odd].svm"});
  EXPECT_EQ(files_.Glob("-").value(), std::vector<std::string>{"-"});
  EXPECT_EQ(files_.Glob(scratch_ / "*.csv").error().code, Code::kNotFound);
  EXPECT_EQ(files_.Glob(scratch_ / "c").error().code, Code::kNotFound);
}

TEST_F(FilesTest, WriteAtomicReplacesTheFileAndLeavesNothingElse) {
  const std::string path = scratch_.Write("model", "old");
  ASSERT_TRUE(WriteText(files_, path, {"new ", "content"}).ok());
  EXPECT_EQ(scratch_.Read("model"), "new content");
  EXPECT_EQ(scratch_.Names(), std::vector<std::string>{"model"});
}

TEST_F(FilesTest, WriteAtomicKeepsTheOldFileWholeWhicheverOperationFails) {
  for (const bool for_ever : {false, true})
    for (int nth = 1;; ++nth) {
      SCOPED_TRACE(Str("operation ", nth, for_ever ? " and all after it" : ""));
      const std::string path = scratch_.Write("model", "old content");
      FaultyFiles faulty(files_);
      faulty.FailAt(nth, for_ever);
      const auto result = WriteText(faulty, path, {"new ", "and ", "longer ", "content"});
      ASSERT_EQ(result.ok(), faulty.failures() == 0);
      ASSERT_EQ(scratch_.Names(), std::vector<std::string>{"model"});
      if (result.ok()) {
        EXPECT_GT(nth, 7);  // create, four writes, sync, rename and the directory's sync have each failed
        break;
      }
      ASSERT_EQ(result.error().code, Code::kIo);
      const std::string left = scratch_.Read("model");
      ASSERT_TRUE(left == "old content" || (nth == 8 && left == "new and longer content")) << left;
    }
}

TEST_F(FilesTest, WriteAtomicPassesOnTheErrorOfTheWriter) {
  const std::string path = scratch_.Write("model", "old");
  const auto result = WriteAtomic(files_, path, [](OutputFile& file) -> Result<void> {
    TRY(file.Write("half"));
    return Error{Code::kStopped, "enough"};
  });
  EXPECT_EQ(result.error().code, Code::kStopped);
  EXPECT_EQ(scratch_.Read("model"), "old");
  EXPECT_EQ(scratch_.Names(), std::vector<std::string>{"model"});
}

TEST_F(FilesTest, WriteAtomicNeverReplacesADevice) {
  struct stat before {
  }, after{};
  ASSERT_EQ(stat("/dev/null", &before), 0);
  EXPECT_TRUE(WriteText(files_, "/dev/null", {"gone"}).ok());
  ASSERT_EQ(stat("/dev/null", &after), 0);
  EXPECT_TRUE(S_ISCHR(after.st_mode));
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_TRUE(files_.IsDevice("/dev/null"));
  EXPECT_TRUE(files_.IsDevice("-"));
  EXPECT_FALSE(files_.IsDevice(scratch_.Write("a", "")));
  EXPECT_FALSE(files_.IsDevice(scratch_ / "b"));
}

TEST_F(FilesTest, AFullDiskIsAnErrorThatStays) {
  if (!files_.Exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this system";
  const auto file = std::move(files_.Create("/dev/full")).value();
  const auto first = file->Write("x");
  ASSERT_FALSE(first.ok());
  EXPECT_EQ(first.error().text, "/dev/full: cannot write: No space left on device");
  EXPECT_EQ(file->Sync().error().text, first.error().text);
}

TEST_F(FilesTest, FaultyFilesFailTheNthOperationAndThatFileForEver) {
  FaultyFiles faulty(files_);
  faulty.FailAt(3);
  const auto file = std::move(faulty.Create(scratch_ / "a")).value();
  EXPECT_TRUE(file->Write("12345678").ok());
  EXPECT_FALSE(file->Write("abcdefgh").ok());
  EXPECT_FALSE(file->Write("more").ok());
  EXPECT_FALSE(file->Sync().ok());
  EXPECT_EQ(scratch_.Read("a"), "12345678abcd");  // half of what failed
  EXPECT_EQ(faulty.failures(), 1);
  EXPECT_TRUE(faulty.Create(scratch_ / "b").ok());
}

TEST_F(FilesTest, AnAppendFileGrowsAtItsEndAlsoAfterItWasShortened) {
  const std::string path = scratch_ / "log";
  const auto append = [&](AppendFile& file, std::string text) {
    ASSERT_TRUE(file.Append(std::as_bytes(std::span(text))).ok());
  };
  {
    const auto file = std::move(files_.OpenAppend(path)).value();
    append(*file, "one");
    append(*file, "");
    append(*file, "two");
    EXPECT_EQ(scratch_.Read("log"), "onetwo");  // others see it at once
  }
  const auto file = std::move(files_.OpenAppend(path)).value();
  append(*file, "three");
  ASSERT_TRUE(file->Truncate(4).ok());
  append(*file, "four");
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(scratch_.Read("log"), "onetfour");
  EXPECT_EQ(files_.OpenAppend(scratch_ / "no/such/log").error().code, Code::kNotFound);
  EXPECT_EQ(files_.OpenAppend(scratch_.path()).error().code, Code::kIo);
}

TEST_F(FilesTest, AnAppendFileTellsOfAFullDiskAndCanBeTriedAgain) {
  const auto full = files_.OpenAppend("/dev/full");
  if (!full.ok()) GTEST_SKIP() << full.error().text;
  const std::string text = "text";
  EXPECT_EQ(full.value()->Append(std::as_bytes(std::span(text))).error().code, Code::kIo);

  FaultyFiles faulty(files_);
  const auto file = std::move(faulty.OpenAppend(scratch_ / "log")).value();
  faulty.FailAt(2);
  EXPECT_TRUE(file->Append(std::as_bytes(std::span(text))).ok());
  EXPECT_EQ(file->Append(std::as_bytes(std::span(text))).error().code, Code::kIo);
  EXPECT_EQ(scratch_.Read("log"), "textte");  // half of what failed
  EXPECT_TRUE(file->Truncate(4).ok());
  EXPECT_TRUE(file->Append(std::as_bytes(std::span(text))).ok());
  EXPECT_EQ(scratch_.Read("log"), "texttext");
  faulty.FailAt(1);
  EXPECT_FALSE(file->Sync().ok());
  EXPECT_TRUE(file->Sync().ok());
}

TEST_F(FilesTest, ALockIsHeldByOneProcessAndLetGoWithIt) {
  const std::string path = scratch_ / "model.lock";
  int ready[2], finish[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(finish), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = PosixFiles().Lock(path);
    char byte = lock.ok() ? 'y' : 'n';
    (void)!write(ready[1], &byte, 1);
    (void)!read(finish[0], &byte, 1);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  const auto busy = files_.Lock(path);
  EXPECT_EQ(busy.error().code, Code::kBusy);
  EXPECT_NE(busy.error().text.find(Str("pid ", child, ")")), std::string::npos) << busy.error().text;
  ASSERT_EQ(write(finish[1], &byte, 1), 1);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  for (const int fd : {ready[0], ready[1], finish[0], finish[1]}) close(fd);
  EXPECT_TRUE(files_.Lock(path).ok());
}

TEST_F(FilesTest, ALockCanBeTakenAgainAfterItsFileWasRemoved) {
  const std::string path = scratch_ / "model.lock";
  {
    const auto lock = files_.Lock(path);
    ASSERT_TRUE(lock.ok());
    ASSERT_TRUE(files_.Remove(path).ok());
  }
  const auto again = files_.Lock(path);
  EXPECT_TRUE(again.ok());
  EXPECT_EQ(files_.Lock(path).error().code, Code::kBusy);
}

TEST_F(FilesTest, MakeDirectoryMakesParentsAndDoesNotMindIfItIsThere) {
  EXPECT_TRUE(files_.MakeDirectory(scratch_ / "a/b/c").ok());
  EXPECT_TRUE(files_.MakeDirectory(scratch_ / "a/b/c").ok());
  EXPECT_TRUE(files_.Exists(scratch_ / "a/b/c"));
  EXPECT_EQ(files_.MakeDirectory(scratch_.Write("file", "") + "/d").error().code, Code::kIo);
}

}  // namespace
}  // namespace freshet::base
