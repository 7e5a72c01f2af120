// Models out of the program and networks into it, as ONNX files.

#include <nlohmann/json.hpp>

#include "process_testing.h"

namespace freshet::cli {
namespace {

class OnnxTest : public testing::Test {
 protected:
  Finished Run(const std::vector<std::string>& arguments) { return Process(scratch_, arguments, {}).Wait(); }
  Finished Must(const std::vector<std::string>& arguments) {
    Finished finished = Run(arguments);
    EXPECT_EQ(finished.code, 0) << Join(arguments, " ") << "\n" << finished.err;
    return finished;
  }
  void Fails(int code, const std::vector<std::string>& arguments, const std::string& why) {
    const Finished finished = Run(arguments);
    EXPECT_EQ(finished.code, code) << Join(arguments, " ");
    EXPECT_NE(finished.err.find(why), std::string::npos) << "'" << why << "' is not in: " << finished.err;
  }
  // A table of three numbers and one of two labels.
  void WriteTable() {
    std::string rows;
    for (int i = 0; i < 200; ++i) rows += Str(i % 7, ",", i % 5, ",", i % 3, ",", i % 7 > 3 ? "yes" : "no", "\n");
    scratch_.Write("rows.csv", rows);
  }

  base::ScratchDirectory scratch_;
};

TEST_F(OnnxTest, ANetworkComesBackAndGoesOnLearning) {
  WriteTable();
  scratch_.Write("net.toml",
                 "input = \"data\"\nlayers = [{dense = 8, activation = \"relu\"}, {dense = \"classes\"}]\n");
  Must({"train", "rows.csv", "--model", "net.toml", "--loss", "softmax", "--no-standardise", "--quiet", "-o", "a"});
  Must({"export", "-i", "a", "--onnx", "a.onnx"});
  Must({"import", "a.onnx", "-o", "b"});
  const std::string predicted = Must({"predict", "-i", "a", "rows.csv", "--probabilities"}).out;
  EXPECT_EQ(Must({"predict", "-i", "b", "rows.csv", "--probabilities"}).out, predicted);
  Must({"evaluate", "-i", "b", "rows.csv"});
  Must({"train", "-i", "b", "rows.csv", "--quiet", "-o", "c"});
  EXPECT_NE(Must({"predict", "-i", "c", "rows.csv", "--probabilities"}).out, predicted);
}

TEST_F(OnnxTest, ExportTellsWhatItWrote) {
  WriteTable();
  Must({"train", "rows.csv", "--quiet", "-o", "a"});
  const auto json = nlohmann::json::parse(Must({"export", "-i", "a", "--onnx", "a.onnx", "--json"}).out);
  EXPECT_EQ(json["inputs"][0]["shape"], "[N, 3]");
  EXPECT_EQ(json["outputs"][0]["name"], "probability");
  EXPECT_EQ(json["outputs"][1]["name"], "label");
}

TEST_F(OnnxTest, RefusalsSayWhatAndWhere) {
  WriteTable();
  Must({"train", "rows.csv", "--quiet", "-o", "a"});
  Must({"export", "-i", "a", "--onnx", "a.onnx"});
  Fails(2, {"export", "-i", "a"}, "nowhere to write to");
  Fails(6, {"export", "-i", "rows.csv", "--onnx", "x"}, "rows.csv");
  Fails(2, {"import", "a.onnx"}, "nowhere to write to");
  Fails(3, {"import", "a.onnx", "-o", "b"}, "a.onnx: node Sub 'Sub': from the input, only one mean for each channel");
  Fails(3, {"import", "rows.csv", "-o", "b"}, "rows.csv: ");
  Fails(1, {"import", "none.onnx", "-o", "b"}, "none.onnx");
}

TEST_F(OnnxTest, HelpHasExamples) {
  EXPECT_NE(Must({"export", "--help"}).out.find("Examples:\n  freshet export"), std::string::npos);
  EXPECT_NE(Must({"import", "--help"}).out.find("Examples:\n  freshet import"), std::string::npos);
}

}  // namespace
}  // namespace freshet::cli
