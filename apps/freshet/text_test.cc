// Texts, from made up to predicted, by a recurrent network.

#include <nlohmann/json.hpp>

#include "process_testing.h"

namespace freshet::cli {
namespace {

class TextTest : public testing::Test {
 protected:
  Finished Run(const std::vector<std::string>& arguments, const Surroundings& around = {}) {
    return Process(scratch_, arguments, around).Wait();
  }
  Finished Must(const std::vector<std::string>& arguments, const Surroundings& around = {}) {
    Finished finished = Run(arguments, around);
    EXPECT_EQ(finished.code, 0) << Join(arguments, " ") << "\n" << finished.err;
    return finished;
  }
  void Fails(int code, const std::vector<std::string>& arguments, const std::string& why) {
    const Finished finished = Run(arguments);
    EXPECT_EQ(finished.code, code) << Join(arguments, " ");
    EXPECT_NE(finished.err.find(why), std::string::npos) << "'" << why << "' is not in: " << finished.err;
  }
  // A small network, for texts that are easy.
  Finished Train(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"train", "--model", "char-lstm", "--hidden", "16", "--optimizer",
                                          "adam",  "--rate",  "0.01",      "--steps",  "8",  "--threads",
                                          "1",     "--quiet", "-o",        "m"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Must(arguments);
  }
  static std::string Repeated(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  }

  base::ScratchDirectory scratch_;
};

TEST_F(TextTest, LearnsARefrainAndPredictsTheSymbolAfterEachRow) {
  const std::string refrain = "abcad\n ";
  scratch_.Write("song.txt", Repeated(refrain, 700));
  Train({"song.txt", "--epochs", "5"});
  scratch_.Write("lines.txt", Repeated(refrain, 8));  // 56 symbols are 7 rows
  const Finished predicted = Must({"predict", "-i", "m", "lines.txt"});
  EXPECT_EQ(predicted.out, "b\nc\na\nd\n\\n\n \na\n");
  const auto json = nlohmann::json::parse(Must({"evaluate", "-i", "m", "lines.txt", "--json"}).out);
  EXPECT_EQ(json["rows"], 6) << "nothing follows the last one";
  EXPECT_EQ(json["error_rate"], 0);
  EXPECT_EQ(Split(Split(Must({"predict", "-i", "m", "lines.txt", "--probabilities"}).out, '\n')[0], ' ').size(), 6u);
}

TEST_F(TextTest, FindsSymbolsWhereverTheyAre) {
  scratch_.Write("late.txt", Repeated("ab", 600'000) + "z?");  // behind the head of the file
  Must({"data", "convert", "late.txt", "--format", "text", "--steps", "1000", "-o", "late.cache"});
  const auto json = nlohmann::json::parse(Must({"data", "inspect", "late.cache", "--json"}).out);
  EXPECT_EQ(json["input"]["labels"]["names"], (std::vector<std::string>{"?", "a", "b", "z"}));
}

TEST_F(TextTest, UnknownSymbolsAreRefusedWithALabelAndPassWithout) {
  scratch_.Write("song.txt", Repeated("abc", 100));
  scratch_.Write("other.txt", Repeated("abc", 5) + "?abc");
  Train({"song.txt", "--epochs", "1"});
  Fails(3, {"evaluate", "-i", "m", "other.txt"}, "other.txt:2:8: byte 16: symbol ? is not of the alphabet");
  EXPECT_EQ(Split(Must({"predict", "-i", "m", "other.txt"}).out, '\n').size(), 2u + 1);
}

TEST_F(TextTest, TakesTextOnlyWhereItIsMeant) {
  scratch_.Write("song.txt", Repeated("abc", 100));
  Fails(2, {"train", "song.txt", "--format", "text", "--loss", "squared"}, "the labels of text are its symbols");
  Fails(2, {"data", "split", "song.txt", "--format", "text", "--train", "a", "--test", "b"}, "one sequence");
  Fails(2, {"train", "song.txt", "--format", "text", "--steps", "1"}, "--steps");
  scratch_.Write("short.txt", "abc");
  Fails(3, {"train", "short.txt", "--model", "char-lstm"}, "short.txt:1:1: found 3 symbols, expected at least 33");
}

TEST_F(TextTest, AGrammarSaysItsEntropyAndLeavesStandardOutputToTheText) {
  const Finished told = Must({"data", "generate", "--kind", "grammar", "--rows", "50", "-o", "g.txt"});
  EXPECT_EQ(told.out, "entropy  2.1100 bits a symbol (a log loss of 1.4625)\n");
  EXPECT_EQ(Must({"data", "generate", "--kind", "grammar", "--rows", "50"}).out, scratch_.Read("g.txt"));
}

}  // namespace
}  // namespace freshet::cli
