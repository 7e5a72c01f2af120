// Tables as people have them, through the program: what it says of them, and how machines are told.

#include <nlohmann/json.hpp>

#include "process_testing.h"

namespace freshet::cli {
namespace {

using Json = nlohmann::json;

class TablesTest : public testing::Test {
 protected:
  Finished Run(const std::vector<std::string>& arguments) { return Process(scratch_, arguments, {}).Wait(); }
  Finished Must(const std::vector<std::string>& arguments) {
    Finished finished = Run(arguments);
    EXPECT_EQ(finished.code, 0) << Join(arguments, " ") << "\n" << finished.err;
    return finished;
  }
  static Json JsonOf(std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    EXPECT_TRUE(json.is_object()) << text;
    return json;
  }
  static void ExpectMentions(const std::string& text, const std::string& piece) {
    EXPECT_NE(text.find(piece), std::string::npos) << "'" << piece << "' is not in: " << text;
  }

  base::ScratchDirectory scratch_;
};

std::string EuropeanTable() {
  std::string text =
      "gr\xc3\xb6\xc3\x9f"
      "e;einkommen (\xe2\x82\xac);seit;klasse\n";
  for (int i = 0; i < 60; ++i)
    text += Str(i % 7, ",5;", 1 + i % 3, ".", 100 + i, ",25;2021-0", 1 + i % 9, "-11;",
                i % 2 == 0 ? "gro\xc3\x9f" : "klein", "\n");
  return text;
}

TEST_F(TablesTest, NamesAndMarksOfOtherLanguagesTravelAsTheyAre) {
  scratch_.Write("t.csv", EuropeanTable());
  const Finished inspected = Must({"data", "inspect", "t.csv"});
  ExpectMentions(inspected.out, "csv, columns by ';', decimal comma, first line names the columns");
  ExpectMentions(inspected.out, "column    einkommen (\xe2\x82\xac)  number\n");
  ExpectMentions(inspected.out, "column    seit  date\n");
  ExpectMentions(inspected.out, "note      numbers are read with a decimal comma ('0,5')");
  const Finished trained = Must({"train", "t.csv", "-o", "m", "--json", "--quiet"});
  EXPECT_EQ(JsonOf(trained.out)["notes"].size(), 2u);
  ExpectMentions(trained.err, "note: column 'seit' holds dates");
  const Json model = JsonOf(Must({"inspect", "m", "--json"}).out);
  EXPECT_EQ(model["input"]["columns"][1]["name"], "einkommen (\xe2\x82\xac)");
  EXPECT_EQ(model["input"]["labels"]["names"][0], "gro\xc3\x9f");
  EXPECT_EQ(model["input"]["decimal"], ",");
  const Finished predicted = Must({"predict", "-i", "m", "t.csv", "--json"});
  const auto lines = Split(predicted.out, '\n');
  ASSERT_EQ(lines.size(), 61u);
  const Json row = JsonOf(lines[0]);
  EXPECT_TRUE(row["score"].is_number());
  EXPECT_TRUE(row["label"] == "gro\xc3\x9f" || row["label"] == "klein") << lines[0];
  const Json exported = JsonOf(Must({"export", "-i", "m", "--onnx", "m.onnx", "--json"}).out);
  ExpectMentions(exported["notes"].dump(), "ONNX cannot read dates");
}

TEST_F(TablesTest, FailuresAreJsonToo) {
  scratch_.Write("bad.csv", "a,b\n1,0\n2,1\n3\n4,1\n");
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    const char* code;
    const char* says;
  } table[] = {
      {{"train", "bad.csv", "--json"}, 3, "bad-input", "bad.csv:4:2: found 1 column, expected 2"},
      {{"train", "none.csv", "--json"}, 1, "not-found", "none.csv"},
      {{"train", "bad.csv", "--jsn", "--json"}, 2, "invalid", "flag 'jsn' is unknown"},
      {{"predict", "--json", "bad.csv"}, 2, "invalid", "no model: name it with -i FILE"},
      {{"data", "inspect", "--json"}, 2, "invalid", "no input files"},
  };
  for (const auto& [arguments, exit_code, code, says] : table) {
    SCOPED_TRACE(Join(arguments, " "));
    const Finished finished = Run(arguments);
    EXPECT_EQ(finished.code, exit_code) << finished.err;
    const Json json = JsonOf(finished.out);
    EXPECT_EQ(json["error"]["code"], code);
    EXPECT_EQ(json["error"]["exit_code"], exit_code);
    ExpectMentions(json["error"]["text"], says);
    ASSERT_EQ(finished.ErrorLines().size(), 1u) << finished.err;
    EXPECT_EQ(finished.ErrorLines()[0], json["error"]["text"].get<std::string>());
  }
  EXPECT_EQ(Run({"train", "bad.csv"}).out, "") << "only when asked for";
}

TEST_F(TablesTest, VerbsThatWriteSayWhatAsJson) {
  EXPECT_EQ(JsonOf(Must({"data", "generate", "--kind", "sea", "--rows", "50", "-o", "s.csv", "--json"}).out)["rows"],
            50);
  const Json split = JsonOf(Must({"data", "split", "s.csv", "--train", "a", "--test", "b", "--json"}).out);
  EXPECT_EQ(split["train"]["rows"].get<int>() + split["test"]["rows"].get<int>(), 50);
  const Json converted = JsonOf(Must({"data", "convert", "s.csv", "-o", "s.cache", "--json"}).out);
  EXPECT_EQ(converted["rows"], 50);
  EXPECT_EQ(converted["out"], "s.cache");
}

TEST_F(TablesTest, APlaceThatIsNotThereIsBlamedBeforeTheWork) {
  scratch_.Write("t.csv", EuropeanTable());
  Must({"train", "t.csv", "-o", "m", "--quiet"});
  const std::vector<std::string> commands[] = {
      {"train", "t.csv", "--quiet", "-o", "nowhere/m"},   {"train", "t.csv", "--quiet", "--checkpoint", "nowhere/c"},
      {"predict", "-i", "m", "t.csv", "-o", "nowhere/p"}, {"export", "-i", "m", "--onnx", "nowhere/m.onnx"},
      {"data", "convert", "t.csv", "-o", "nowhere/c"},    {"data", "generate", "--kind", "sea", "-o", "nowhere/s"},
  };
  for (const auto& command : commands) {
    SCOPED_TRACE(Join(command, " "));
    const Finished finished = Run(command);
    EXPECT_EQ(finished.code, 1);
    ASSERT_EQ(finished.ErrorLines().size(), 1u) << finished.err;
    ExpectMentions(finished.ErrorLines()[0], "there is no directory nowhere; make it first");
    EXPECT_EQ(finished.err.find("note:"), std::string::npos) << "before anything is read";
  }
}

TEST_F(TablesTest, NamesWithLineEndsAreShownWithinALine) {
  std::string text = "c,x,y\n";
  for (int i = 0; i < 40; ++i) text += Str(i % 2 == 0 ? "\"a\nb=c\"" : "d", ",", i % 3, ",", i % 2, "\n");
  scratch_.Write("t.csv", text);
  Must({"train", "t.csv", "-o", "m", "--quiet"});
  ExpectMentions(Must({"inspect", "m"}).out, "  c=a\\nb=c\n");
}

}  // namespace
}  // namespace freshet::cli
