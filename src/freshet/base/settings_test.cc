#include "base/settings.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/option.h"
#include "base/random.h"
#include "base/scratch_testing.h"

namespace freshet::base {
namespace {

// The settings of an imaginary command.
struct Example {
  bool verbose = false, colour = true;
  int epochs = 1;
  std::int64_t after = 0;
  std::uint64_t seed = 1;
  double rate = 0.5;
  std::string out, label, loss = "auto", config;
  std::vector<std::string> data;
  Settings settings;

  Example() {
    settings.Group("Result");
    settings.Add("out", &out, "where it goes", {.letter = 'o', .value = "FILE"});
    settings.Add("verbose", &verbose, "say more");
    settings.Add("colour", &colour, "in colour");
    settings.Group("Learning");
    settings.Add("epochs", &epochs, "passes", {.letter = 'e', .value = "N", .least = 1, .most = 100});
    settings.Add("after", &after, "a time", {.value = "T"});
    settings.Add("seed", &seed, "of everything random", {.value = "N"});
    settings.Add("rate", &rate, "learning rate", {.value = "X", .least = 0});
    settings.Add("label", &label, "a column", {.value = "COLUMN"});
    settings.Add("loss", &loss, "what to minimise", {.value = "NAME", .choices = {"auto", "hinge", "squared"}});
    settings.Add("data", &data, "files", {.letter = 'd', .value = "FILE", .positional = true});
    settings.Add("config", &config, "a TOML file", {.value = "FILE"});
  }
  Result<void> Parse(const std::vector<std::string>& arguments) {
    auto parsed = settings.Parse(arguments, files);
    if (parsed.ok()) return parsed;
    return Error{parsed.error().code, ShowOptions(parsed.error().text, "--")};
  }
  PosixFiles files;
};

TEST(Settings, TakesFlagsInEveryForm) {
  Example e;
  ASSERT_TRUE(e.Parse({"--epochs", "3", "--rate=0.25", "-o", "m", "--verbose", "--no-colour", "--after", "-5", "a",
                       "-d", "b", "-", "--", "--odd"})
                  .ok());
  EXPECT_EQ(e.epochs, 3);
  EXPECT_EQ(e.rate, 0.25);
  EXPECT_EQ(e.out, "m");
  EXPECT_TRUE(e.verbose);
  EXPECT_FALSE(e.colour);
  EXPECT_EQ(e.after, -5);
  EXPECT_EQ(e.data, (std::vector<std::string>{"a", "b", "-", "--odd"}));
  EXPECT_TRUE(e.settings.Given("rate"));
  EXPECT_FALSE(e.settings.Given("loss"));
}

TEST(Settings, TakesNegativeNumbersAsValues) {
  Example e;
  ASSERT_TRUE(e.Parse({"--label", "-1", "--after", "-9223372036854775808"}).ok());
  EXPECT_EQ(e.label, "-1");
  EXPECT_EQ(e.after, INT64_MIN);
}

TEST(Settings, KeepsDefaultsWhenNothingIsSaid) {
  Example e;
  ASSERT_TRUE(e.Parse({}).ok());
  EXPECT_EQ(e.rate, 0.5);
  EXPECT_TRUE(e.colour);
}

TEST(Settings, FlagsWinOverTheFileAndTheFileOverDefaults) {
  const ScratchDirectory scratch;
  const std::string file =
      scratch.Write("c.toml", "epochs = 7\nrate = 2\nverbose = true\ndata = [\"x\", \"y\"]\nloss = \"hinge\"\n");
  Example e;
  ASSERT_TRUE(e.Parse({"--epochs", "9", "--config", file}).ok());
  EXPECT_EQ(e.epochs, 9);
  EXPECT_EQ(e.rate, 2);
  EXPECT_TRUE(e.verbose);
  EXPECT_EQ(e.loss, "hinge");
  EXPECT_EQ(e.data, (std::vector<std::string>{"x", "y"}));

  Example list;
  ASSERT_TRUE(list.Parse({"--config", file, "z"}).ok());
  EXPECT_EQ(list.data, std::vector<std::string>{"z"});  // a list given by flags replaces the file's
  EXPECT_FALSE(list.Parse({"--config", file, "--no-verbose"}).ok() && list.verbose);
}

TEST(Settings, AListInTheFileReplacesTheDefaultList) {
  const ScratchDirectory scratch;
  Example e;
  e.data = {"by default"};
  ASSERT_TRUE(e.Parse({"--config", scratch.Write("c.toml", "data = [\"x\"]\n")}).ok());
  EXPECT_EQ(e.data, std::vector<std::string>{"x"});
}

TEST(Settings, RefusesUnknownNamesWithTheNearestMatch) {
  const ScratchDirectory scratch;
  EXPECT_EQ(Example().Parse({"--epoch=3"}).error().text, "flag 'epoch' is unknown; did you mean 'epochs'?");
  EXPECT_EQ(Example().Parse({"--zzzzzz=1"}).error().text, "flag 'zzzzzz' is unknown; see --help");
  EXPECT_EQ(Example().Parse({"-z"}).error().text, "flag '-z' is unknown; see --help");
  const std::string file = scratch.Write("c.toml", "epochs = 2\nraet = 1\n");
  const auto result = Example().Parse({"--config", file});
  EXPECT_EQ(result.error().code, Code::kInvalid);
  EXPECT_EQ(result.error().text, Str(file, ":2:8: key 'raet' is unknown; did you mean 'rate'?"));
}

TEST(Settings, SaysEverythingThatIsWrongAtOnce) {
  const ScratchDirectory scratch;
  const std::string file = scratch.Write("c.toml", "seed = -1\nrate = \"fast\"\nverbose = [1]\n[table]\n");
  Example e;
  const auto result =
      e.Parse({"--config", file, "--epochs", "0", "--rates=1", "--loss", "log", "--after", "1.5", "--out"});
  ASSERT_FALSE(result.ok());
  const std::string& text = result.error().text;
  for (const char* const piece :
       {"--seed: found '-1', expected a whole number from 0 up", "--rate: found 'fast', expected a number",
        "verbose: expected true or false, found a list", "key 'table' is unknown",
        "--epochs: found '0', expected a whole number from 1 to 100", "flag 'rates' is unknown; did you mean 'rate'?",
        "--loss: found 'log', expected one of auto, hinge, squared", "--after: found '1.5', expected a whole number",
        "--out: expected text after it"})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << "\nis not in\n" << text;
  EXPECT_EQ(Split(text, '\n').size(), 9u) << text;
}

TEST(Settings, RefusesNumbersThatAreNone) {
  for (const char* const wrong : {"", "1x", "nan", "inf", "0x10", " 1", "--5"}) {
    SCOPED_TRACE(wrong);
    EXPECT_FALSE(Example().Parse({Str("--rate=", wrong)}).ok());
    EXPECT_FALSE(Example().Parse({Str("--epochs=", wrong)}).ok());
  }
  EXPECT_FALSE(Example().Parse({"--epochs=99999999999999999999"}).ok());
  EXPECT_FALSE(Example().Parse({"--verbose=yes"}).ok());
}

TEST(Settings, AFlagThatMissesItsValueDoesNotTakeTheNextFlagForIt) {
  Example e;
  const auto result = e.Parse({"--out", "--verbose"});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().text, "--out: expected text after it");
}

TEST(Settings, SaysWhereAFileIsNotToml) {
  const ScratchDirectory scratch;
  const std::string file = scratch.Write("c.toml", "epochs = 2\nrate = = 1\n");
  const auto result = Example().Parse({"--config", file});
  ASSERT_FALSE(result.ok());
  EXPECT_TRUE(result.error().text.starts_with(Str(file, ":2:"))) << result.error().text;
  EXPECT_FALSE(Example().Parse({"--config", scratch / "missing"}).ok());
}

TEST(Settings, EffectiveParsesToTheSameSettings) {
  const ScratchDirectory scratch;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(Str("seed ", seed));
    Random random(seed, "settings");
    const auto text = [&] {
      std::string out;
      for (std::uint64_t i = random.Below(6); i > 0; --i)
        out += static_cast<char>(random.Below(4) == 0 ? random.Below(0x80) : ' ' + random.Below(90));
      return out;
    };
    Example e;
    e.verbose = random.Below(2) == 0;
    e.colour = random.Below(2) == 0;
    e.epochs = static_cast<int>(1 + random.Below(100));
    e.after = static_cast<std::int64_t>(random.Next());
    e.seed = random.Next();
    e.rate = random.Below(2) == 0 ? static_cast<double>(random.Below(10))
                                  : random.Uniform() * std::pow(10, random.Uniform(-300, 300));
    e.out = text();
    e.label = text();
    for (std::uint64_t i = random.Below(3); i > 0; --i) e.data.push_back(text());
    const std::string toml = e.settings.Effective();
    Example back;
    const auto parsed = back.Parse({"--config", scratch.Write("c.toml", toml)});
    ASSERT_TRUE(parsed.ok()) << parsed.error().text << "\n" << toml;
    ASSERT_EQ(back.settings.Effective(), toml);
    ASSERT_EQ(back.out, e.out);
    ASSERT_EQ(back.rate, e.rate);
    ASSERT_EQ(back.seed, e.seed);
    ASSERT_EQ(back.data, e.data);
  }
}

