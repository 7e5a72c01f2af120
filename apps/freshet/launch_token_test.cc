#include "launch_token.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>

#include "base/scratch_testing.h"

namespace freshet::cli {
namespace {

class LaunchTokenTest : public testing::Test {
 protected:
  Result<Token> Read(const std::string& file = "") {
    return ReadToken(file, place_, [this](const char* name) -> const char* {
      const auto at = variables_.find(name);
      return at == variables_.end() ? nullptr : at->second.c_str();
    });
  }
  std::string File(const std::string& content, int mode = 0600) {
    const std::string path = scratch_.Write("token", content);
    chmod(path.c_str(), static_cast<mode_t>(mode));
    return path;
  }
  void ExpectRefused(const Result<Token>& token, const std::string& word) {
    ASSERT_FALSE(token.ok());
    EXPECT_NE(token.error().text.find(word), std::string::npos) << word << " not in: " << token.error().text;
  }

  base::ScratchDirectory scratch_;
  std::map<std::string, std::string> variables_ = {{"XDG_RUNTIME_DIR", scratch_.path()}};
  fabric::Place place_{.rank = 0, .size = 2, .local_rank = 0, .local_size = 2};
};

const std::string kRaw = "0123456789abcdef0123456789abcde\n";  // 32 bytes, of which the last is no digit

TEST_F(LaunchTokenTest, ReadsBytesAndHexadecimalDigits) {
  EXPECT_EQ(static_cast<char>(Read(File(kRaw)).value()[31]), '\n');
  std::string digits;
  for (int i = 0; i < 32; ++i) digits += "4A";
  EXPECT_EQ(Read(File(digits + "\n")).value(), Token(32, std::byte{'J'}));
  ExpectRefused(Read(File(digits.substr(2))), "62 bytes");
  digits[5] = 'x';
  ExpectRefused(Read(File(digits)), "64 hexadecimal digits");
  ExpectRefused(Read(File("")), "0 bytes");
  ExpectRefused(Read(scratch_ / "nowhere"), "nowhere");
  ExpectRefused(Read(scratch_.path()), "no plain file");
}

TEST_F(LaunchTokenTest, RefusesAFileThatOthersCanRead) {
  for (const int mode : {0644, 0640, 0604, 0660, 0601}) ExpectRefused(Read(File(kRaw, mode)), "mode is 06");
  ExpectRefused(Read(File(kRaw, 0644)), "0644");
  EXPECT_TRUE(Read(File(kRaw, 0400)).ok());
}

TEST_F(LaunchTokenTest, TheFlagWinsThenTheDescriptorThenTheFile) {
  const Token held = MakeToken().value();
  const base::Descriptor memory = std::move(HoldToken(held)).value();
  variables_["FRESHET_TOKEN_FILE"] = File(kRaw);
  const Token from_file = Read().value();
  EXPECT_EQ(static_cast<char>(from_file[0]), '0');
  variables_["FRESHET_TOKEN_FD"] = Str(memory.get());
  EXPECT_EQ(Read().value(), held);
  EXPECT_EQ(Read().value(), held) << "again";
  EXPECT_EQ(Read(scratch_ / "token").value(), from_file);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], kRaw.data(), kRaw.size()), 32);
  close(ends[1]);
  variables_["FRESHET_TOKEN_FD"] = Str(ends[0]);
  EXPECT_EQ(Read().value(), from_file) << "from a pipe";
  close(ends[0]);
  variables_["FRESHET_TOKEN_FD"] = "999";
  ExpectRefused(Read(), "FRESHET_TOKEN_FD");
}

TEST_F(LaunchTokenTest, TwoNewOnesDiffer) { EXPECT_NE(MakeToken().value(), MakeToken().value()); }

TEST_F(LaunchTokenTest, WorkersOfOneHostShareAFileOfTheirUser) {
  const Token first = Read().value();
  EXPECT_EQ(Read().value(), first);
  ASSERT_EQ(scratch_.Names().size(), 1u) << "no drafts stay behind";
  const std::string path = scratch_ / scratch_.Names()[0];
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  chmod(path.c_str(), 0644);
  ExpectRefused(Read(), "0644");
  unlink(path.c_str());
  ASSERT_EQ(symlink(File(kRaw).c_str(), path.c_str()), 0);
  ExpectRefused(Read(), "--token-file");
}

TEST_F(LaunchTokenTest, WorkersOfSeveralHostsNeedOne) {
  place_.local_size = 1;
  ExpectRefused(Read(), "--token-file");
  EXPECT_TRUE(scratch_.Names().empty());
}

}  // namespace
}  // namespace freshet::cli
