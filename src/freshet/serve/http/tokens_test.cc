#include "serve/http/tokens.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>

#include "base/scratch_testing.h"
#include "base/simulated_clock.h"

namespace freshet::serve {
namespace {

using namespace std::chrono_literals;
constexpr std::string_view kReader = "reader-0123456789", kTeacher = "teacher-0123456789", kOwner = "owner-0123456789";

class TokensTest : public testing::Test {
 protected:
  void Write(const std::string& text, mode_t mode = 0600) {
    directory_.Write("tokens", text);
    ASSERT_EQ(::chmod(path().c_str(), mode), 0);
  }
  void WriteUsual() { Write(Str("# who may what\n\npredict ", kReader, "\nlearn\t", kTeacher, "\r\nadmin ", kOwner)); }
  std::string path() const { return directory_ / "tokens"; }
  Result<std::unique_ptr<Tokens>> Open() { return Tokens::Open(path(), 10, clock_, log_, metrics_); }
  static std::string Bearer(std::string_view token) { return Str("Bearer ", token); }

  base::ScratchDirectory directory_;
  base::ManualClock clock_;
  std::string logged_;
  base::Log log_{clock_, [this](std::string_view line) { logged_ += line; }};
  base::Metrics metrics_;
};

TEST_F(TokensTest, GiveEachTokenItsScope) {
  WriteUsual();
  auto tokens = Open();
  ASSERT_TRUE(tokens.ok()) << tokens.error().text;
  const auto scope = [&](std::string_view authorization) { return tokens.value()->Check(authorization, "a").scope; };
  EXPECT_EQ(scope(Bearer(kReader)), Scope::kPredict);
  EXPECT_EQ(scope(Bearer(kTeacher)), Scope::kLearn);
  EXPECT_EQ(scope(Str("bearer ", kOwner)), Scope::kAdmin);
  EXPECT_EQ(scope(""), Scope::kNone);
  EXPECT_EQ(scope(kOwner), Scope::kNone);
  EXPECT_EQ(scope(Str("Basic ", kOwner)), Scope::kNone);
  EXPECT_EQ(scope(Str("Bearer  ", kOwner)), Scope::kNone);
  EXPECT_EQ(scope(Bearer(kOwner.substr(1))), Scope::kNone);
  EXPECT_EQ(scope("Bearer "), Scope::kNone);
}

TEST_F(TokensTest, HaveNamesThatStayWhenTheyAreRotated) {
  Write(Str("predict shop ", kReader, "\nlearn ", kTeacher, "\nadmin shop ", kOwner));
  auto tokens = std::move(Open()).value();
  const auto name = [&](std::string_view token) { return tokens->Check(Bearer(token), "a").name; };
  EXPECT_EQ(name(kReader), "shop");
  EXPECT_EQ(name(kOwner), "shop");
  EXPECT_EQ(name("wrong-wrong-wrong"), "");
  const std::string unnamed = name(kTeacher);
  EXPECT_TRUE(unnamed.starts_with("unnamed-")) << unnamed;
  Write(Str("predict shop ", kOwner, "\nlearn ", kTeacher, "\npredict ", kReader));
  clock_.Advance(1s);
  tokens->Refresh();
  EXPECT_EQ(name(kOwner), "shop");
  EXPECT_EQ(name(kTeacher), unnamed);  // as long as the token is the same
  EXPECT_NE(name(kReader), unnamed);
}

TEST_F(TokensTest, RefuseAFileOthersMayRead) {
  for (const mode_t mode : {0640, 0604, 0620, 0610}) {
    Write(Str("admin ", kOwner), mode);
    const auto tokens = Open();
    ASSERT_FALSE(tokens.ok());
    EXPECT_EQ(tokens.error().code, Code::kInvalid);
    EXPECT_NE(tokens.error().text.find("chmod 600"), std::string::npos);
  }
}

TEST_F(TokensTest, RefuseLinesThatMakeNoSenseWithoutShowingThem) {
  for (const std::string line :
       {"root secret-secret-secret", "admin", "admin short-secret", "adminsecret-secret-secret",
        "admin secret-secret secret", "admin a-name-of-16-chars secret-secret-secret", "admin a/b secret-secret-secret",
        "admin me secret-secret-secret too", "", "# admin secret-secret-secret"}) {
    Write(line + "\n");
    const auto tokens = Open();
    ASSERT_FALSE(tokens.ok()) << line;
    EXPECT_EQ(tokens.error().code, Code::kInvalid);
    EXPECT_EQ(tokens.error().text.find("secret-secret"), std::string::npos) << tokens.error().text;
  }
  std::filesystem::remove(path());
  EXPECT_EQ(Open().error().code, Code::kNotFound);
  std::filesystem::create_directory(path());
  EXPECT_FALSE(Open().ok());
}

TEST_F(TokensTest, FollowTheFileOnceASecond) {
  Write(Str("admin ", kOwner));
  auto tokens = std::move(Open()).value();
  const auto generation = tokens->generation();
  std::filesystem::remove(path());
  Write(Str("learn ", kTeacher, "\npredict ", kReader));
  tokens->Refresh();
  EXPECT_EQ(tokens->Check(Bearer(kOwner), "a").scope, Scope::kAdmin);
  clock_.Advance(1s);
  tokens->Refresh();
  EXPECT_NE(tokens->generation(), generation);
  EXPECT_EQ(tokens->Check(Bearer(kOwner), "a").scope, Scope::kNone);
  EXPECT_EQ(tokens->Check(Bearer(kTeacher), "a").scope, Scope::kLearn);
  EXPECT_EQ(logged_.find(kTeacher), std::string::npos);
}

TEST_F(TokensTest, StayWhenTheNewFileMakesNoSense) {
  Write(Str("admin ", kOwner));
  auto tokens = std::move(Open()).value();
  Write("nonsense\n");
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(1s);
    tokens->Refresh();
  }
  EXPECT_EQ(tokens->Check(Bearer(kOwner), "a").scope, Scope::kAdmin);
  EXPECT_NE(logged_.find("tokens_not_reloaded"), std::string::npos);
  WriteUsual();
  clock_.Advance(1s);
  tokens->Refresh();
  EXPECT_EQ(tokens->Check(Bearer(kReader), "a").scope, Scope::kPredict);
}

TEST_F(TokensTest, AreWorthNothingOnceTheFileIsGoneOrOpenToOthers) {
  const auto harms = std::vector<std::function<void()>>{
      [&] { std::filesystem::remove(path()); },
      [&] { ::chmod(path().c_str(), 0640); },
      [&] { ::chmod(path().c_str(), 0604); },
  };
  for (std::size_t harm = 0; harm < harms.size(); ++harm) {
    SCOPED_TRACE(harm);
    WriteUsual();
    auto tokens = std::move(Open()).value();
    const auto generation = tokens->generation();
    harms[harm]();
    for (int i = 0; i < 3; ++i) {
      clock_.Advance(1s);
      tokens->Refresh();
    }
    EXPECT_EQ(tokens->generation(), generation + 1);
    EXPECT_EQ(tokens->Check(Bearer(kOwner), "a").scope, Scope::kNone);
    EXPECT_EQ(tokens->ScopeOf(Bearer(kOwner)), Scope::kNone);
    EXPECT_NE(logged_.find("tokens_not_reloaded"), std::string::npos);
    WriteUsual();
    clock_.Advance(1s);
    tokens->Refresh();
    EXPECT_EQ(tokens->Check(Bearer(kOwner), "a").scope, Scope::kAdmin);
  }
}

TEST_F(TokensTest, AreGoodHoweverManyWrongOnesComeFromTheSameAddress) {
  WriteUsual();
  auto tokens = std::move(Open()).value();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(tokens->Check(Bearer("wrong"), "a").limited);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(tokens->Check(Bearer("wrong"), "a").limited);
  EXPECT_EQ(tokens->Check(Bearer(kOwner), "a").scope, Scope::kAdmin);
  EXPECT_FALSE(tokens->Check(Bearer(kOwner), "a").limited);
  EXPECT_FALSE(tokens->Check(Bearer("wrong"), "b").limited);
  EXPECT_FALSE(tokens->Check("", "a").limited);
  clock_.Advance(1s);
  EXPECT_FALSE(tokens->Check(Bearer("wrong"), "a").limited);
  EXPECT_EQ(metrics_.counter("freshet_auth_failures_total", "reason=\"wrong\"", "").value(), 12u);
  EXPECT_EQ(metrics_.counter("freshet_auth_failures_total", "reason=\"limited\"", "").value(), 50u);
}

}  // namespace
}  // namespace freshet::serve