TEST(Settings, AListMayBeOneTextWithCommas) {
  const ScratchDirectory scratch;
  Settings settings;
  PosixFiles files;
  std::vector<std::string> columns;
  std::string config;
  settings.Add("columns", &columns, "which", {.value = "A,B", .commas = true});
  settings.Add("config", &config, "a TOML file", {.value = "FILE"});
  EXPECT_EQ(settings.Effective(), "columns = \"\"\n");
  ASSERT_TRUE(settings.Parse({"--columns", "x", "--columns", "a, b,c"}, files).ok());  // the last one counts
  EXPECT_EQ(columns, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(settings.Effective(), "columns = \"a,b,c\"\n");
  EXPECT_TRUE(settings.Parse({"--columns", ""}, files).ok());
  EXPECT_TRUE(columns.empty());
  EXPECT_FALSE(settings.Parse({"--config", scratch.Write("c.toml", "columns = [\"a\"]\n")}, files).ok());
}

TEST(Settings, VariablesThatAProgramSetAreCheckedLikeFlags) {
  Example e;
  EXPECT_TRUE(e.settings.Check().ok());
  e.epochs = 0;
  e.rate = std::nan("");
  e.loss = "log";
  const auto checked = e.settings.Check();
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, Code::kInvalid);
  EXPECT_EQ(ShowOptions(checked.error().text),
            "epochs: found '0', expected a whole number from 1 to 100\n"
            "rate: found 'nan', expected a number\n"
            "loss: found 'log', expected one of auto, hinge, squared");
}

TEST(Settings, SayWhichOfThemWereGiven) {
  Example e;
  ASSERT_TRUE(e.Parse({"--epochs", "1", "-o", "m"}).ok());  // 1 is what it was before
  EXPECT_EQ(e.settings.Given(), (std::set<std::string, std::less<>>{"epochs", "out"}));
}

TEST(Settings, HelpShowsAGroupOnceWhereverItWasGoneOnWith) {
  Settings settings;
  bool a = false, b = false, c = false;
  settings.Group("First");
  settings.Add("a", &a, "one");
  settings.Group("Second");
  settings.Add("b", &b, "two");
  settings.Group("First");
  settings.Add("c", &c, "three");
  const std::string help = settings.Help();
  EXPECT_LT(help.find("three"), help.find("Second:"));
  EXPECT_EQ(help.find("First:"), help.rfind("First:"));
}

TEST(Settings, HelpShowsWhatHoldsUnlessAFlagIsGivenWhereThatIsNotItsVariable) {
  Settings settings;
  double rate = 0.5;
  bool forget = false;
  settings.Add("rate", &rate, "how fast", {.value = "X", .otherwise = "by the model"});
  settings.Add("forget", &forget, "the past", {.otherwise = "yes"});
  const std::string help = settings.Help();
  EXPECT_NE(help.find("how fast [by the model]\n"), std::string::npos) << help;
  EXPECT_NE(help.find("the past [yes]\n"), std::string::npos) << help;
}

TEST(Settings, HelpShowsEveryFlagWithItsGroupTextAndDefault) {
  Example e;
  const std::string help = e.settings.Help();
  EXPECT_LT(help.find("Result:"), help.find("Learning:"));
  EXPECT_NE(help.find("-e, --epochs N"), std::string::npos) << help;
  EXPECT_NE(help.find("learning rate [0.5]"), std::string::npos) << help;
  EXPECT_NE(help.find("what to minimise: auto, hinge, squared [\"auto\"]"), std::string::npos) << help;
}

TEST(Settings, EveryPartOfAListIsOneOfTheChoices) {
  std::vector<std::string> codecs = {"none"};
  Settings settings;
  settings.Add("codecs", &codecs, "", {.choices = {"none", "fp16"}, .commas = true});
  PosixFiles files;
  ASSERT_TRUE(settings.Parse({"--codecs", "fp16, none"}, files).ok());
  EXPECT_EQ(codecs, (std::vector<std::string>{"fp16", "none"}));
  const auto wrong = settings.Parse({"--codecs", "fp16,fp8"}, files);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().text.find("found 'fp8', expected one of none, fp16"), std::string::npos);
}

}  // namespace
}  // namespace freshet::base
